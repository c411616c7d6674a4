/** What a top-up costs, in events that Temporal Cloud bills as actions: the figures of docs/workflows.md. */
import assert from 'node:assert/strict';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { until } from '../../support/stack.ts';
import { openDesk, type TopUpDesk } from '../../support/top-up-desk.ts';

/** One action each. A signal more or less: the processor reports twice, and may be handed over once. */
const BILLED = new Set([
  'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED',
  'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED',
  'EVENT_TYPE_ACTIVITY_TASK_STARTED',
  'EVENT_TYPE_TIMER_STARTED',
  'EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES',
]);

describe('a top-up that goes well costs', () => {
  let desk: TopUpDesk;

  before(async () => {
    desk = await openDesk({ FIRST_ASK_MS: '3600000' });
    await desk.startWorker();
  });
  after(async () => {
    await desk?.close();
  });

  it('at most 11 actions through checkout', async () => {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.pay(topUp.sessionUrl);
    assert.ok((await actionsOf(topUp)) <= 11);
  });

  it('at most 7 actions from the saved card', async () => {
    const result = await desk.requestDirect(await desk.newConsumer(), 25);
    assert.ok(result.kind === 'completed');
    assert.ok((await actionsOf(result.topUp)) <= 7);
  });

  it('at most 6 actions when a charge asked for it', async () => {
    const consumer = await desk.newConsumer();
    await desk.topUpAutomatically(consumer);
    await desk.charge(consumer);
    const topUp = await until(async () => (await desk.automaticTopUps(consumer))[0]);
    await desk.statusBecomes(topUp, 'completed');
    assert.ok((await actionsOf(topUp)) <= 6);
  });

  async function actionsOf({ id }: Pick<TopUp, 'id'>): Promise<number> {
    const handle = desk.workflow(id);
    await handle.result();
    const { events } = JSON.parse(historyToJSON(await handle.fetchHistory())) as {
      events: { eventType: string }[];
    };
    return events.filter(({ eventType }) => BILLED.has(eventType)).length;
  }
});
