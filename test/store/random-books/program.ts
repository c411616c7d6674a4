/**
 * A random program against the store: waves of operations of every kind, some of them at once. Doctor examines the
 * books every few waves. What each operation asks for follows from the seed and the books; the order in which those
 * of one wave are decided does not.
 */
import assert from 'node:assert/strict';
import { examineLedger, LEDGER_PARTS } from '../../../src/store/doctor/ledger-checks.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { openTestLedger } from '../../support/ledger.ts';
import { Random } from '../../support/random.ts';
import { untilHourIsYoung } from '../../support/until-hour-is-young.ts';
import { approve, endAnswered } from './approvals.ts';
import { adjust, setThreshold } from './balance.ts';
import { Books, type Operation } from './books.ts';
import * as budgets from './budgets.ts';
import { charge, refund } from './charges.ts';
import { compareReplies } from './compare-replies.ts';
import { missingOf } from './expected.ts';
import { enter, expire } from './holds.ts';
import { installClock, jump } from './jumping-clock.ts';
import { lease, renew, settle } from './leases.ts';
import { askRefund, dismiss, report } from './reversals.ts';
import * as topUps from './top-ups.ts';

/** With how many cards each is in the pack from which operations are drawn. */
const OPERATIONS: Readonly<Record<string, { readonly cards: number; readonly run: Operation }>> = {
  charge: { cards: 18, run: charge },
  refund: { cards: 12, run: refund },
  enter: { cards: 20, run: enter },
  expire: { cards: 4, run: expire },
  lease: { cards: 6, run: lease },
  settle: { cards: 10, run: settle },
  renew: { cards: 3, run: renew },
  adjust: { cards: 4, run: adjust },
  setThreshold: { cards: 2, run: setThreshold },
  addNode: { cards: 1, run: budgets.addNode },
  addKey: { cards: 1, run: budgets.addKey },
  endKey: { cards: 2, run: budgets.endKey },
  changeLimits: { cards: 5, run: budgets.changeLimits },
  close: { cards: 2, run: budgets.close },
  setCeiling: { cards: 2, run: budgets.setCeiling },
  approve: { cards: 14, run: approve },
  endAnswered: { cards: 1, run: endAnswered },
  topUp: { cards: 8, run: topUps.topUp },
  setAutomatic: { cards: 6, run: topUps.setAutomatic },
  takeUp: { cards: 8, run: topUps.takeUp },
  direct: { cards: 4, run: topUps.direct },
  end: { cards: 8, run: topUps.end },
  askRefund: { cards: 5, run: askRefund },
  report: { cards: 12, run: report },
  dismiss: { cards: 3, run: dismiss },
  rollUp: {
    cards: 4,
    run: async (books) => {
      const { moved } = await rollUp(books.database);
      books.count(`roll up ${moved > 0 ? 'done' : 'nothing'}`);
    },
  },
};

/** After so many waves, a rare outcome may still have to come. */
const WAVES_MORE = 300;
const CONNECTIONS = 12;
const NODES_AT_FIRST = 5;
const FIRST_TOP_UP_MICROS = 2_000_000;
const WIDTHS = [1, 1, 1, 4, 8];
/** What must be refused is known only while nothing else changes the budgets. */
const WIDTHS_OF_APPROVALS = [1, 1, 1, 4];
const TURNS = 0.05;
const JUMPS = 0.2;
const WAVES_PER_EXAMINATION = 10;

/** Those that the program itself does not keep: it has no relays, no workflows and no processor. */
const PARTS = LEDGER_PARTS.filter((part) => part !== 'delivery');
const CHECKS_LEFT_OUT: readonly string[] = ['every approval has a workflow and ends on time'];
/** A jumping clock changes the schema, and the order of times. */
const PARTS_WITHOUT_JUMPS: readonly string[] = ['schema', 'audit-log'];
const ABOUT_TIMES = /^$/;

export interface Program {
  readonly seed: number;
  readonly waves: number;
  /** Whether the clock of PostgreSQL jumps forward and back. */
  readonly jumps?: boolean;
  readonly onProgress?: (waves: number) => void;
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
      wave <= waves || (missingOf(books).length > 0 && wave <= waves + WAVES_MORE);
      wave += 1
    ) {
      if (jumps && random.chance(JUMPS)) await jump(database, random);
      if (random.chance(TURNS)) await budgets.turnWindows(books, random.pick(books.owners));
      const first = draw();
      const width = random.pick(first === 'approve' ? WIDTHS_OF_APPROVALS : WIDTHS);
      await run(books, random, wave, [first, ...Array.from({ length: width - 1 }, draw)]);
      if (wave % WAVES_PER_EXAMINATION === 0) await examine(`after ${wave} waves`);
      books.count('wave');
      onProgress(wave);
    }
    await examine('at the end');
    await rebuildRollups(database);
    await examine('after the rebuild');
    assert.deepEqual(missingOf(books), [], 'outcomes that never came');
    return books.counts;
  } finally {
    await database.end();
    await ledger.drop();
  }
}

async function begin(books: Books, random: Random): Promise<void> {
  for (const owner of books.owners) {
    await topUps.topUpWith(owner, FIRST_TOP_UP_MICROS);
    for (let n = 0; n < NODES_AT_FIRST; n += 1) await budgets.addNode(books, owner, random);
  }
}

/** Draws names from a shuffled pack, and shuffles it again when it is used up, so that none is late. */
function packOf(random: Random): () => string {
  const all = Object.entries(OPERATIONS).flatMap(([name, { cards }]) =>
    Array.from({ length: cards }, () => name),
  );
  let pack: string[] = [];
  return () => {
    if (pack.length === 0) pack = [...all];
    return pack.splice(random.between(0, pack.length - 1), 1)[0] ?? '';
  };
}

/** Each has its own numbers, which do not depend on the others of the wave. */
async function run(
  books: Books,
  random: Random,
  wave: number,
  names: readonly string[],
): Promise<void> {
  const steps = names.map((name) => ({
    name,
    owner: random.pick(books.owners),
    random: new Random(random.between(0, 2 ** 32 - 1)),
  }));
  books.isAlone = steps.length === 1;
  const done = await Promise.allSettled(
    steps.map((step) => OPERATIONS[step.name]?.run(books, step.owner, step.random)),
  );
  for (const [index, result] of done.entries()) {
    if (result.status === 'rejected') {
      throw new Error(`wave ${wave}: ${names[index]} failed beside ${names}`, {
        cause: result.reason,
      });
    }
  }
}

async function examineBooks(books: Books, jumps: boolean, when: string): Promise<void> {
  await compareReplies(books);
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
