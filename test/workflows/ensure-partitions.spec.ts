/** The schedule that creates months of charges ahead: it keeps a service going that never restarts. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readTemporalConfig } from '../../src/config.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { scheduleIdOf } from '../../src/temporal/schedules.ts';
import {
  createMigratedDatabase,
  startWorker,
  testEnvironment,
  until,
  type Server,
  type TestDatabase,
} from '../support/stack.ts';

describe('the schedule of partitions', () => {
  let database: TestDatabase;
  let client: Client;
  let temporal: TemporalClient;
  let worker: Server;

  before(async () => {
    database = await createMigratedDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    const env = {
      ...(await testEnvironment(database)),
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
    };
    temporal = createTemporalClient(readTemporalConfig(env));
    worker = await startWorker({ env });
  });
  after(async () => {
    await worker?.stop();
    await temporal?.close();
    await client?.end();
    await database?.drop();
  });

  const months = async () => {
    const { rowCount } = await client.query(
      `select from pg_inherits where inhparent = 'farebox.charges'::regclass`,
    );
    return (rowCount ?? 0) - 1; // charges_rest
  };
  const schedule = () =>
    temporal.client.schedule.getHandle(scheduleIdOf(temporal, 'ensurePartitions'));

  it('runs once a day, and makes up for a day on which Temporal was down', async () => {
    await until(() =>
      schedule()
        .describe()
        .catch(() => undefined),
    );
    const { spec, policies } = await schedule().describe();
    assert.equal(spec.intervals?.[0]?.every, 86_400_000);
    assert.equal(policies.catchupWindow, 86_400_000);
  });

  it('creates missing partitions, waits for a quiet moment, and creates nothing twice', async () => {
    assert.equal(await months(), 0);
    await client.query('begin');
    await client.query('select from farebox.charges_rest');
    await schedule().trigger();
    const waits = `select from pg_locks where relation = 'farebox.charges_rest'::regclass
      and not granted`;
    await until(async () => (await client.query(waits)).rowCount);
    await client.query('rollback');
    await until(async () => (await months()) === 4);
    const again = await temporal.client.workflow.start('ensurePartitions', {
      workflowId: 'again',
      taskQueue: temporal.taskQueue,
    });
    assert.deepEqual(await again.result(), []);
    // Otherwise the step of a killed worker is retried only after the half hour that it may take.
    const { events } = await again.fetchHistory();
    const timeouts = events?.flatMap(
      (event) => event.activityTaskScheduledEventAttributes?.heartbeatTimeout?.seconds ?? [],
    );
    assert.deepEqual(timeouts?.map(Number), [5]);
  });
});
