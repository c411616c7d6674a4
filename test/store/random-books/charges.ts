/** Charges, one by one and in batches, with and without idempotency keys, and their refunds. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { asMicros, type Micros } from '../../../src/domain/money.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
} from '../../../src/store/charges/post-charges.ts';
import type { OptionalIdentity } from '../../../src/store/charges/identity.ts';
import { postSpends } from '../../../src/store/charges/post-spends.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import { newDraft, RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Key, Owner } from './books.ts';
import { byUnits, TOOLS, type MaybeByUnits } from './by-units.ts';

/** So few that they are repeated all the time. */
const KEYS_MOST = 30;

/** Rarely more than anybody has. */
export function amountOf(random: Random): Micros {
  return asMicros(random.between(1, random.chance(0.03) ? 3_000_000 : 40_000));
}

/** `use`: the hash of an idempotency key covers what it is used for, and by whom. */
export function draftOf(
  books: Books,
  owner: Owner,
  random: Random,
  { use = 'charge', key }: { readonly use?: 'charge' | 'hold' | 'lease'; readonly key?: Key } = {},
): ChargeDraft {
  const { spend, developer = random.pick(books.developers) } = key ?? random.pick(owner.keys);
  const amountMicros = amountOf(random);
  const { developerNumber } = developer;
  return {
    ...newDraft(owner.view, amountMicros),
    ...developer,
    spend,
    tool: random.pick(TOOLS),
    needsApproval: spend !== null && random.chance(0.3),
    ...identityOf(random, KEYS_MOST, [use, developerNumber, owner.view.consumerId]),
  };
}

/** Sometimes an idempotency key, one of a few for these names, and one of two bodies. */
export function identityOf(
  random: Random,
  keysMost: number,
  names: readonly (string | number)[],
): OptionalIdentity {
  if (!random.chance(0.3)) return { idempotencyHash: null, fingerprint: null };
  const name = [...names, random.between(1, keysMost)].join(' ');
  return {
    idempotencyHash: hash('sha256', name).slice(0, 22),
    fingerprint: `000000000${random.between(1, 2)}`,
  };
}

/** No idempotency hash may occur twice in a batch. */
export function withoutRepetitions<Entry extends { readonly idempotencyHash: string | null }>(
  entries: readonly Entry[],
): Entry[] {
  const seen = new Set<string>();
  return entries.filter(({ idempotencyHash }) => {
    if (idempotencyHash === null) return true;
    if (seen.has(idempotencyHash)) return false;
    seen.add(idempotencyHash);
    return true;
  });
}

export async function charge(books: Books, _owner: Owner, random: Random): Promise<void> {
  const asked = withoutRepetitions(
    Array.from({ length: random.pick([1, 1, 3, 12]) }, () =>
      draftOf(books, random.pick(books.owners), random),
    ),
  );
  const drafts = await byUnits(books, asked, random);
  const outcomes = await post(books, drafts);
  for (const [index, draft] of drafts.entries()) record(books, 'charge', draft, outcomes[index]);
}

/** As the batcher does it. */
async function post({ database }: Books, drafts: readonly ChargeDraft[]): Promise<ChargeOutcome[]> {
  const outcomes = await postFittingCharges(database, drafts, RECEIPT_KEY, replayWindow());
  const left = drafts.filter((_, index) => outcomes[index] === undefined);
  if (left.length === 0) return outcomes as ChargeOutcome[];
  const decide = left.some(({ spend }) => spend) ? postSpends : postCharges;
  const decided = await decide(database, left, RECEIPT_KEY, replayWindow());
  return outcomes.map((outcome) => outcome ?? (decided.shift() as ChargeOutcome));
}

/** Counts the outcome, and keeps what it says. */
export function record(
  books: Books,
  what: string,
  draft: MaybeByUnits<ChargeDraft>,
  outcome: ChargeOutcome | undefined,
): void {
  assert.ok(outcome);
  books.count(`${what} ${outcome.kind}`);
  if (outcome.kind === 'posted') {
    const { id, amountMicros, balanceMicros, cardVersion } = outcome;
    assert.equal(amountMicros, draft.amountMicros);
    assert.equal(cardVersion, draft.cardVersion ?? 0);
    assert.ok(balanceMicros >= 0, `a balance of ${balanceMicros}`);
    const developer = { developerId: draft.developerId, developerNumber: draft.developerNumber };
    books.ownerOf(draft.consumerId).add({ id, developer, amountMicros });
    if (draft.units) {
      books.addByUnits({ id, units: draft.units, cardVersion, isCapped: false });
      books.count(`${what} by units`);
    }
  }
  noteHash(books, draft.idempotencyHash, outcome);
  assertRefused(draft.amountMicros, outcome);
}

/** A charge that was made, or a repetition, which must name it; `assertRepetitions` compares them. */
export function noteHash(
  books: Books,
  idempotencyHash: string | null,
  outcome: { readonly kind: string; readonly id?: string; readonly cardVersion?: number },
): void {
  const { kind, id, cardVersion = 0 } = outcome;
  if (idempotencyHash === null || id === undefined) return;
  if (kind === 'replayed')
    books.repetitions.push({ hash: idempotencyHash, chargeId: id, cardVersion });
  if (kind !== 'posted') return;
  assert.equal(books.chargeOfHash.has(idempotencyHash), false, 'a key made two charges');
  books.chargeOfHash.set(idempotencyHash, id);
}

/** What refused had less than was asked for. */
export function assertRefused(
  askedMicros: number,
  outcome: {
    readonly kind: string;
    readonly balanceMicros?: Micros | null;
    readonly remainingMicros?: Micros;
  },
): void {
  if (outcome.kind === 'insufficient') assert.ok((outcome.balanceMicros ?? 0) < askedMicros);
  if (outcome.kind === 'limit_reached') assert.ok((outcome.remainingMicros ?? 0) < askedMicros);
}

export async function refund(books: Books, owner: Owner, random: Random): Promise<void> {
  if (owner.charges.length === 0) return;
  const { id, developer, amountMicros } = random.pick(owner.charges);
  const result = await refundCharge(books.database, {
    developerNumber: developer.developerNumber,
    chargeId: id,
    askedMicros: random.chance(0.5) ? null : asMicros(random.between(1, amountMicros)),
    idempotencyKey: random.chance(0.3) ? `refund ${random.between(1, 3)}` : undefined,
  });
  books.count(`refund ${result.kind}`);
  if (result.kind !== 'refunded') return;
  assert.ok(result.refund.refundedMicros <= amountMicros, 'more than the charge was refunded');
  owner.sums.refunded += result.refund.amountMicros;
}
