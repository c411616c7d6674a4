/** The queue of messages to workflows: releases share it during a rolling deploy. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createDatabase, sql, type Database } from '../../src/store/database.ts';
import { postNotice, takeNotices } from '../../src/store/outbox.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('the outbox', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
  });
  after(async () => {
    await database?.end();
    await testDatabase?.drop();
  });

  it('leaves notices of a newer release to its relays, and delivers the others', async () => {
    await database.query(sql.typeAlias('nothing')`
      alter table farebox.outbox drop constraint outbox_topic_known
    `);
    const subject = randomUUID();
    await postNotice(database, 'of_the_next_release' as never, randomUUID());
    await postNotice(database, 'grant', subject);
    const taken = await takeNotices(database, 50, 60_000);
    assert.deepEqual(
      taken.map(({ topic, subjectId }) => [topic, subjectId]),
      [['grant', subject]],
    );
    // Not even leased: the newer relay takes it at once.
    const waiting = await database.oneFirst(sql.unsafe`
      select count(*)::int from farebox.outbox where next_attempt_at <= now() and attempts = 0
    `);
    assert.equal(waiting, 1);
  });
});
