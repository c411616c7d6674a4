/**
 * Recorded histories of concurrent clients under faults are linearizable for each consumer, and the witnesses find bugs:
 * `npm run test:faults:histories` does the same for longer, with every planted bug.
 */
import assert from 'node:assert/strict';
import { SEED } from '../../support/random.ts';
import { recordHistories } from './history-run.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';

const SIZE = { consumers: 2, clientsEach: 4, stepsEach: 15, kills: false };
/** One of the database, one of the code. */
const PLANTED = [
  'a charge is stored and not debited',
  'a refund is answered before it is credited',
];

describe(`recorded histories (SEED=${SEED})`, () => {
  it('are linearizable while lines reset, fall silent and lose answers', async () => {
    const { found, operations, byKind, faults } = await recordHistories({ ...SIZE, seed: SEED });
    assert.deepEqual(found, {});
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
