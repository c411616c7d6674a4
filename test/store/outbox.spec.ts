/** The queue of messages to workflows: accounts share it, and releases during a rolling deploy. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { Type } from 'typebox';
import { createDatabase, row, sql, type Database } from '../../src/store/database.ts';
import { postNotice, takeNotices } from '../../src/store/outbox.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

const subjectRow = row(Type.Object({ subjectId: Type.String() }));

describe('the outbox', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
  });
  afterEach(() => database?.query(sql.typeAlias('nothing')`delete from farebox.outbox`));
  after(async () => {
    await database?.end();
    await testDatabase?.drop();
  });

  it('delivers other notices soon, although an account wrote thousands for one endpoint before', async () => {
    const [endpoint, consumer] = [randomUUID(), randomUUID()];
    await database.query(sql.typeAlias('nothing')`
      insert into farebox.outbox (topic, subject_id, next_attempt_at)
      select 'webhook_endpoint', ${endpoint}, now() - interval '1 second' from generate_series(1, 5000)
    `);
    await postNotice(database, 'auto_top_up', consumer);
    const first = await takeNotices(database, 50, 60_000);
    assert.deepEqual(new Set(first.map(({ subjectId }) => subjectId)), new Set([endpoint]));
    const second = await takeNotices(database, 50, 60_000);
    assert.deepEqual(
      second.map(({ topic, subjectId }) => [topic, subjectId]),
      [['auto_top_up', consumer]],
    );
    // If this relay dies before it sends the signal, another one takes these.
    assert.equal((await notices()).length, first.length + second.length);
  });

  it('keeps the notices of an endpoint that were not committed, or not due, when others were taken', async () => {
    const [endpoint, other] = [randomUUID(), randomUUID()];
    await postNotice(database, 'webhook_endpoint', endpoint);
    await postNotice(database, 'webhook_endpoint', endpoint);
    await postNotice(database, 'webhook_endpoint', endpoint, { delayMs: 60_000 });
    await postNotice(database, 'webhook_endpoint', other);
    const client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    await client.query('begin');
    const insert = `insert into farebox.outbox (topic, subject_id) values ('webhook_endpoint', $1)`;
    await client.query(insert, [endpoint]);
    const [taken, ...more] = await takeNotices(database, 1, 60_000);
    await client.query('commit');
    await client.end();
    assert.deepEqual([taken?.subjectId, more], [endpoint, []]);
    assert.deepEqual(
      (await notices()).toSorted(),
      [endpoint, endpoint, endpoint, other].toSorted(),
    );
  });

  const notices = () =>
    database.anyFirst(sql.type(subjectRow)`select subject_id as "subjectId" from farebox.outbox`);

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
