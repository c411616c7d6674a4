/** Holds: placed, captured, released and extended in batches with charges, and expired. */
import assert from 'node:assert/strict';
import { OVER_MODES } from '../../../src/domain/hold.ts';
import { sql } from '../../../src/store/database.ts';
import type { LedgerEntry } from '../../../src/store/holds/decide-entries.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import type { Outcomes } from '../../../src/store/holds/hold-entry.ts';
import { postEntries, postFittingEntries } from '../../../src/store/holds/post-hold-entries.ts';
import { RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import { capturing, extending, releasing } from '../../support/hold-drafts.ts';
import type { Random } from '../../support/random.ts';
import { pickRecent, type Books, type Owner } from './books.ts';
import { byUnits, capturesByUnits, type MaybeByUnits } from './by-units.ts';
import {
  amountOf,
  assertRefused,
  draftOf,
  identityOf,
  noteHash,
  record,
  withoutRepetitions,
} from './charges.ts';

const EXPIRING_MOST = 4;
const CAPTURE_KEYS_MOST = 2;

export async function enter(books: Books, _owner: Owner, random: Random): Promise<void> {
  const asked = Array.from({ length: random.pick([1, 2, 8]) }, () => {
    const owner = random.pick(books.owners);
    return { owner, entry: entryOf(books, owner, random) };
  });
  const distinct = withoutRepetitions(asked.map(({ entry }) => entry));
  const ownerOfEntry = new Map(asked.map(({ owner, entry }) => [entry, owner]));
  const entries = await someByUnits(books, distinct, random);
  const outcomes = await post(books, entries);
  for (const [index, entry] of distinct.entries()) {
    const owner = ownerOfEntry.get(entry);
    const posted = entries[index];
    const outcome = outcomes[index];
    if (owner && posted && outcome) keep(books, owner, posted, outcome);
  }
}

function entryOf(books: Books, owner: Owner, random: Random): LedgerEntry {
  const kind = random.weighted({ place: 4, charge: 1, capture: 4, release: 2, extend: 1 });
  if (kind === 'charge') return { ...draftOf(books, owner, random), kind };
  if (kind === 'place' || owner.holds.length === 0) {
    const seconds = random.pick([60, 600, 86_400]);
    return { ...draftOf(books, owner, random, { use: 'hold' }), kind: 'place', seconds };
  }
  const { id, developer } = pickRecent(owner.holds, random);
  if (kind === 'release') return { ...releasing(id), ...developer };
  if (kind === 'extend') return { ...extending(id, random.between(1, 86_400)), ...developer };
  return capturing(id, {
    ...developer,
    ...identityOf(random, CAPTURE_KEYS_MOST, ['capture', id]),
    amountMicros: random.chance(0.4) ? null : amountOf(random),
    isFinal: random.chance(0.5),
    over: random.chance(0.4) ? 'overflow' : random.pick(OVER_MODES),
  });
}

async function someByUnits(
  books: Books,
  entries: readonly LedgerEntry[],
  random: Random,
): Promise<MaybeByUnits<LedgerEntry>[]> {
  const drafts = entries.flatMap((entry) => ('consumerId' in entry ? [entry] : []));
  const priced = await byUnits(books, drafts, random);
  const captures = await capturesByUnits(books, entries, random);
  return captures.map((entry) => ('consumerId' in entry ? (priced.shift() ?? entry) : entry));
}

/** As the batcher does it. */
async function post({ database }: Books, entries: readonly LedgerEntry[]) {
  const outcomes = await postFittingEntries(database, entries, RECEIPT_KEY, replayWindow());
  const left = entries.filter((_, index) => outcomes[index] === undefined);
  if (left.length === 0) return outcomes;
  const decided = await postEntries(database, left, RECEIPT_KEY, replayWindow());
  return outcomes.map((outcome) => outcome ?? decided.shift());
}

function keep(
  books: Books,
  owner: Owner,
  entry: MaybeByUnits<LedgerEntry>,
  outcome: Outcomes[LedgerEntry['kind']],
): void {
  if (entry.kind === 'charge') {
    record(books, 'charge of a batch', entry, outcome as Outcomes['charge']);
    return;
  }
  books.count(`${entry.kind} ${outcome.kind}`);
  if (entry.kind === 'place') assertRefused(entry.amountMicros, outcome);
  if (entry.kind === 'capture' && outcome.kind === 'replayed' && 'chargeId' in outcome) {
    const { chargeId: id, cardVersion } = outcome;
    noteHash(books, entry.idempotencyHash, { kind: 'replayed', id, cardVersion });
  }
  if (outcome.kind !== 'done') return;
  const developer = { developerId: entry.developerId, developerNumber: entry.developerNumber };
  if (entry.kind === 'place') {
    const { id } = outcome.hold;
    owner.holds.push({ id, developer });
    assert.equal(outcome.cardVersion, entry.cardVersion ?? 0);
    if (entry.cardVersion) books.cardOfHold.set(id, entry.cardVersion);
    if (entry.units) books.count('place by units');
  }
  if (entry.kind !== 'capture') return;
  const { chargeId: id, amountMicros, cardVersion } = outcome;
  owner.add({ id, developer, amountMicros });
  noteHash(books, entry.idempotencyHash, { kind: 'posted', id });
  assert.equal(cardVersion, entry.cardVersion);
  if (!entry.units) return;
  books.addByUnits({ id, units: entry.units, cardVersion, isCapped: entry.over === 'cap' });
  books.count('capture by units');
}

/** Makes some holds and leases overdue, one by one, as no function of the store locks several, and sweeps. */
export async function expire(books: Books, owner: Owner, random: Random): Promise<void> {
  const reserved = [...owner.holds, ...owner.leases];
  for (let n = random.between(1, EXPIRING_MOST); n > 0 && reserved.length > 0; n -= 1) {
    await books.change(sql.fragment`
      with overdue as (
        update farebox.holds set expires_at = now() - interval '1 ms'
        where id = ${random.pick(reserved).id} and state = 0 returning ledger, id, developer
      )
      insert into farebox.hold_expiries (ledger, due_at, developers, holds)
      select ledger, now(), array[developer], array[id] from overdue
    `);
  }
  const { holds } = await expireHolds(books.database);
  if (holds > 0) books.count('expire done');
}
