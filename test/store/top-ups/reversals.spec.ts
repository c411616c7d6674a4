/** Disputes, refunds made at the processor, and the debt that remains. */
import assert from 'node:assert/strict';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { lockConsumer } from '../../../src/store/balance/consumers.ts';
import type { Database } from '../../../src/store/database.ts';
import { repayDebts } from '../../../src/store/balance/debts.ts';
import { addLot, cutLots } from '../../../src/store/balance/lots.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { getReversalsVersion, recordReversals } from '../../../src/store/top-ups/reversals.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, refund, type Payer } from '../../support/payer.ts';
import { credit } from '../../support/evidence.ts';

describe('a reversal', () => {
  let ledger: TestLedger;
  let database: Database;
  let payer: Payer;
  let dp: string;
  let re: string;

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
  });
  beforeEach(async () => {
    payer = await newPayer(database);
    [dp, re] = [processorId('dp'), processorId('re')];
  });
  afterEach(async () => assert.deepEqual(await examineLedger(database), []));
  after(async () => {
    await ledger.drop();
  });

  it('holds disputed money, from any lots, and none of it can be spent', async () => {
    const [topUp] = [await payer.topUp(10_000_000), await payer.topUp(5_000_000)];
    await payer.charge(8_000_000);
    await payer.report(topUp, dispute(dp, 6_000_000));
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 6_000_000, debt: 0 });
    assert.equal(await payer.statusOf(topUp), 'disputed');
    assert.equal(await payer.charge(1_000_001), false);
    assert.equal(await payer.charge(1_000_000), true);
  });

  it('makes disputed money that was spent a debt, which the next credits pay first', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(9_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000));
    assert.deepEqual(await payer.money(), { balance: 0, held: 1_000_000, debt: 9_000_000 });
    await payer.topUp(5_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 6_000_000, debt: 4_000_000 });
    assert.equal(await payer.charge(1), false);
    await payer.topUp(5_000_000);
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 10_000_000, debt: 0 });
  });

  it('lifts hold and debt when the dispute is won, with all that credits had paid', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(9_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000));
    await payer.topUp(5_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'won'));
    assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
    assert.equal(await payer.statusOf(topUp), 'completed');
  });

  it("takes the held money when the dispute is lost: the top-up's unspent part first", async () => {
    const [first, second] = [await payer.topUp(5_000_000), await payer.topUp(10_000_000)];
    await payer.report(second, dispute(dp, 12_000_000));
    await payer.charge(3_000_000);
    await payer.report(second, dispute(dp, 12_000_000, 'lost'));
    assert.deepEqual(await payer.lots(), [
      { topUpId: first, from: 0, to: 3_000_000 },
      { topUpId: second, from: 3_000_000, to: 3_000_000 },
    ]);
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
    assert.equal(await payer.statusOf(second), 'charged_back');
  });

  it('keeps the debt of a lost dispute until later credits have paid it', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(10_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'lost'));
    const later = await payer.topUp(4_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 6_000_000 });
    await payer.topUp(7_000_000);
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 0, debt: 0 });
    assert.deepEqual((await requestRefund(database, later, undefined)).kind, 'exceeds_unspent');
    assert.deepEqual(await payer.movements(), [
      'top_up 10000000',
      'top_up 4000000',
      'dispute -4000000',
      'top_up 7000000',
      'dispute -6000000',
    ]);
  });

  it('credits again the amount of a lost dispute that is won after all', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(6_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'lost'));
    await payer.topUp(2_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'won'));
    assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
    assert.equal((await payer.movements()).at(-1), 'dispute_returned 6000000');
  });

  it('lets an adjustment pay debts too', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(10_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'lost'));
    await database.transaction(async (tx) => {
      await lockConsumer(tx, payer);
      await addLot(tx, payer, { kind: 'adjustment', amountMicros: 12_000_000, reason: 'sorry' });
      await repayDebts(tx, [payer]);
    });
    assert.deepEqual(await payer.money(), { balance: 2_000_000, held: 0, debt: 0 });
  });

  it("takes the unspent part of a refund made in the processor's dashboard; the rest is debt", async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(7_000_000);
    await payer.report(topUp, refund(re, 10_000_000));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 7_000_000 });
    assert.equal(await payer.statusOf(topUp), 'refunded');
    await payer.topUp(8_000_000);
    await payer.report(topUp, refund(re, 10_000_000, 'failed'));
    assert.deepEqual(await payer.money(), { balance: 11_000_000, held: 0, debt: 0 });
    assert.equal(await payer.statusOf(topUp), 'completed');
  });

  it('restores the earlier status when the dispute is won: also that of a refund', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.report(topUp, refund(re, 3_000_000));
    await payer.report(topUp, refund(re, 3_000_000), dispute(dp, 7_000_000));
    assert.equal(await payer.statusOf(topUp), 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 7_000_000, debt: 0 });
    await payer.report(topUp, refund(re, 3_000_000), dispute(dp, 7_000_000, 'won'));
    assert.equal(await payer.statusOf(topUp), 'partially_refunded');
    assert.equal((await payer.money()).balance, 7_000_000);
  });

  it('gives money from a failed refund to an open dispute', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.report(topUp, refund(re, 10_000_000));
    await payer.report(topUp, refund(re, 10_000_000), dispute(dp, 10_000_000));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 10_000_000 });
    await payer.report(topUp, refund(re, 10_000_000, 'failed'), dispute(dp, 10_000_000));
    assert.deepEqual(await payer.money(), { balance: 0, held: 10_000_000, debt: 0 });
  });

  it('adds up several disputes of one payment, and settles the oldest debt first', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(10_000_000);
    const second = processorId('dp');
    await payer.report(topUp, dispute(dp, 4_000_000), dispute(second, 6_000_000, 'lost'));
    await payer.topUp(5_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 5_000_000 });
    // Money released by the first one goes to the second one before anybody can spend it.
    await payer.report(topUp, dispute(dp, 4_000_000, 'won'), dispute(second, 6_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 1_000_000 });
    assert.equal(await payer.statusOf(topUp), 'charged_back');
  });

  it('follows a dispute whose amount changes', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000));
    await payer.report(topUp, dispute(dp, 4_000_000));
    assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 4_000_000, debt: 0 });
    await payer.report(topUp, dispute(dp, 9_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 0, debt: 0 });
  });

  it('stores nothing of one that claims nothing when it is first seen', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.report(topUp, dispute(dp, 10_000_000, 'won'), refund(re, 10_000_000, 'failed'));
    assert.deepEqual(await payer.movements(), ['top_up 10000000']);
    assert.equal(await payer.statusOf(topUp), 'completed');
  });

  it('ignores an older reading than the recorded one', async () => {
    const topUp = await payer.topUp(10_000_000);
    const version = await getReversalsVersion(database, topUp);
    await payer.report(topUp, dispute(dp, 10_000_000, 'won'));
    const stale = await recordReversals(database, topUp, version, [dispute(dp, 10_000_000)]);
    assert.equal(stale, false);
    assert.deepEqual(await payer.money(), { balance: 10_000_000, held: 0, debt: 0 });
  });

  it('records one of many simultaneous readings', async () => {
    const topUp = await payer.topUp(10_000_000);
    const version = await getReversalsVersion(database, topUp);
    const recorded = await Promise.all(
      Array.from({ length: 8 }, () =>
        recordReversals(database, topUp, version, [dispute(dp, 4_000_000), refund(re, 3_000_000)]),
      ),
    );
    assert.equal(recorded.filter(Boolean).length, 1);
    assert.deepEqual(await payer.money(), { balance: 3_000_000, held: 4_000_000, debt: 0 });
  });

  it('records nothing for a top-up that is not credited', async () => {
    const topUp = await payer.open(10_000_000);
    assert.equal(await recordReversals(database, topUp, 0, [dispute(dp, 10_000_000)]), false);
    await credit(database, topUp);
    assert.equal(await recordReversals(database, topUp, 0, [dispute(dp, 10_000_000)]), true);
    assert.deepEqual(await payer.money(), { balance: 0, held: 10_000_000, debt: 0 });
  });

  it('never lets a balance fall below zero, under any charges meanwhile', async () => {
    const topUp = await payer.topUp(10_000_000);
    const version = await getReversalsVersion(database, topUp);
    await Promise.all([
      ...Array.from({ length: 20 }, () => payer.charge(700_000)),
      recordReversals(database, topUp, version, [dispute(dp, 10_000_000)]),
    ]);
    const { balance, held, debt } = await payer.money();
    assert.equal(held + debt, 10_000_000);
    assert.equal(balance, 0);
  });

  it('throws when lots do not have the money to take', async () => {
    await payer.topUp(10_000_000);
    const before = await payer.lots();
    const cut = database.transaction(async (tx) => {
      await lockConsumer(tx, payer);
      await cutLots(tx, payer, { kind: 'adjustment', amountMicros: 10_000_001 });
    });
    await assert.rejects(cut);
    assert.deepEqual(await payer.lots(), before);
  });
});
