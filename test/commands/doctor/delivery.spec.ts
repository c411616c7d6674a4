/** Doctor reports work that is late or was never started. */
import assert from 'node:assert/strict';
import { readScheduleConfig, readTemporalConfig } from '../../../src/config.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { ensureSchedules, schedulesOf } from '../../../src/temporal/schedules.ts';
import { createTestNamespace, until } from '../../support/stack.ts';
import {
  expectFindings,
  openPlantedBooks,
  type Plant,
  type PlantedBooks,
} from './planted-books.ts';

const DELIVERED = 'every notice is delivered within ten minutes';
const ENDS = 'every top-up ends on time';

const SENT = 'every event is sent within ten minutes of when it is due';

const event = (dueIn: string, status = `'active', null`) =>
  `with endpoint as (
      insert into farebox.webhook_endpoints (id, account_id, url, secret_master, status, disabled_reason)
      values (':manual', ':account', 'https://example.com', 1, ${status}) returning id
    )
    insert into farebox.webhook_deliveries (endpoint_id, event_id, next_attempt_at)
    select id, ':checkout', now() + interval '${dueIn}' from endpoint`;
const notice = (topic: string, age: string, next = 'now()') =>
  `insert into farebox.outbox (topic, subject_id, created_at, attempts, next_attempt_at)
    values ('${topic}', ':consumer', now() - interval '${age}', 7, ${next})`;
const pending = (method: string, age: string) =>
  `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, created_at, opened_at)
    select ':firstCharge', ledger, consumer_id, account_id, '${method}', 1000000, now() - interval '${age}', now()
    from farebox.top_ups where id = ':manual'`;

const PLANTS: readonly Plant[] = [
  {
    what: 'a notice that nobody delivers',
    statements: [notice('payment_reported', '11 minutes')],
    finds: ({ consumer }) => [[DELIVERED, `payment_reported ${consumer}`]],
  },
  {
    what: 'a notice of an automatic top-up that nobody takes up',
    statements: [notice('auto_top_up', '2 days', `now() - interval '11 minutes'`)],
    finds: ({ consumer }) => [[DELIVERED, `auto_top_up ${consumer}`]],
  },
  {
    what: 'an automatic top-up that is put off',
    statements: [notice('auto_top_up', '2 days', `now() + interval '1 hour'`)],
    finds: () => [],
  },
  {
    what: 'an event that nobody sends',
    statements: [event('-11 minutes')],
    finds: ({ checkout }) => [[SENT, `event ${checkout}`]],
  },
  { what: 'an event that waits after a failure', statements: [event('1 minute')], finds: () => [] },
  {
    what: 'an event for a disabled endpoint',
    statements: [event('-11 minutes', `'disabled', 'owner'`)],
    finds: () => [],
  },
  {
    what: 'a direct top-up that does not end',
    statements: [pending('direct', '61 minutes')],
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a checkout that has been pending for 60 days',
    statements: [pending('checkout', '60 days')],
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  { what: 'a checkout that is open', statements: [pending('checkout', '1 day')], finds: () => [] },
];

describe('farebox doctor --only delivery', () => {
  it('finds each planted fault, names the offender, and nothing else', async () => {
    const books = await openPlantedBooks(PLANTS.length);
    try {
      await books.sql.query('insert into farebox.reconciliation (walked_until) values (now())');
      await expectFindings(books, 'delivery', PLANTS);
    } finally {
      await books.close();
    }
  });

  it('reports an overdue reconciliation, once top-ups are old enough', async () => {
    const books = await openPlantedBooks(1);
    const late = async () =>
      (await books.examine('--only', 'delivery')).findings.map(({ check, detail }) => [
        check,
        detail,
      ]);
    try {
      await books.sql.query(`update farebox.top_ups set created_at = now() - interval '2 hours'`);
      assert.deepEqual(await late(), [
        ['the last complete reconciliation is recent', 'ended at no time'],
      ]);
      await books.sql.query('insert into farebox.reconciliation (walked_until) values (now())');
      assert.deepEqual(await late(), []);
      await books.sql.query(
        `update farebox.reconciliation set walked_until = now() - interval '76 minutes'`,
      );
      assert.equal((await late()).length, 1);
      await books.sql.query(`delete from farebox.top_ups where method <> 'manual'`);
      assert.deepEqual(await late(), [], 'what was booked by hand needs no reconciliation');
    } finally {
      await books.close();
    }
  });
});

describe('farebox doctor --only temporal', () => {
  let books: PlantedBooks;

  before(async () => {
    books = await openPlantedBooks(1, {
      TEMPORAL_ADDRESS: process.env['TEST_TEMPORAL_ADDRESS'],
      TEMPORAL_NAMESPACE: await createTestNamespace(),
    });
  });
  after(() => books?.close());

  it('reports schedules that Temporal does not have', async () => {
    const missing = async () =>
      (await books.examine('--only', 'temporal')).findings.map(({ subject }) => subject);
    assert.deepEqual(await missing(), [
      'farebox/rollUpEarnings',
      'farebox/expireHolds',
      'farebox/ensurePartitions',
      'farebox/pruneLogs',
      'farebox/reconcileTopUps',
    ]);
    const temporal = createTemporalClient(readTemporalConfig(books.env));
    await ensureSchedules(temporal, schedulesOf(readScheduleConfig(books.env)));
    await temporal.close();
    assert.deepEqual(await missing(), []);
  });

  it('reports workflows that cannot continue because their code fails', async () => {
    const temporal = createTemporalClient(readTemporalConfig(books.env));
    const workflowId = 'top-up/tu_failing';
    const { taskQueue } = temporal;
    await temporal.client.workflow.start('topUp', { workflowId, taskQueue, args: [] });
    for (let task = 0; task < 5; task += 1) await failTask(temporal);
    await until(async () => {
      const { findings } = await books.examine('--only', 'temporal');
      return findings.some(({ check, subject }) => {
        return check === 'no workflow fails in its code' && subject === workflowId;
      });
    });
    await temporal.close();
  });
});

/** Like a worker whose code does not replay the history. */
async function failTask({ client, taskQueue }: TemporalClient): Promise<void> {
  const { namespace } = client.options;
  const poll = { namespace, identity: 'test', taskQueue: { name: taskQueue } };
  const { taskToken } = await client.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue(poll),
  );
  const failure = { message: 'TMPRL1100' };
  const failed = { namespace, identity: 'test', taskToken, failure };
  await client.workflowService.respondWorkflowTaskFailed({ ...failed, cause: NONDETERMINISM });
}

/** `WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR` of `temporal.api.enums.v1`. */
const NONDETERMINISM = 24;
