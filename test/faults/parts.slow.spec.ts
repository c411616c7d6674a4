/**
 * Faults of the parts for seconds: Postgres's disk is full, its connections are taken, its tables locked; the
 * API's event loop stalls; API and worker are stopped, and their clocks step where libfaketime is installed.
 * Callers see only what the API promises, and charges and top-ups work again. `npm run test:faults:lines`
 * measures how soon.
 */
import assert from 'node:assert/strict';
import { SEED } from '../support/random.ts';
import { openDamagedSite, type DamagedSite } from './damaged-site.ts';
import type { Trial } from './lined-site.ts';

const LASTS_MS = 1_500;
/** Anything that hangs takes longer. */
const HANGS_MS = 180_000;
/** How often a trial is made, at most, while its charges are refused as on a busy machine. */
const TRIALS = 5;
/** Each of ten clients pauses this long between two charges. Without the pause, they use most of the CPU. */
const PAUSE_MS = 20;

describe(`faults of the parts (SEED=${SEED})`, () => {
  let damaged: DamagedSite;
  let trials: readonly Trial[];

  before(async () => {
    damaged = await openDamagedSite({
      seed: SEED,
      recoveryMsMax: HANGS_MS,
      pauseMs: PAUSE_MS,
      trialsMax: TRIALS,
    });
    trials = damaged.trials(LASTS_MS);
  });
  after(() => damaged?.close());

  const run = async (name: string) => {
    const found = trials.filter((trial) => trial.name.startsWith(name));
    for (const trial of found) await damaged.site.run(trial);
    return found.length;
  };

  it('charges and top-ups recover when Postgres’s disk was full, which only root can make', async () => {
    assert.equal(await run('Postgres: its disk is full'), process.getuid?.() === 0 ? 1 : 0);
  });

  for (const name of [
    'Postgres: all of its connections are taken',
    'API: a table is locked',
    'API: its event loop stalls',
    'API: stopped by SIGSTOP',
    'worker: stopped by SIGSTOP',
  ]) {
    it(`charges and top-ups recover: ${name}`, async () => {
      assert.equal(await run(name), 1);
    });
  }

  it('charges and top-ups recover when the clocks stepped, where libfaketime is installed', async () => {
    assert.equal(await run('API and worker: their clocks step'), damaged.hasClocks ? 4 : 0);
  });

  it('leaves the books whole', () => damaged.site.proveBooks());
});
