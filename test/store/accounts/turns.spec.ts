/** The turns of an account at reading many rows, and what they keep from being vacuumed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { takeTurn, takeTurnInSteps } from '../../../src/store/accounts/turns.ts';
import {
  createDatabase,
  row,
  sql,
  type Connection,
  type Database,
} from '../../../src/store/database.ts';
import { Type } from 'typebox';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';

const pidRow = row(Type.Object({ pid: Type.Integer() }));

describe('the turn of an account', () => {
  let testDatabase: TestDatabase;
  let database: Database;
  let other: Client;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
    other = new Client({ connectionString: testDatabase.url });
    await other.connect();
  });
  after(async () => {
    await other?.end();
    await database?.end();
    await testDatabase?.drop();
  });

  /** After a statement: whether the connection's transaction keeps rows from being vacuumed. */
  const holdsBack = async (connection: Connection) => {
    const pid = await connection.oneFirst(sql.type(pidRow)`select pg_backend_pid() as pid`);
    const { rows } = await other.query<{ holds: boolean }>(
      `select coalesce(backend_xmin, backend_xid) is not null as holds
       from pg_stat_activity where pid = $1`,
      [pid],
    );
    return rows[0]?.holds;
  };

  it('is one snapshot, which keeps rows from being vacuumed', async () => {
    assert.equal(await takeTurn(database, randomUUID(), holdsBack), true);
  });

  it('in steps keeps none between two of them', async () => {
    assert.equal(await takeTurnInSteps(database, randomUUID(), holdsBack), false);
  });

  it('comes when the account’s earlier one has ended', async () => {
    const accountId = randomUUID();
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const order: string[] = [];
    const first = takeTurnInSteps(database, accountId, async () => {
      begin();
      await blocked;
      order.push('first');
    });
    await begun;
    const second = takeTurn(database, accountId, async () => order.push('second'));
    unblock();
    await Promise.all([first, second]);
    assert.deepEqual(order, ['first', 'second']);
  });
});
