/** The times when keys were last used, which every API process writes for many keys at once. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { Type } from 'typebox';
import { LastUsedRecorder } from '../../../src/charging/last-used-recorder.ts';
import { touchKeys } from '../../../src/store/accounts/api-keys.ts';
import { row, sql } from '../../../src/store/database.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { until } from '../../support/stack.ts';

/** A round takes ten seconds, and a time is written once the last written time is more than a minute old. */
const ROUNDS_APART = 7;
const ROUNDS = 10;

const keyRow = row(Type.Object({ id: Type.String(), isUsed: Type.Boolean() }));

describe('the times when keys were last used', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
    await createTestAccount(ledger.url, 0);
  });
  after(() => ledger?.drop());

  const keys = () =>
    ledger.database.any(sql.type(keyRow)`
      select id, last_used_at is not null as "isUsed" from farebox.api_keys order by id
    `);

  it('are written at once while another transaction changes one of the keys', async () => {
    const [locked, ...free] = await keys();
    assert.ok(locked && free.length > 0);
    const other = new Client({ connectionString: ledger.url });
    await other.connect();
    await other.query('begin');
    await other.query('update farebox.api_keys set changed_at = now() where id = $1', [locked.id]);
    await touchKeys(
      ledger.database,
      [locked, ...free].map(({ id }) => id),
    );
    await other.end();
    assert.deepEqual(await keys(), [locked, ...free.map(({ id }) => ({ id, isUsed: true }))]);
  });

  it('are written once a minute for each key that is used all the time', async () => {
    const recorder = new LastUsedRecorder(ledger.database, assert.ifError);
    const [first] = await keys();
    const used = { keyId: first?.id ?? '', notedIn: 0 };
    const forgetTimes = () =>
      ledger.database.query(
        sql.typeAlias('nothing')`update farebox.api_keys set last_used_at = null`,
      );
    const usedIds = async () => (await keys()).filter(({ isUsed }) => isUsed).map(({ id }) => id);
    const written: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await forgetTimes();
      recorder.add(used);
      recorder.add(used);
      await recorder.endRound();
      if ((await usedIds()).length > 0) written.push(round);
    }
    assert.deepEqual(written, [0, ROUNDS_APART]);
    await forgetTimes();
    await recorder.stop();
    assert.deepEqual(await usedIds(), []);
  });

  it('are written before a list of keys is read and before the process ends, also by a write in progress', async () => {
    const recorder = new LastUsedRecorder(ledger.database, assert.ifError);
    const [first] = await keys();
    const other = new Client({ connectionString: ledger.url });
    await other.connect();
    await other.query('begin');
    await other.query('lock table farebox.api_keys in exclusive mode');
    recorder.add({ keyId: first?.id ?? '', notedIn: 0 });
    const ended: string[] = [];
    const writes = ['a write', 'a list of keys', 'the process'].map(async (what, index) => {
      await (index === 2 ? recorder.stop() : recorder.flush());
      ended.push(what);
    });
    await until(async () => {
      const { rowCount } = await other.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });
    assert.deepEqual(ended, []);
    await other.query('commit');
    await other.end();
    await Promise.all(writes);
    assert.deepEqual(ended, ['a write', 'a list of keys', 'the process']);
  });
});
