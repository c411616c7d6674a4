/**
 * Captures, releases, extensions and expiries of the same holds, all at once: each hold has one winner, and its
 * reserved money is spent or released, once. HOLD_RACES sets how many; 100,000 take a few minutes.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { Client } from 'pg';
import type { Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import type { HoldEntry, HoldOutcome } from '../../../src/store/holds/hold-entry.ts';
import { Random } from '../../support/random.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { until } from '../../support/stack.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import {
  capturing,
  extending,
  micros,
  placeAll,
  placing,
  postEntries,
  proveHolds,
  releasing,
} from '../../support/hold-drafts.ts';

const RACES = Number(process.env['HOLD_RACES'] ?? 4_000);
const WAVE = 400;
const CONSUMERS = 7;
/** The amount of each hold. */
const MICROS = 1_000;
/** Far more than all holds reserve. */
const CREDIT = RACES * MICROS * 10;

describe('races for holds', function () {
  this.timeout(600_000 + RACES * 20);
  const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));
  const random = new Random(seed);
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let consumers: Consumer[];

  before(async () => {
    ledger = await openTestLedger(12);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    consumers = await newConsumers(client, CONSUMERS, CREDIT);
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const closed = { captured: 0, released: 0, expired: 0 };

  it(`have one winner each (${RACES} races, SEED=${seed})`, async () => {
    for (let raced = 0; raced < RACES; raced += WAVE) await race(Math.min(WAVE, RACES - raced));
    for (const [state, count] of Object.entries(closed)) {
      assert.ok(count > RACES / 100, `${state}: only ${count} of ${RACES}`);
    }
    await proveHolds(database);
  });

  async function race(count: number): Promise<void> {
    const ids = await placeAll(
      database,
      Array.from({ length: count }, () => placing(random.pick(consumers), MICROS)),
    );
    await expireWithin(ids, 400);
    const rivals = ids.flatMap((id) => [
      capturing(id),
      capturing(id, { amountMicros: micros(MICROS / 4) }),
      releasing(id),
      ...(random.between(0, 3) === 0 ? [extending(id, 1)] : []),
    ]);
    const won = new Map<string, number>();
    const lanes = Array.from({ length: 6 }, () => [] as HoldEntry[]);
    const inAnyOrder = rivals
      .map((rival) => ({ rival, at: random.next() }))
      .toSorted((a, b) => a.at - b.at);
    for (const { rival } of inAnyOrder) random.pick(lanes).push(rival);
    const over = new AbortController();
    const sweeps = [1, 2].map(async () => {
      while (!over.signal.aborted) await expireHolds(database);
    });
    await Promise.all([
      ...lanes.map((lane) => runLane(lane, won)),
      // They move the same consumers' money by the other statement.
      ...consumers.map((consumer) =>
        post(database, [newDraft(consumer, 1), newDraft(consumer, 2)]),
      ),
    ]);
    await until(async () => {
      const { rowCount } = await client.query('select from farebox.holds where state = 0');
      return rowCount === 0;
    });
    over.abort();
    await Promise.all(sweeps);
    await settleWave(ids, won);
  }

  /** Alone or in batches, like the requests of one process. */
  async function runLane(lane: HoldEntry[], won: Map<string, number>): Promise<void> {
    while (lane.length > 0) {
      const batch = lane.splice(0, random.between(1, 20));
      const outcomes = await postEntries(database, batch);
      for (const [n, outcome] of outcomes.entries()) note(batch[n] as HoldEntry, outcome, won);
    }
  }

  /** Holds that nobody captured or released in time have expired, and nothing is reserved any more. */
  async function settleWave(
    ids: readonly string[],
    won: ReadonlyMap<string, number>,
  ): Promise<void> {
    const { rows } = await client.query<{ id: string; state: number; captures: number }>(
      'select id, state, captures from farebox.holds where id = any ($1)',
      [ids],
    );
    assert.equal(rows.length, ids.length);
    for (const { id, state, captures } of rows) {
      assert.equal(won.get(id) ?? 0, state === 3 ? 0 : 1, `hold ${id} in state ${state}`);
      assert.equal(captures, state === 1 ? 1 : 0);
      closed[(['captured', 'released', 'expired'] as const)[state - 1] ?? assert.fail()] += 1;
    }
    const { rows: reserved } = await client.query(
      'select from farebox.consumers where reserved_micros <> 0 or held_micros <> 0',
    );
    assert.equal(reserved.length, 0);
  }

  /** Each at a different instant. */
  async function expireWithin(ids: readonly string[], ms: number): Promise<void> {
    await client.query('begin');
    await client.query('delete from farebox.hold_expiries');
    await client.query(
      `with soon as (
         update farebox.holds set expires_at = now() + random() * $2 * interval '1 ms'
         where id = any ($1) returning ledger, id, developer, expires_at
       )
       insert into farebox.hold_expiries (ledger, due_at, developers, holds)
       select ledger, expires_at, array[developer], array[id] from soon`,
      [ids, ms],
    );
    await client.query('commit');
  }
});

function note(entry: HoldEntry, outcome: HoldOutcome, won: Map<string, number>): void {
  assert.ok(outcome.kind === 'done' || outcome.kind === 'hold_closed', outcome.kind);
  if (outcome.kind !== 'done' || entry.kind === 'extend' || !('holdId' in entry)) return;
  won.set(entry.holdId, (won.get(entry.holdId) ?? 0) + 1);
}
