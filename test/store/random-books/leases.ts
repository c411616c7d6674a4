/** Leases: placed by spend keys, settled in batches that repeat sequence numbers, and renewed at other prices. */
import { hash, randomUUID } from 'node:crypto';
import { idsAt } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { placeLease } from '../../../src/store/leases/place-lease.ts';
import { renewLease } from '../../../src/store/leases/renew-lease.ts';
import { settleLease, type SettledEntry } from '../../../src/store/leases/settle-lease.ts';
import { RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import type { Random } from '../../support/random.ts';
import { pickRecent, type Books, type MadeLease, type Owner } from './books.ts';
import { TOOLS } from './by-units.ts';
import { assertRefused, draftOf, noteHash } from './charges.ts';

const SECONDS = 600;
const RENEWED_SECONDS = 3_600;

const priceOf = (random: Random) => asMicros(random.between(1, 9_000));

export async function lease(books: Books, owner: Owner, random: Random): Promise<void> {
  const key = random.pick(owner.spendKeys);
  const { needsApproval: _, ...draft } = draftOf(books, owner, random, { use: 'lease', key });
  const entry = { ...draft, kind: 'place', tool: '', seconds: SECONDS } as const;
  const tools = TOOLS.map((name) => ({ name, priceMicros: priceOf(random), askedMicros: null }));
  const placed = await placeLease(books.database, entry, tools, RECEIPT_KEY, replayWindow());
  books.count(`lease ${placed.kind}`);
  assertRefused(entry.amountMicros, placed);
  if (placed.kind !== 'done') return;
  const { developerId, developerNumber } = entry;
  const developer = { developerId, developerNumber };
  owner.leases.push({ id: placed.lease.id, developer, tools, next: 0 });
}

export async function settle(books: Books, owner: Owner, random: Random): Promise<void> {
  if (owner.leases.length === 0) return;
  const lease = pickRecent(owner.leases, random);
  const isFinal = random.chance(0.15);
  const entries = entriesOf(lease, random, random.between(isFinal ? 0 : 1, 5));
  const { developerNumber } = lease.developer;
  const asked = { developerNumber, leaseId: lease.id, fence: null, entries, isFinal };
  const settled = await settleLease(books.database, asked, RECEIPT_KEY, replayWindow());
  books.count(`settle ${settled.kind}`);
  if (settled.kind !== 'settled') return;
  for (const [index, outcome] of settled.outcomes.entries()) {
    books.count(`settled call ${outcome.kind}`);
    if (outcome.kind !== 'done' && outcome.kind !== 'replayed') continue;
    const { chargeId: id, amountMicros } = outcome;
    const kind = outcome.kind === 'done' ? 'posted' : 'replayed';
    noteHash(books, entries[index]?.idempotencyHash ?? null, { kind, id });
    if (kind === 'posted') owner.add({ id, developer: lease.developer, amountMicros });
  }
}

/** Mostly new sequence numbers. Tool and amount follow from the number, but for a few, which are refused. */
function entriesOf(lease: MadeLease, random: Random, count: number): SettledEntry[] {
  const sequence = new Set<number>();
  for (let n = 0; n < count; n += 1) {
    const isNew = random.chance(0.65);
    sequence.add(isNew ? lease.next : random.between(0, lease.next));
    if (isNew) lease.next += 1;
  }
  const newId = idsAt(Date.now());
  return [...sequence].map((number, index) => {
    const tool = lease.tools[number % lease.tools.length] ?? { name: '', priceMicros: 1 };
    const amountMicros = asMicros(
      random.chance(0.1) ? tool.priceMicros + 5 : 1 + ((number * 7_919) % tool.priceMicros),
    );
    return {
      id: newId(index, lease.id, randomUUID()),
      tool: tool.name,
      amountMicros,
      idempotencyHash: hash('sha256', `${lease.id} ${number}`).slice(0, 22),
      fingerprint: hash('sha256', `${amountMicros}`).slice(0, 10),
      metadata: null,
    };
  });
}

export async function renew(books: Books, owner: Owner, random: Random): Promise<void> {
  if (owner.leases.length === 0) return;
  const { id, developer, tools } = pickRecent(owner.leases, random);
  const renewed = await renewLease(books.database, {
    developerNumber: developer.developerNumber,
    leaseId: id,
    fence: null,
    seconds: RENEWED_SECONDS,
    pricesMicros: tools.map(() => priceOf(random)),
    idempotencyHash: null,
    fingerprint: null,
  });
  books.count(`renew ${renewed.kind}`);
}
