/**
 * Recorded histories of concurrent clients under faults are linearizable for each consumer, and the witnesses
 * find bugs: `npm run test:faults:histories` does the same for longer, with every planted bug.
 */
import assert from 'node:assert/strict';
import { SEED } from '../../support/random.ts';
import { recordHistories } from './history-run.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';

const SIZE = { consumers: 2, clientsEach: 4, stepsEach: 15, kills: false };
/** One of the database, one of the code. */
const PLANTED = [
  'a charge is answered with the balance before it',
  'a refund is answered and lost',
];

describe(`recorded histories (SEED=${SEED})`, () => {
  it('are linearizable while lines reset, fall silent and lose answers', async () => {
    const run = await recordHistories({ ...SIZE, seed: SEED });
    const { found, operations, byKind, answers, faults } = run;
    assert.deepEqual(found, {});
    assert.ok(!('500 internal_error' in answers), JSON.stringify(answers));
    assert.ok(operations > 60 && faults > 0, JSON.stringify({ operations, byKind, faults }));
  });

  for (const name of PLANTED) {
    it(`show a planted bug: ${name}`, async () => {
      const bug = PLANTED_BUGS.find((each) => each.name === name);
      assert.ok(bug);
      const { found } = await recordHistories({ ...SIZE, seed: SEED, bug });
      assert.ok(found.checker, JSON.stringify(found));
    });
  }
});
