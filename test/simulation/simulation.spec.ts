/** A short run of the simulation; `npm run test:simulation` runs it for as long as one likes. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { simulate } from './simulation.ts';

/** A run that does less than this proves nothing. */
const AT_LEAST: Readonly<Record<string, number>> = {
  made: 2_000,
  replayed: 150,
  refused: 200,
  read: 300,
  batch: 50,
  'at once': 30,
  'same key at once': 20,
  idempotency_key_reused: 30,
  invalid_api_key: 20,
  invalid_amount: 50,
  checkout: 3,
  'direct top-up': 3,
  'charges during a top-up': 1,
  'key rolled': 1,
  kill: 2,
  unknown: 1,
};

describe('the simulation', () => {
  const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));

  it(`agrees with the model in every answer and in the end (SEED=${seed})`, async function () {
    this.timeout(180_000);
    const counts = await simulate({ seed, operations: 2_000, kills: 2 });
    const short = Object.entries(AT_LEAST).filter(
      ([what, least]) => !((counts.get(what) ?? 0) >= least),
    );
    assert.deepEqual(short, [], JSON.stringify(Object.fromEntries(counts)));
  });
});
