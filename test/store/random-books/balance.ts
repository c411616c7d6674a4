/** Adjustments and the threshold of a low balance. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { setLowBalance } from '../../../src/store/balance/thresholds.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Owner } from './books.ts';

const KEYS_MOST = 9;

export async function adjust(books: Books, owner: Owner, random: Random): Promise<void> {
  const number = random.between(1, KEYS_MOST);
  const isKeyed = random.chance(0.3);
  // With the key, mostly the same amount.
  const size = isKeyed && random.chance(0.8) ? number * 20_000 : random.between(1, 250_000);
  const amountMicros = asMicros((isKeyed ? number % 2 === 0 : random.chance(0.5)) ? size : -size);
  const by = isKeyed
    ? { idempotencyKey: `adjustment ${number} ${owner.view.consumerId}` }
    : undefined;
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

export async function setThreshold(books: Books, owner: Owner, random: Random): Promise<void> {
  const below = random.chance(0.3) ? null : asMicros(random.between(1, 800_000));
  await setLowBalance(books.database, owner.view, below);
  books.count('set threshold done');
}
