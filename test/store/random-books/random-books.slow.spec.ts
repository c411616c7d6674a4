/** A short run of the random program; `npm run test:books` runs it for any length. */
import { SEED } from '../../support/random.ts';
import { runProgram } from './program.ts';

const WAVES = 100;

describe('the books', () => {
  it(`are correct during ${WAVES} waves of everything that changes them (SEED=${SEED})`, async () => {
    await runProgram({ seed: SEED, waves: WAVES });
  });
});
