/** Children of the start that end unasked, with waits that take no time. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { startChild, type Child } from '../../src/embedded/child.ts';
import { SupervisedChild } from '../../src/embedded/supervised-child.ts';

/** Runs until it is killed. */
const PROGRAM = 'setInterval(() => {}, 60_000); process.send({ ready: true });';

describe('a child of the start', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-children-'));
  });
  after(() => rm(folder, { recursive: true }));

  const startLasting = () =>
    startChild({
      name: 'lasting',
      command: [process.execPath, '-e', PROGRAM],
      env: {},
      logFile: join(folder, 'lasting.log'),
      ready: 'message',
    });

  /** A child that ends as soon as it is ready. */
  async function startBrief(): Promise<Child> {
    const child = await startLasting();
    child.kill('SIGKILL');
    return child;
  }

  /** Starts the child, which keeps ending, and collects the waits before its first restarts. */
  async function firstWaits(
    count: number,
    start: typeof startBrief,
    healthyMs?: number,
  ): Promise<number[]> {
    const waits: number[] = [];
    const enough = Promise.withResolvers<void>();
    const wait = async (ms: number, signal: AbortSignal) => {
      waits.push(ms);
      if (waits.length < count) return;
      enough.resolve();
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
    };
    const child = new SupervisedChild(start, () => {}, {
      wait,
      ...(healthyMs !== undefined && { healthyMs }),
    });
    await child.start();
    await enough.promise;
    await child.stop();
    return waits;
  }

  it('that keeps ending is started again after waits that double, up to five seconds', async () => {
    assert.deepEqual(await firstWaits(5, startBrief), [1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  it('that cannot be started again is tried after waits that double, up to five seconds', async () => {
    let starts = 0;
    const startOnce = () => {
      starts += 1;
      return starts === 1 ? startBrief() : Promise.reject(new Error('no such program'));
    };
    assert.deepEqual(await firstWaits(5, startOnce), [1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  it('that was healthy before it ended is started again after the shortest wait', async () => {
    // Each ran for longer than nothing.
    assert.deepEqual(await firstWaits(3, startBrief, 0), [1_000, 1_000, 1_000]);
  });

  it('that is starting again when the start stops has ended afterwards', async () => {
    let starts = 0;
    const isUp = Promise.withResolvers<Child>();
    const mayGoOn = Promise.withResolvers<void>();
    const start = async () => {
      starts += 1;
      if (starts === 1) return startBrief();
      const next = await startLasting();
      isUp.resolve(next);
      await mayGoOn.promise;
      return next;
    };
    const child = new SupervisedChild(start, () => {}, { wait: async () => {} });
    await child.start();
    const next = await isUp.promise;
    const stopped = child.stop();
    mayGoOn.resolve();
    await stopped;
    const state = await Promise.race([next.exited.then(() => 'ended'), turn('running')]);
    next.kill('SIGKILL');
    assert.equal(state, 'ended');
  });
});
