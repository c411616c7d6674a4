/** Adjustments among refunds, disputes and debt: an adjustment is a credit or a cut like any other. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import type { Database } from '../../../src/store/database.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, type Payer } from '../../support/payer.ts';

describe('an adjustment', () => {
  let ledger: TestLedger;
  let database: Database;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(4);
    ({ database } = ledger);
  });
  beforeEach(async () => {
    payer = await newPayer(database);
  });
  afterEach(async () => assert.deepEqual(await examineLedger(database), []));
  after(async () => {
    await ledger?.drop();
  });

  const adjust = (amount: number) =>
    adjustBalance(database, payer, { amountMicros: asMicros(amount), reason: 'a test' });

  it('pays a debt before any of it can be spent', async () => {
    const topUp = await payer.topUp(1_000_000);
    assert.ok(await payer.charge(700_000));
    await payer.report(topUp, dispute(processorId('dp'), 1_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 700_000 });
    assert.deepEqual(await adjust(500_000), {
      kind: 'adjusted',
      isReplay: false,
      balanceMicros: 0,
      debtMicros: 200_000,
    });
    assert.equal(await payer.charge(1), false);
    assert.deepEqual(await adjust(300_001), {
      kind: 'adjusted',
      isReplay: false,
      balanceMicros: 100_001,
      debtMicros: 0,
    });
  });

  it('takes nothing that a dispute holds', async () => {
    const topUp = await payer.topUp(1_000_000);
    await payer.report(topUp, dispute(processorId('dp'), 600_000));
    const refused = { kind: 'insufficient_balance', balanceMicros: 400_000 };
    assert.deepEqual(await adjust(-400_001), refused);
    assert.deepEqual(await adjust(-400_000), {
      kind: 'adjusted',
      isReplay: false,
      balanceMicros: 0,
      debtMicros: 0,
    });
    assert.deepEqual(await payer.money(), { balance: 0, held: 600_000, debt: 0 });
  });

  it('moves later lots down, so that the next of them pays the next charge', async () => {
    const first = await payer.topUp(1_000_000);
    const second = await payer.topUp(1_000_000);
    assert.ok(await payer.charge(400_000));
    await adjust(-900_000);
    assert.deepEqual(
      (await payer.lots()).map(({ topUpId, from, to }) => [topUpId, from, to]),
      [
        [first, 0, 400_000],
        [second, 400_000, 1_100_000],
      ],
    );
    assert.equal(await payer.statusOf(first), 'completed');
  });
});
