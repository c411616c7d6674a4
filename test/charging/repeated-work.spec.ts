/** Work in the background, which ends with the process: nothing that it began is left behind. */
import assert from 'node:assert/strict';
import { RepeatedWork } from '../../src/charging/repeated-work.ts';
import { until } from '../support/stack.ts';

/** Work whose runs end when the test says so. */
function openWork() {
  const runs: PromiseWithResolvers<void>[] = [];
  const errors: unknown[] = [];
  const run = () => {
    const ends = Promise.withResolvers<void>();
    runs.push(ends);
    return ends.promise;
  };
  const work = new RepeatedWork(1, run, (error) => errors.push(error));
  return { work, runs, errors };
}

describe('repeated work', () => {
  it('is stopped when the run in progress has ended', async () => {
    const { work, runs } = openWork();
    await until(() => runs.length === 1, { intervalMs: 1 });
    let isStopped = false;
    const stopped = work.stop().then(() => (isStopped = true));
    await new Promise(setImmediate);
    assert.equal(isStopped, false);
    runs[0]?.resolve();
    await stopped;
    assert.equal(runs.length, 1);
  });

  it('is finished after one more run, which reports its failure', async () => {
    const { work, runs, errors } = openWork();
    await until(() => runs.length === 1, { intervalMs: 1 });
    const finished = work.finish();
    await new Promise(setImmediate);
    assert.equal(runs.length, 1);
    runs[0]?.resolve();
    await until(() => runs.length === 2, { intervalMs: 1 });
    runs[1]?.reject(new Error('the last write failed'));
    await finished;
    assert.equal(runs.length, 2);
    assert.match(String(errors), /^Error: the last write failed$/);
  });
});
