/**
 * `bin/farebox exec node test/faults/agent-down.ts --minutes 10`: an agent is down for that long and comes
 * back, in real time. Its invocation then succeeds by itself, soon, and the agent acts on it once.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { echo, startAgent } from '../support/agents.ts';
import { openAgentHarness, type AgentHarness } from '../support/agent-harness.ts';
import { inRealTime } from './real-time.ts';

/** The longest pause between attempts, and its random addition. */
const NOTICED_MS_MAX = 90_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(harness: AgentHarness, minutes: number): Promise<void> {
  const gone = await harness.agent('gone');
  await gone.stop();
  const { id } = await harness.invoke('gone');
  for (let minute = 1; minute <= minutes; minute += 1) {
    await delay(60_000);
    const { status, attempts, lastError } = await harness.invocationNow(id);
    print(`after ${minute} min: ${status}, ${attempts} attempts, ${lastError?.message}`);
    assert.equal(status, 'running');
  }
  const back = await startAgent(echo, gone.port);
  try {
    const backAtMs = performance.now();
    const { status, attempts } = await harness.ended(id, NOTICED_MS_MAX);
    const seconds = (performance.now() - backAtMs) / 1_000;
    print(`${status} at attempt ${attempts}, ${seconds.toFixed(1)} s after the agent was back`);
    assert.equal(status, 'succeeded');
    assert.deepEqual([...back.effects], [id]);
    assert.equal(back.calls.length, 1);
  } finally {
    await back.stop();
  }
}

await inRealTime(openAgentHarness, run, 10);
