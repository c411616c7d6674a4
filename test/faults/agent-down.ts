/**
 * `bin/farebox exec node test/faults/agent-down.ts --minutes 10`: an agent that is down for so long and comes
 * back, in real time. The invocation of it succeeds by itself, soon after, and the agent acts on it once.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { echo, startAgent } from '../support/agents.ts';
import { openAgentDesk, type AgentDesk } from '../support/agent-desk.ts';
import { inRealTime } from './real-time.ts';

/** The longest pause between attempts, and what chance may add to it. */
const NOTICED_MS_MAX = 90_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(desk: AgentDesk, minutes: number): Promise<void> {
  const gone = await desk.agent('gone');
  await gone.stop();
  const { id } = await desk.invoke('gone');
  for (let minute = 1; minute <= minutes; minute += 1) {
    await delay(60_000);
    const { status, attempts, lastError } = await desk.invocationNow(id);
    print(`after ${minute} min: ${status}, ${attempts} attempts, ${lastError?.message}`);
    assert.equal(status, 'running');
  }
  const back = await startAgent(echo, gone.port);
  try {
    const backAtMs = performance.now();
    const { status, attempts } = await desk.ended(id, NOTICED_MS_MAX);
    const seconds = (performance.now() - backAtMs) / 1_000;
    print(`${status} at attempt ${attempts}, ${seconds.toFixed(1)} s after the agent was back`);
    assert.equal(status, 'succeeded');
    assert.deepEqual([...back.effects], [id]);
    assert.equal(back.calls.length, 1);
  } finally {
    await back.stop();
  }
}

await inRealTime(openAgentDesk, run, 10);
