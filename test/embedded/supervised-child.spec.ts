/** Children of the start that end unasked, with waits that take no time. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

  /** A child that ends as soon as it is ready. */
  async function startBrief(): Promise<Child> {
    const child = await startChild({
      name: 'brief',
      command: [process.execPath, '-e', PROGRAM],
      env: {},
      logFile: join(folder, 'brief.log'),
      ready: 'message',
    });
    child.kill('SIGKILL');
    return child;
  }

  /** Starts the child, which keeps ending, and collects the waits before its first restarts. */
  async function firstWaits(count: number, start: typeof startBrief): Promise<number[]> {
    const waits: number[] = [];
    const enough = Promise.withResolvers<void>();
    const child = new SupervisedChild(
      start,
      () => {},
      async (ms, signal) => {
        waits.push(ms);
        if (waits.length < count) return;
        enough.resolve();
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
      },
    );
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
});
