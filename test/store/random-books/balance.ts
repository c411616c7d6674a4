/** Adjustments and the threshold of a low balance. */
import assert from 'node:assert/strict';
import { asMicros, type Micros } from '../../../src/domain/money.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { getCounters } from '../../../src/store/balance/consumers.ts';
import { setLowBalance } from '../../../src/store/balance/thresholds.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Owner } from './books.ts';

const KEYS_MOST = 9;

export async function adjust(books: Books, owner: Owner, random: Random): Promise<void> {
  const { by, amountMicros } = random.chance(0.4)
    ? keyedChange(owner, random)
    : { by: undefined, amountMicros: await changeOf(books, owner, random) };
  const adjustment = { amountMicros, reason: 'a test' };
  const result = await adjustBalance(books.database, owner.view, adjustment, by);
  const isReplay = result.kind === 'adjusted' && result.isReplay;
  books.count(`adjust ${isReplay ? 'replayed' : result.kind}`);
  if (result.kind === 'insufficient_balance') {
    assert.ok(result.balanceMicros + amountMicros < 0);
  }
  if (result.kind !== 'adjusted' || isReplay) return;
  assert.ok(result.balanceMicros >= 0);
  owner.sums.adjusted += amountMicros;
}

/** Mostly the same amount for the same key. */
function keyedChange({ view }: Owner, random: Random) {
  const number = random.between(1, KEYS_MOST);
  const size = random.chance(0.8) ? number * 20_000 : random.between(1, 250_000);
  return {
    by: { idempotencyKey: `adjustment ${number} ${view.consumerId}` },
    amountMicros: asMicros(number % 2 === 0 ? size : -size),
  };
}

/** Often takes almost everything: only a poor owner is refused anything, and goes into debt. */
async function changeOf({ database }: Books, { view }: Owner, random: Random): Promise<Micros> {
  const { balanceMicros } = await getCounters(database, view);
  const leftMicros = random.between(1, 30_000);
  return random.chance(0.6) && balanceMicros > leftMicros
    ? asMicros(leftMicros - balanceMicros)
    : asMicros(random.between(1, 250_000));
}

export async function setThreshold(books: Books, owner: Owner, random: Random): Promise<void> {
  const below = random.chance(0.3) ? null : asMicros(random.between(1, 800_000));
  await setLowBalance(books.database, owner.view, below);
  books.count('set threshold done');
}
