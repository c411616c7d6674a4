/**
 * Lines between API and Postgres, worker and Temporal, worker and processor that reset, go silent or lose
 * answers: callers see only what the API promises, and charges and top-ups work again. `npm run
 * test:faults:lines` measures how soon, which a busy machine would falsify here.
 */
import { SEED } from '../support/random.ts';
import { shortTrials } from './line-trials.ts';
import { openLinedSite, type LinedSite } from './lined-site.ts';

/** Anything that hangs takes longer. */
const HANGS_MS = 180_000;
/** How often a trial is made, at most, while its charges are refused as on a busy machine. */
const TRIALS = 5;
/** Each of ten clients pauses this long between two charges. Without the pause, they use most of the CPU. */
const PAUSE_MS = 20;

describe(`faults of the lines between the parts (SEED=${SEED})`, () => {
  let site: LinedSite;

  before(async () => {
    site = await openLinedSite({
      seed: SEED,
      recoveryMsMax: HANGS_MS,
      pauseMs: PAUSE_MS,
      trialsMax: TRIALS,
    });
  });
  after(() => site?.close());

  for (const trial of shortTrials()) {
    it(`charges and top-ups recover: ${trial.name}`, async () => {
      await site.run(trial);
    });
  }

  it('leaves the books whole', () => site.proveBooks());
});
