/** The part of a refund or dispute of a taxed top-up that is not tax. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import type { Database } from '../../../src/store/database.ts';
import { failRefund, requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import {
  dispute,
  newPayer,
  processorId,
  refund,
  warning,
  type Payer,
} from '../../support/payer.ts';

const NET = 10_000_000;
const TAX = 890_000;
const GROSS = NET + TAX;

describe('a reversal of a taxed top-up', () => {
  let ledger: TestLedger;
  let database: Database;
  let payer: Payer;
  let topUp: string;

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
  });
  beforeEach(async () => {
    payer = await newPayer(database);
    topUp = await payer.topUp(NET, TAX);
  });
  afterEach(async () => assert.deepEqual(await examineLedger(database), []));
  after(async () => {
    await ledger.drop();
  });

  it('takes no tax beside a requested refund that the processor then refuses', async () => {
    const { refundId } = await requested();
    const outside = refund(processorId('re'), GROSS);
    await payer.report(topUp, outside);
    await failRefund(database, topUp, refundId, 'already refunded');
    await payer.report(topUp, outside);
    await tookAll();
  });

  it('takes no tax after a refund of which the bank returned the money', async () => {
    const { refundId } = await requested();
    const [ours, outside] = [processorId('re'), processorId('re')];
    await payer.report(topUp, refund(ours, GROSS, 'made', refundId));
    // The processor lists the newest first.
    await payer.report(topUp, refund(outside, GROSS), refund(ours, GROSS, 'failed', refundId));
    await tookAll();
  });

  it('takes its share of a payment of which another refund fails later', async () => {
    const { refundId } = await requested(4_000_000);
    const [ours, outside] = [processorId('re'), processorId('re')];
    const made = refund(ours, 4_350_000, 'made', refundId);
    await payer.report(topUp, made, refund(outside, 6_540_000));
    await tookAll();
    await payer.report(
      topUp,
      refund(outside, 6_540_000),
      refund(ours, 4_350_000, 'failed', refundId),
    );
    // $10.00 x 6.54 / 10.89, rounded down to the micro-dollar.
    assert.deepEqual(await payer.money(), { balance: NET - 6_005_509, held: 0, debt: 0 });
    await payer.report(topUp, refund(outside, 6_540_000), refund(processorId('re'), 4_350_000));
    await tookAll();
  });

  it('takes the whole payment when the rest is refunded in the report that has a failed refund', async () => {
    const { refundId } = await requested(4_000_000);
    const [ours, outside] = [processorId('re'), processorId('re')];
    const made = refund(ours, 4_350_000, 'made', refundId);
    await payer.report(topUp, refund(outside, 3_270_000), made);
    const rest = refund(processorId('re'), GROSS - 3_270_000);
    const failed = refund(ours, 4_350_000, 'failed', refundId);
    await payer.report(topUp, rest, refund(outside, 3_270_000), failed);
    await tookAll();
  });

  for (const [what, reversed] of [
    ['dispute', dispute(processorId('dp'), 6_540_000)],
    ['fraud warning', warning(processorId('issfr'), 6_540_000)],
  ] as const) {
    it(`holds what refunds have left, to the micro-dollar, as a ${what} of the rest`, async () => {
      await requested(4_000_000);
      await payer.report(topUp, reversed);
      assert.deepEqual(await payer.money(), { balance: 0, held: 6_000_000, debt: 0 });
    });
  }

  it('takes what refunds have left, to the micro-dollar, as several lost disputes of the rest', async () => {
    const { refundId } = await requested(4_000_000);
    const ours = refund(processorId('re'), 4_350_000, 'made', refundId);
    const [first, second] = [processorId('dp'), processorId('dp')];
    const lost = [dispute(first, 3_000_000, 'lost'), dispute(second, 3_540_000, 'lost')];
    await payer.report(topUp, ...lost, ours);
    await tookAll();
    await payer.report(topUp, ...lost, ours);
    assert.equal(
      (await payer.movements()).length,
      4,
      'a report that changes nothing moves nothing',
    );
  });

  it('takes its share of the whole payment as a dispute of more than refunds have left', async () => {
    await requested(4_000_000);
    await payer.report(topUp, dispute(processorId('dp'), GROSS));
    assert.deepEqual(await payer.money(), { balance: 0, held: 6_000_000, debt: 4_000_000 });
  });

  /** Without an amount, of everything. */
  async function requested(amountMicros?: number) {
    const amount = amountMicros === undefined ? undefined : asMicros(amountMicros);
    const result = await requestRefund(database, topUp, amount);
    assert.ok(result.kind === 'requested', result.kind);
    return result;
  }

  async function tookAll(): Promise<void> {
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
  }
});
