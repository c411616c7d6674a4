/** An invocation outlives any length of history: a run continues as a new one, and loses nothing. */
import assert from 'node:assert/strict';
import { echo } from '../../support/agents.ts';
import { until } from '../../support/stack.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';
import {
  HISTORY_EVENTS_MAX,
  startTemporalWithShortHistories,
  type ShortHistories,
} from '../../support/short-histories.ts';

describe('an invocation with a long history', () => {
  let temporal: ShortHistories;
  let harness: AgentHarness;

  before(async () => {
    temporal = await startTemporalWithShortHistories();
    harness = await openAgentHarness(temporal.env);
  });
  after(async () => {
    await harness?.close();
    await temporal?.stop();
  });

  it('keeps calling with the same key, and counts every attempt', async () => {
    let isUp = false;
    const agent = await harness.agent('long-gone', (seen, response, count) =>
      isUp ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await harness.invoke('long-gone');
    const handle = harness.workflow('invocation', id);
    const { runId: first } = await until(() => handle.describe().catch(() => undefined));
    const events = async () => (await handle.fetchHistory()).events?.length ?? 0;
    // In place of waiting for the intervals.
    while ((await handle.describe()).runId === first && (await events()) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await until(async () => (await handle.describe()).runId !== first);
    isUp = true;
    const done = await harness.ended(id, 90_000);
    assert.equal(done.status, 'succeeded');
    assert.equal(done.attempts, agent.calls.length);
    assert.deepEqual([...agent.effects], [id]);
  });
});
