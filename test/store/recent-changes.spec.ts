/** The changes that an API process asks for: none may be missing because the process could not ask for a while. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { createDatabase, sql, type Database } from '../../src/store/database.ts';
import { findRecentChanges } from '../../src/store/recent-changes.ts';
import { createTestAccount } from '../support/accounts.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('recent changes', () => {
  let testDatabase: TestDatabase;
  let database: Database;
  let changed: string;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
    const account = await createTestAccount(testDatabase.url, 0);
    changed = hash('sha256', account.consumerKey);
  });
  after(async () => {
    await database?.end();
    await testDatabase?.drop();
  });

  const change = (secondsAgo: number) =>
    database.query(sql.typeAlias('nothing')`
      update farebox.api_keys set changed_at = now() - make_interval(secs => ${secondsAgo})
      where hash = decode(${changed}, 'hex')
    `);
  const find = async (since?: string) => (await findRecentChanges(database, since)).changes;
  const key = () => [{ kind: 'key', owner: '', name: changed }];

  it('are those of the last half minute', async () => {
    await change(20);
    assert.deepEqual(await find(), key());
    await change(40);
    assert.deepEqual(await find(), []);
  });

  it('are those since half a minute before the last answer, when that is longer ago', async () => {
    await change(3_600);
    const { at } = await findRecentChanges(database, undefined);
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, at);
    assert.deepEqual(await find(inSeconds(-3_590)), key());
    assert.deepEqual(await find(at), []);
  });

  it('are those of the last half minute when the clock was set back since the last answer', async () => {
    await change(0);
    assert.deepEqual(await find(inSeconds(3_600)), key());
  });
});

function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1_000).toISOString();
}
