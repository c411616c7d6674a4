/** Money that a hold releases pays its consumer's debts first; reserved money stays reserved. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, type Payer } from '../../support/payer.ts';
import {
  capturable,
  capturing,
  micros,
  placing,
  postEntries,
  proveHolds,
  releasing,
} from '../../support/hold-drafts.ts';

describe('holds of consumers with debts', () => {
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
    topUp = await payer.topUp(10_000_000);
  });
  afterEach(() => proveHolds(database));
  after(() => ledger?.drop());

  const chargeBack = (amount: number) =>
    payer.report(topUp, dispute(processorId('dp'), amount, 'lost'));

  it('keep their reserved money when a dispute takes the balance', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(10_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 4_000_000 });
    const [outcome] = await postEntries(database, [capturing(id)]);
    assert.ok(outcome?.kind === 'done');
    assert.equal(outcome.balanceMicros, 0);
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 4_000_000 });
  });

  it('pay the debt when they are released', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(9_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 3_000_000 });
    const [outcome] = await postEntries(database, [releasing(id)]);
    assert.equal(outcome?.kind, 'done');
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 0, debt: 0 });
  });

  it('pay the debt with the rest of a capture, and show it in the balance', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(9_000_000);
    const [outcome] = await postEntries(database, [
      capturing(id, { amountMicros: micros(500_000) }),
    ]);
    assert.ok(outcome?.kind === 'done');
    assert.equal(outcome.balanceMicros, 500_000);
    assert.deepEqual(await payer.money(), { balance: 500_000, held: 0, debt: 0 });
  });

  it('do not let a capture overflow into owed money', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(9_000_000);
    const over = capturing(id, { amountMicros: micros(4_000_001), over: 'overflow' });
    const [outcome] = await postEntries(database, [over]);
    assert.deepEqual(outcome, {
      kind: 'insufficient',
      consumerId: payer.consumerId,
      balanceMicros: 0,
      requiredMicros: 1,
    });
  });

  it('pay the debt when they expire', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(9_000_000);
    const client = new Client({ connectionString: ledger.url });
    await client.connect();
    await client.query('update farebox.holds set expires_at = now() where id = $1', [id]);
    await client.query(
      'update farebox.hold_expiries set due_at = now() where holds @> array[$1::uuid]',
      [id],
    );
    await client.end();
    assert.deepEqual(await expireHolds(database), { holds: 1, hasMore: false });
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 0, debt: 0 });
    assert.deepEqual(await expireHolds(database), { holds: 0, hasMore: false });
  });

  it('do not pay the debt of another consumer in the same batch', async () => {
    const id = await capturable(database, payer, 4_000_000);
    await chargeBack(9_000_000);
    const other = await newPayer(database);
    await other.topUp(10_000_000);
    const kinds = (
      await postEntries(database, [
        placing(other, 1_000_000),
        releasing(id),
        placing(other, 10_000_000),
      ])
    ).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['done', 'done', 'insufficient']);
    assert.deepEqual(await other.money(), { balance: 9_000_000, held: 1_000_000, debt: 0 });
  });
});
