/** Doctor reports reconciliations that are late, and what Temporal lacks or cannot run. */
import assert from 'node:assert/strict';
import { findFaults } from '../../../src/commands/doctor.ts';
import { readScheduleConfig, readTemporalConfig } from '../../../src/config.ts';
import { SEARCH_ATTRIBUTES } from '../../../src/domain/search-attributes.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { ensureSchedules, schedulesOf } from '../../../src/temporal/schedules.ts';
import {
  createBareNamespace,
  createTestNamespace,
  farebox,
  until,
  type Environment,
} from '../../support/stack.ts';
import { openPlantedBooks, type PlantedBooks } from './planted-books.ts';

describe('farebox doctor --only delivery', () => {
  it('reports an overdue reconciliation, once top-ups are old enough', async () => {
    const books = await openPlantedBooks(1);
    const late = async () =>
      (await findFaults(books.env, ['delivery'])).findings.map(({ check, detail }) => [
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

  it('reports schedules that Temporal does not have, that are paused, and that differ', async () => {
    const idle = async (more: Environment = {}) =>
      (await findFaults({ ...books.env, ...more }, ['temporal'])).findings.map(
        ({ subject, detail }) => [subject, detail],
      );
    assert.deepEqual(await idle(), [
      ['farebox/rollUpEarnings', 'not found'],
      ['farebox/expireHolds', 'not found'],
      ['farebox/ensurePartitions', 'not found'],
      ['farebox/pruneLogs', 'not found'],
      ['farebox/reconcileTopUps', 'not found'],
    ]);
    const temporal = createTemporalClient(readTemporalConfig(books.env));
    await ensureSchedules(temporal, schedulesOf(readScheduleConfig(books.env)));
    assert.deepEqual(await idle(), []);
    const handle = temporal.client.schedule.getHandle('farebox/reconcileTopUps');
    await handle.pause('Stripe asked us to');
    assert.deepEqual(await idle(), [['farebox/reconcileTopUps', 'paused: Stripe asked us to']]);
    await handle.unpause();
    assert.deepEqual(await idle(), []);
    assert.deepEqual(await idle({ ROLL_UP_EVERY_SECONDS: '7' }), [
      ['farebox/rollUpEarnings', 'its spec differs from what this release and its settings define'],
    ]);
    await temporal.close();
  });

  it('reports search attributes that Temporal does not have', async () => {
    const env = { ...books.env, TEMPORAL_NAMESPACE: await createBareNamespace() };
    const missing = async () =>
      (await findFaults(env, ['temporal'])).findings
        .filter(({ check }) => check === 'Temporal has the search attributes')
        .map(({ subject, detail }) => `${subject} ${detail}`);
    assert.deepEqual(
      await missing(),
      Object.keys(SEARCH_ATTRIBUTES).map(
        (name) => `search attribute ${name} is not registered: run farebox migrate`,
      ),
    );
    await farebox(['migrate'], { env });
    assert.deepEqual(await missing(), []);
  });

  it('reports workflows that cannot continue because their code fails', async () => {
    const temporal = createTemporalClient(readTemporalConfig(books.env));
    const workflowId = 'top-up/tu_failing';
    const { taskQueue } = temporal;
    await temporal.client.workflow.start('topUp', { workflowId, taskQueue, args: [] });
    // The schedules of the test above may start workflows in the same queue, whose tasks fail too.
    for (let failed = 0; failed < 5;) if ((await failTask(temporal)) === workflowId) failed += 1;
    await until(async () => {
      const { findings } = await findFaults(books.env, ['temporal']);
      return findings.some(({ check, subject }) => {
        return check === 'no workflow fails in its code' && subject === workflowId;
      });
    });
    await temporal.close();
  });
});

/** Like a worker whose code does not replay the history. Returns the workflow's id. */
async function failTask({ client, taskQueue }: TemporalClient): Promise<string | null | undefined> {
  const { namespace } = client.options;
  const poll = { namespace, identity: 'test', taskQueue: { name: taskQueue } };
  const { taskToken, workflowExecution } = await client.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue(poll),
  );
  const failure = { message: 'TMPRL1100' };
  const failed = { namespace, identity: 'test', taskToken, failure };
  await client.workflowService.respondWorkflowTaskFailed({ ...failed, cause: NONDETERMINISM });
  return workflowExecution?.workflowId;
}

/** `WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR` of `temporal.api.enums.v1`. */
const NONDETERMINISM = 24;
