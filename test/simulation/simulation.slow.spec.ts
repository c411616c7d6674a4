/** A short run of the simulation; `npm run test:simulation` runs it for any length. */
import assert from 'node:assert/strict';
import { SEED } from '../support/random.ts';
import { simulate } from './simulation.ts';

/** A run that does less than this proves nothing. */
const AT_LEAST: Readonly<Record<string, number>> = {
  made: 1_000,
  'made by units': 100,
  replayed: 150,
  refused: 100,
  read: 300,
  batch: 50,
  'at once': 20,
  'same key at once': 20,
  idempotency_key_reused: 30,
  invalid_api_key: 12,
  invalid_amount: 50,
  checkout: 1,
  declined: 1,
  'direct top-up': 1,
  'charges during a top-up': 1,
  'key rolled': 1,
  kill: 2,
  unknown: 1,
};

describe('the simulation', () => {
  it(`agrees with the model in every answer and in the end (SEED=${SEED})`, async () => {
    const counts = await simulate({ seed: SEED, operations: 1_200, kills: 2 });
    const short = Object.entries(AT_LEAST).filter(
      ([what, least]) => !((counts.get(what) ?? 0) >= least),
    );
    assert.deepEqual(short, [], JSON.stringify(Object.fromEntries(counts)));
  });
});
