/** Abandoned holds: the workers sweep them, and a schedule is the fallback. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readTemporalConfig } from '../../../src/config.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { scheduleIdOf } from '../../../src/temporal/schedules.ts';
import { newConsumers, type Consumer } from '../../support/charge-drafts.ts';
import { placeAll, placing, proveHolds } from '../../support/hold-drafts.ts';
import {
  createTestDatabase,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type ServerProcess,
  type TestDatabase,
} from '../../support/stack.ts';

describe('the sweep of expired holds', () => {
  let testDatabase: TestDatabase;
  let database: Database;
  let client: Client;
  /** Sees what waits while `client` is in a transaction. */
  let watcher: Client;
  let temporal: TemporalClient;
  let env: Environment;
  let workers: ServerProcess[];
  let consumers: Consumer[];

  before(async () => {
    testDatabase = await createTestDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    watcher = new Client({ connectionString: testDatabase.url });
    await watcher.connect();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
    env = {
      ...(await testEnvironment(testDatabase)),
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
    };
    temporal = createTemporalClient(readTemporalConfig(env));
    workers = await Promise.all([1, 2].map(() => startWorkerProcess({ env })));
    consumers = await newConsumers(client, 20, 1_000_000);
  });
  after(async () => {
    await Promise.all(workers?.map((worker) => worker.stop()) ?? []);
    await temporal?.close();
    await database?.end();
    await client?.end();
    await watcher?.end();
    await testDatabase?.drop();
  });

  /** A hundred. */
  const placeMany = () =>
    placeAll(
      database,
      consumers.flatMap((consumer) => [1, 2, 3, 4, 5].map((n) => placing(consumer, n))),
    );
  const theirTimePasses = () =>
    watcher.query(
      `with late as (update farebox.holds set expires_at = now() where state = 0)
       update farebox.hold_expiries set due_at = now()`,
    );
  const open = async () => {
    const { rows } = await client.query<{ open: number; reserved: number }>(
      `select (select count(*)::int from farebox.holds where state = 0) as open,
         (select sum(reserved_micros)::int from farebox.consumers) as reserved`,
    );
    return rows[0] ?? assert.fail();
  };
  const nothingReserved = () =>
    until(async () => {
      const found = await open();
      return found.open === 0 && found.reserved === 0;
    });

  it('returns reserved money within seconds, with any number of workers', async () => {
    await placeMany();
    assert.deepEqual(await open(), { open: 100, reserved: 300 });
    await theirTimePasses();
    await nothingReserved();
    const { rowCount } = await client.query('select from farebox.hold_expiries');
    assert.equal(rowCount, 0);
    await proveHolds(database);
  });

  it('returns everything once when the workers are killed during the sweep', async () => {
    await placeMany();
    await client.query('begin');
    await client.query('select from farebox.consumers for update');
    await theirTimePasses();
    const waits = `select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and query like '%expire_holds%'`;
    await until(async () => (await watcher.query(waits)).rowCount);
    for (const worker of workers) worker.kill('SIGKILL');
    await Promise.all(workers.map(({ exited }) => exited));
    await client.query('rollback');
    workers = await Promise.all([1, 2].map(() => startWorkerProcess({ env })));
    await nothingReserved();
    await proveHolds(database);
  });

  it('is run by the schedule too', async () => {
    const handle = temporal.client.schedule.getHandle(scheduleIdOf(temporal, 'expireHolds'));
    await until(() => handle.describe().catch(() => undefined));
    const { spec } = await handle.describe();
    assert.equal(spec.intervals?.[0]?.every, 60_000);
    const run = await temporal.client.workflow.start('expireHolds', {
      workflowId: 'by hand',
      taskQueue: temporal.taskQueue,
    });
    await run.result();
    await proveHolds(database);
  });
});
