/**
 * A random program against the store: waves of operations of every kind, some of them at once. Doctor examines the
 * books every few waves. What each operation asks for follows from the seed and the books; the order in which those
 * of one wave are decided does not.
 */
import assert from 'node:assert/strict';
import { examineLedger, LEDGER_PARTS } from '../../../src/store/doctor/ledger-checks.ts';
import { rebuildRollups } from '../../../src/store/earnings/rollups.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { openTestLedger } from '../../support/ledger.ts';
import { Random } from '../../support/random.ts';
import { untilHourIsYoung } from '../../support/until-hour-is-young.ts';
import { Books } from './books.ts';
import { registerTools } from './by-units.ts';
import { addNode, turnWindows } from './budgets.ts';
import { compareReplies } from './compare-replies.ts';
import { missingOf } from './expected.ts';
import { installClock, jump } from './jumping-clock.ts';
import { packOf, type Card } from './operations.ts';
import { topUpWith } from './top-ups.ts';

/** After so many waves, a rare outcome may still have to come. */
const WAVES_MORE = 400;
const CONNECTIONS = 12;
const NODES_AT_FIRST = 5;
const FIRST_TOP_UP_MICROS = 2_000_000;
const WIDTHS = [1, 1, 4, 8, 12];
/** What must be refused is known only while nothing else changes the budgets. */
const WIDTHS_OF_APPROVALS = [1, 1, 1, 4];
const TURNS = 0.12;
const JUMPS = 0.2;
const WAVES_PER_EXAMINATION = 10;

/** The program has no relays and no workflows, so some checks would fail. */
const PARTS = LEDGER_PARTS.filter((part) => part !== 'delivery');
const CHECKS_LEFT_OUT: readonly string[] = ['every approval has a workflow and ends on time'];
/** A jumping clock changes the schema, and the order of times. */
const PARTS_WITHOUT_JUMPS: readonly string[] = ['schema', 'audit-log'];
const ABOUT_TIMES =
  /time of a movement|order of their (credits|times)|of one time|monthly sums|saved card|made after/;

export interface Program {
  readonly seed: number;
  readonly waves: number;
  /** Whether the clock of PostgreSQL jumps forward and back. */
  readonly jumps?: boolean;
  readonly onProgress?: (waves: number, counts: ReadonlyMap<string, number>) => void;
}

/** Returns how often each operation had each outcome. Throws at the first finding. */
export async function runProgram({
  seed,
  waves,
  jumps = false,
  onProgress = () => {},
}: Program): Promise<ReadonlyMap<string, number>> {
  await untilHourIsYoung();
  const random = new Random(seed);
  const ledger = await openTestLedger(CONNECTIONS);
  if (jumps) await installClock(ledger.database);
  // Connections of its own, which may have another clock.
  const database = await createDatabase(ledger.url, {
    maxPoolSize: CONNECTIONS,
    onError: () => {},
  });
  try {
    const books = await Books.open(database);
    const examine = (when: string) => examineBooks(books, jumps, when);
    await begin(books, random);
    const draw = packOf(random);
    for (
      let wave = 1;
      wave <= waves || (missingOf(books.counts).length > 0 && wave <= waves + WAVES_MORE);
      wave += 1
    ) {
      if (jumps && random.chance(JUMPS)) await jump(database, random);
      if (random.chance(TURNS)) await turnWindows(books, random.pick(books.owners));
      const first = draw();
      const width = random.pick(first.name === 'approve' ? WIDTHS_OF_APPROVALS : WIDTHS);
      await run(books, random, wave, [first, ...Array.from({ length: width - 1 }, draw)]);
      if (wave % WAVES_PER_EXAMINATION === 0) await examine(`after ${wave} waves`);
      books.count('wave');
      onProgress(wave, books.counts);
    }
    await examine('at the end');
    await rebuildRollups(database);
    await examine('after the rebuild');
    assert.deepEqual(missingOf(books.counts), [], 'outcomes that never came');
    return books.counts;
  } finally {
    await database.end();
    await ledger.drop();
  }
}

async function begin(books: Books, random: Random): Promise<void> {
  await registerTools(books, random);
  for (const owner of books.owners) {
    await topUpWith(owner, FIRST_TOP_UP_MICROS);
    for (let n = 0; n < NODES_AT_FIRST; n += 1) await addNode(books, owner, random);
  }
}

/** Each has its own numbers, which do not depend on the others of the wave. */
async function run(
  books: Books,
  random: Random,
  wave: number,
  cards: readonly Card[],
): Promise<void> {
  const steps = cards.map((card) => ({
    card,
    owner: random.pick(books.owners),
    random: new Random(random.between(0, 2 ** 32 - 1)),
  }));
  books.isAlone = steps.length === 1;
  const done = await Promise.allSettled(
    steps.map(({ card, owner, random }) => card.run(books, owner, random)),
  );
  for (const [index, result] of done.entries()) {
    if (result.status === 'rejected') {
      const names = cards.map(({ name }) => name);
      throw new Error(`wave ${wave}: ${names[index]} failed beside ${names.join(', ')}`, {
        cause: result.reason,
      });
    }
  }
}

async function examineBooks(books: Books, jumps: boolean, when: string): Promise<void> {
  await compareReplies(books, when);
  const findings = await examineLedger(books.database, { parts: PARTS });
  assert.deepEqual(
    findings.filter(
      ({ part, check }) =>
        !CHECKS_LEFT_OUT.includes(check) &&
        !(jumps && (PARTS_WITHOUT_JUMPS.includes(part) || ABOUT_TIMES.test(check))),
    ),
    [],
    when,
  );
}
