/**
 * The cost of a top-up and of a reconciliation, in events that Temporal Cloud bills as actions: the figures of
 * docs/workflows.md and docs/schedules.md.
 */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { DAY_MS } from '../../../src/domain/durations.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { ASK_FACTOR } from '../../../src/domain/top-up.ts';
import { reconcileNowId } from '../../../src/temporal/reconcile-now.ts';
import { until } from '../../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

/** The setting's default. */
const FIRST_ASK_MS = 15_000;

/** One action each. A signal more or less: the processor reports twice, and may be handed over once. */
const BILLED = new Set([
  'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED',
  'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED',
  'EVENT_TYPE_ACTIVITY_TASK_STARTED',
  'EVENT_TYPE_TIMER_STARTED',
  'EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES',
]);

describe('the cost in actions', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
  });
  after(async () => {
    await harness?.close();
  });

  it('of a reconciliation with nothing to do is 10, and 2 more by its schedule', async () => {
    const { temporal } = harness;
    await harness.reconcile();
    const run = temporal.client.workflow.getHandle(reconcileNowId(temporal));
    assert.equal(await actionsOfRun(run), 10);
  });

  it('of a checkout is at most 11', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.pay(topUp.sessionUrl);
    assert.ok((await actionsOf(topUp)) <= 11);
  });

  it('of a checkout that is never paid is at most 20', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control(`sessions/${topUp.sessionId}/expire-now`);
    // In this test only the report of the end makes the workflow ask. In a day, each timer before it costs a question.
    assert.ok((await actionsOf(topUp)) + 2 * questionsInADay() <= 20);
  });

  it('of a top-up from the saved card is at most 7', async () => {
    const result = await harness.requestDirect(await harness.newConsumer(), 25);
    assert.ok(result.kind === 'completed');
    assert.ok((await actionsOf(result.topUp)) <= 7);
  });

  it('of an automatic top-up is at most 6', async () => {
    const consumer = await harness.newConsumer();
    await harness.topUpAutomatically(consumer);
    await harness.charge(consumer);
    const topUp = await until(async () => (await harness.automaticTopUps(consumer))[0]);
    await harness.statusBecomes(topUp, 'completed');
    assert.ok((await actionsOf(topUp)) <= 6);
  });

  it('of a dispute is at most 7 more', async () => {
    const result = await harness.requestDirect(await harness.newConsumer(), 25);
    assert.ok(result.kind === 'completed');
    const { id, paymentIntentId } = result.topUp;
    await harness.control('disputes', { payment_intent: paymentIntentId });
    await harness.statusBecomes(result.topUp, 'disputed');
    assert.ok((await actionsOfRun(harness.reversals(id))) <= 7);
  });

  function actionsOf({ id }: Pick<TopUp, 'id'>): Promise<number> {
    return actionsOfRun(harness.workflow(id));
  }
});

async function actionsOfRun(handle: WorkflowHandle): Promise<number> {
  await handle.result();
  const { events } = JSON.parse(historyToJSON(await handle.fetchHistory())) as {
    events: { eventType: string }[];
  };
  return events.filter(({ eventType }) => BILLED.has(eventType)).length;
}

/** The questions of an open checkout before it expires, each with its timer. */
function questionsInADay(): number {
  let questions = 0;
  let afterMs = 0;
  for (let waitMs = FIRST_ASK_MS; afterMs + waitMs < DAY_MS; waitMs *= ASK_FACTOR) {
    afterMs += waitMs;
    questions += 1;
  }
  return questions;
}
