/**
 * Rate cards, which change all the time, and what is charged, held and captured by units: the developers' tools have
 * cards from the start. `assertCosts` compares what the charges cost with the cards that they name.
 */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { costOf, type RateCard, type Units } from '../../../src/domain/rate-card.ts';
import type { Micros } from '../../../src/domain/money.ts';
import { cardVersionOf } from '../../../src/store/charges/charge-origin.ts';
import type { ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import { micros, row, sql, type Database } from '../../../src/store/database.ts';
import type { LedgerEntry } from '../../../src/store/holds/decide-entries.ts';
import { findPricedHolds, type PricedHold } from '../../../src/store/holds/hold-cards.ts';
import {
  changeTool,
  findPricedTools,
  findRateCard,
  findTool,
  rateCardOf,
  registerTool,
  type NewCard,
  type ToolName,
} from '../../../src/store/tools/tools.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Developer, Owner } from './books.ts';

export const TOOLS = ['search', 'fetch'] as const;
const UNITS = ['call', 'input', 'output'] as const;
/** Two micro-dollars, so that most costs need rounding. */
const UNIT_PICOS_MOST = 2_000_000;
const COUNT_MOST = 12_000;
const BY_UNITS = 0.4;

/** A charge or a hold that a card priced says what it was asked for. */
export type MaybeByUnits<Draft> = Draft & { readonly units?: Units };

export async function registerTools({ database, developers }: Books, random: Random) {
  for (const { developerId } of developers) {
    for (const name of TOOLS) {
      const tool = { name, description: '', priceMicros: null, card: cardOf(random) };
      assert.ok(typeof (await registerTool(database, developerId, tool)) === 'object');
    }
  }
}

/** At least one unit, sometimes for nothing. */
function cardOf(random: Random): NewCard {
  const units = UNITS.filter((unit) => unit === 'input' || random.chance(0.8));
  return new Map(
    units.map((unit) => [
      unit,
      BigInt(random.chance(0.1) ? 0 : random.between(1, UNIT_PICOS_MOST)),
    ]),
  );
}

/** To other prices, and sometimes to none. */
export async function changeCard(books: Books, _owner: Owner, random: Random): Promise<void> {
  const { developerId } = random.pick(books.developers);
  const name = random.pick(TOOLS);
  const card = random.chance(0.15) ? null : cardOf(random);
  const tool = await findTool(books.database, developerId, { name });
  assert.ok(tool, name);
  const changes = { description: undefined, priceMicros: undefined, isArchived: undefined, card };
  const changed = await changeTool(books.database, developerId, tool.id, changes);
  const kind = typeof changed === 'string' ? changed : card ? 'done' : 'removed';
  books.count(`change card ${kind}`);
}

/** Some of the charges and holds, by the current cards of their tools, as an API process does it. */
export async function byUnits<Draft extends ChargeDraft>(
  books: Books,
  drafts: readonly Draft[],
  random: Random,
): Promise<MaybeByUnits<Draft>[]> {
  const asked = drafts.map(() => unitsOf(random));
  const cards = await cardsOf(
    books.database,
    drafts.map(({ developerId, tool }) => ({ developerId, name: tool })),
  );
  return drafts.map((draft, index) => {
    const units = asked[index];
    const cost = units && costBy(books, cards[index] ?? null, units);
    return cost ? { ...draft, ...cost } : draft;
  });
}

/** Some of the captures of amounts, by the cards that priced their holds or, without one, those of their tools. */
export async function capturesByUnits(
  books: Books,
  entries: readonly LedgerEntry[],
  random: Random,
): Promise<MaybeByUnits<LedgerEntry>[]> {
  const asked = entries.map((entry) =>
    entry.kind === 'capture' && entry.amountMicros !== null ? unitsOf(random) : null,
  );
  const captured = entries.flatMap((entry, index) =>
    entry.kind === 'capture' && asked[index] ? [entry] : [],
  );
  const holds = await findPricedHolds(books.database, captured);
  const current = await cardsOf(
    books.database,
    holds.map(({ developerNumber, tool }) => ({
      developerId: developerOf(books, developerNumber).developerId,
      name: tool,
    })),
  );
  const cardOfHold = new Map(
    holds.map((hold, index) => [hold.holdId, cardFor(books, hold, current[index] ?? null)]),
  );
  return entries.map((entry, index) => {
    const units = asked[index];
    if (!units || entry.kind !== 'capture') return entry;
    const cost = costBy(books, cardOfHold.get(entry.holdId) ?? null, units);
    return cost ? { ...entry, ...cost } : entry;
  });
}

/** The hold keeps the card that priced it, also after its tool has another one or none. */
function cardFor(books: Books, hold: PricedHold, current: RateCard | null): RateCard | null {
  const version = books.cardOfHold.get(hold.holdId) ?? 0;
  assert.equal(hold.card?.version ?? 0, version, `the card of hold ${hold.holdId}`);
  if (hold.card && hold.card.version !== current?.version) books.count('card of a hold kept');
  return hold.card ?? current;
}

function unitsOf(random: Random): Units | null {
  const isByUnits = random.chance(BY_UNITS);
  const units = random.chance(0.5) ? UNITS : ([random.pick(UNITS)] as const);
  const counts = units.map(
    (unit) => [unit, random.between(0, random.chance(0.1) ? 2 : COUNT_MOST)] as const,
  );
  return isByUnits ? Object.fromEntries(counts) : null;
}

/** Undefined: it is refused before it comes to the ledger, so the amount stays. */
function costBy(books: Books, card: RateCard | null, units: Units) {
  const cost = card && costOf(card, units);
  if (!card || !cost || typeof cost === 'object') {
    books.count(`by units ${card ? (cost === 0 ? 'no_cost' : 'unknown_unit') : 'card_required'}`);
    return undefined;
  }
  return { amountMicros: cost, cardVersion: card.version, units };
}

const keyOf = ({ developerId, name }: ToolName) => `${developerId} ${name}`;

async function cardsOf(
  database: Database,
  names: readonly ToolName[],
): Promise<(RateCard | null)[]> {
  const distinct = [...new Map(names.map((name) => [keyOf(name), name])).values()];
  const tools = await findPricedTools(database, distinct);
  const cards = new Map(tools.map((tool) => [keyOf(tool), rateCardOf(tool)]));
  return names.map((name) => cards.get(keyOf(name)) ?? null);
}

function developerOf({ developers }: Books, number: number): Developer {
  const found = developers.find(({ developerNumber }) => developerNumber === number);
  return found ?? assert.fail(`no developer ${number}`);
}

const pricedRow = row(
  Type.Object({
    id: Type.String(),
    developerNumber: Type.Integer(),
    tool: Type.String(),
    amountMicros: micros,
    cardVersion: Type.Integer(),
  }),
);

/** Each charge made by units since the last time is what its units cost by the card that it names. */
export async function assertCosts(books: Books, when: string): Promise<void> {
  const made = new Map(books.chargesByUnits.splice(0).map((charge) => [charge.id, charge]));
  const rows = await books.database.any(sql.type(pricedRow)`
    select id, developer as "developerNumber", tool, amount_micros as "amountMicros",
      ${cardVersionOf('c')} as "cardVersion"
    from farebox.charges c where id = any(${sql.array([...made.keys()], 'uuid')})
  `);
  assert.equal(rows.length, made.size, `charges by units ${when}`);
  const cards = new Map<string, RateCard>();
  for (const { id, developerNumber, tool, amountMicros, cardVersion } of rows) {
    const charge = made.get(id) ?? assert.fail();
    assert.equal(cardVersion, charge.cardVersion, `the card of charge ${id} ${when}`);
    const name = `${developerNumber} ${tool} ${cardVersion}`;
    const card = cards.get(name) ?? (await readCard(books, developerNumber, tool, cardVersion));
    cards.set(name, card);
    const cost = costOf(card, charge.units) as Micros;
    if (charge.isCapped) assert.ok(amountMicros <= cost, `charge ${id} ${when}`);
    else assert.equal(amountMicros, cost, `charge ${id} ${when}`);
  }
}

async function readCard(
  books: Books,
  developerNumber: number,
  name: string,
  version: number,
): Promise<RateCard> {
  const { developerId } = developerOf(books, developerNumber);
  const tool = await findTool(books.database, developerId, { name });
  const found = await findRateCard(books.database, developerId, tool?.id ?? '', version);
  const card = found && rateCardOf(found);
  return card ?? assert.fail(`no card ${version} of ${name}`);
}
