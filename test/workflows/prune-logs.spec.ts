/** Logs do not grow forever: a schedule deletes what is older than the setting, and nothing else. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readTemporalConfig } from '../../src/config.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { pruneLogs } from '../../src/store/prune-logs.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { scheduleIdOf } from '../../src/temporal/schedules.ts';
import { proveBooks } from '../support/books.ts';
import { newPayer } from '../support/payer.ts';
import {
  createTestDatabase,
  startWorker,
  testEnvironment,
  until,
  type Environment,
  type Server,
  type TestDatabase,
} from '../support/stack.ts';

describe('the pruning of logs', () => {
  let testDatabase: TestDatabase;
  let client: Client;
  let database: Database;
  let temporal: TemporalClient;
  let env: Environment;
  let worker: Server;

  before(async () => {
    testDatabase = await createTestDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
    env = {
      ...(await testEnvironment(testDatabase)),
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
      LOG_RETENTION_DAYS: '40',
    };
    temporal = createTemporalClient(readTemporalConfig(env));
    worker = await startWorker({ env });
  });
  after(async () => {
    await worker?.stop();
    await temporal?.close();
    await database?.end();
    await client?.end();
    await testDatabase?.drop();
  });

  async function run(): Promise<void> {
    const started = await temporal.client.workflow.start('pruneLogs', {
      workflowId: 'by hand',
      taskQueue: temporal.taskQueue,
    });
    await started.result();
  }

  const idsOf = async (table: string, id = 'id') =>
    (
      await client.query<{ id: string }>(`select ${id}::text as id from ${table} order by 1`)
    ).rows.map((row) => row.id);

  it('deletes old events of Stripe, in more than one step, and keeps the newer ones', async () => {
    await client.query(`
      insert into farebox.processor_events (id, type, received_at)
      select 'evt_old_' || n, 'charge.succeeded', now() - interval '41 days'
      from generate_series(1, 10001) n
      union all select 'evt_new', 'charge.succeeded', now() - interval '39 days'
    `);
    await run();
    assert.deepEqual(await idsOf('farebox.processor_events'), ['evt_new']);
  });

  it('deletes old events of ours, in more than one step, and keeps the newer ones', async () => {
    await client.query(`
      insert into farebox.events (id, account_id, type, data)
      select uuidv7(interval '-41 days'), uuidv7(), 'top_up.completed', '{}'::json from generate_series(1, 10001)
      union all
      select '01900000-0000-7000-8000-000000000001', uuidv7(), 'top_up.completed', '{}'
      union all
      select uuidv7(interval '-39 days'), uuidv7(), 'top_up.expired', '{}'
    `);
    await run();
    assert.deepEqual(await idsOf('farebox.events', 'type'), ['top_up.expired']);
  });

  it('deletes old approvals that nobody answered, in more than one step, and keeps every decision', async () => {
    const { accountId, ledger, consumerId } = await newPayer(database);
    await client.query(
      `insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id, tool,
         amount_micros, code, asked_by, status, decision, reason, created_at, expires_at, decided_at)
       select uuidv7(-a.ago), $1, $2, $3, 1, 1, $1, 'search', 1, 'insufficient_balance', 'payer', a.status, a.decision, a.what,
         now() - a.ago, now() - a.ago, now() - a.ago
       from (
         select 'expired' as status, null as decision, 'old' as what, interval '41 days' as ago from generate_series(1, 10001)
         union all values
           ('expired', null, 'newer', interval '39 days'),
           ('denied', 'deny', 'denied', interval '41 days'),
           ('approved', 'top_up', 'approved', interval '41 days')
       ) a`,
      [accountId, ledger, consumerId],
    );
    await run();
    assert.deepEqual(await idsOf('farebox.approvals', 'reason'), ['approved', 'denied', 'newer']);
  });

  it('deletes sign-in links that have expired', async () => {
    await client.query(`
      insert into console.sign_in_links (token_hash, email, expires_at)
      values ('\\x01', 'a@example.com', now() - interval '1 second'),
        ('\\x02', 'a@example.com', now() + interval '1 hour')
    `);
    await run();
    assert.deepEqual(await idsOf('console.sign_in_links', 'token_hash'), ['\\x02']);
    await proveBooks(env, { processor: false, only: ['schema', 'balances', 'top-ups'] });
  });

  it('deletes what has expired in the console, in more than one step, and keeps the rest', async () => {
    await client.query(`
      with person as (
        insert into console.users (email, name, email_verified) values ('many@example.com', 'many', true) returning id
      )
      insert into console.sessions (user_id, token, expires_at, updated_at)
      select id, 'ended ' || n, now() - interval '1 second', now() from person, generate_series(1, 10001) n
      union all select id, 'open', now() + interval '1 hour', now() from person
    `);
    await client.query(`
      insert into console.verifications (identifier, value, expires_at)
      select 'ended', n, now() - interval '1 second' from generate_series(1, 10001) n
      union all select 'open', 0, now() + interval '1 hour'
    `);
    await client.query(`
      insert into console.sign_in_links (token_hash, email, expires_at)
      select int4send(n), 'ended@example.com', now() - interval '1 second' from generate_series(1, 10001) n
    `);
    const first = await pruneLogs(database, 40);
    assert.deepEqual(first, { rows: 30_000, hasMore: true });
    await run();
    assert.deepEqual(await idsOf('console.sessions', 'token'), ['open']);
    assert.deepEqual(await idsOf('console.verifications', 'identifier'), ['open']);
    const links = await idsOf('console.sign_in_links', 'email');
    assert.ok(!links.includes('ended@example.com'));
  });

  it('deletes people who never proved their address, in more than one step, and keeps the others', async () => {
    const { accountId } = await newPayer(database);
    await client.query(`
      insert into console.users (email, name, email_verified, created_at)
      select 'unproven-' || n || '@example.com', 'unproven', false, now() - interval '25 hours'
      from generate_series(1, 10001) n
    `);
    await client.query(
      `with people as (
         insert into console.users (email, name, email_verified, created_at, account_id)
         select what || '@example.com', what, false, now() - ago, account
         from (values ('new', interval '23 hours', null), ('password', '25 hours', null), ('link', '25 hours', null),
           ('late', '25 hours', null), ('owner', '25 hours', $1::uuid)) v (what, ago, account)
         returning id, name
       ), passwords as (
         insert into console.credentials (user_id, account_id, provider_id, password, updated_at)
         select id, id, 'credential', 'hash', now() from people where name = 'password'
       )
       insert into console.verifications (identifier, value, expires_at)
       select name, id, now() + case name when 'link' then interval '1 minute' else '-1 minute' end
       from people where name in ('link', 'late')`,
      [accountId],
    );
    await run();
    const { rows } = await client.query<{ name: string }>(
      `select name from console.users
       where name in ('unproven', 'new', 'password', 'link', 'late', 'owner') order by name`,
    );
    assert.deepEqual(
      rows.map(({ name }) => name),
      ['link', 'new', 'owner', 'password'],
    );
  });

  it('is run by a schedule once a day', async () => {
    const handle = temporal.client.schedule.getHandle(scheduleIdOf(temporal, 'pruneLogs'));
    const { spec } = await until(() => handle.describe().catch(() => undefined));
    assert.equal(spec.intervals?.[0]?.every, 86_400_000);
  });
});
