/** What a consumer had spent at an instant: exact, though charges close in time are swapped, and cheap. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { DAY_MS, HOUR_MS } from '../../../src/domain/durations.ts';
import { idsAt } from '../../../src/domain/ids.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { spentBefore, spentBeforeEach } from '../../../src/store/balance/spent.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { nodesOf, type PlanNode } from '../query-plans.ts';

const CHARGES = 60_000;
const PER_SECOND = 17;
const SPAN_MS = (CHARGES / PER_SECOND) * 1_000;
/** Positions are up to this much later than ids: the charge waited. */
const WAIT_MS_MAX = 55_000;

describe('what a consumer had spent at an instant', () => {
  let ledger: TestLedger;
  let client: Client;
  let consumer: Consumer;
  let beginMs: number;
  let explaining: Explaining;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    await ensureChargePartitions(ledger.url, Date.now());
    beginMs = Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth(), 1, 12);
    [consumer] = (await newConsumers(client, 1, 1_000_000)) as [Consumer];
    // Positions in the order in which the waits ended; amounts of 1 to 7 micros.
    await client.query(
      `insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id,
         developer, ledger, receipt_key, tool, metadata)
       select amount, sum(amount) over (order by done, n), 0,
         (lpad(to_hex(at), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid, $1, 1, $2, 1, 'search', ''
       from (
         select n, 1 + n % 7 as amount, $3::int8 + n * 1000 / ${PER_SECOND} as at,
           $3::int8 + n * 1000 / ${PER_SECOND} + (n * 7919 % ${WAIT_MS_MAX}) as done
         from generate_series(1, ${CHARGES}) n
       ) made`,
      [consumer.consumerId, consumer.ledger, beginMs],
    );
    await client.query(
      `update farebox.consumers set disorder = '1 minute',
         spent_micros = (select sum(amount_micros) from farebox.charges) where id = $1`,
      [consumer.consumerId],
    );
    await client.query('analyze farebox.charges');
    explaining = await startExplaining(ledger.url, ledger.database);
  });

  after(async () => {
    await explaining.stop();
    await client.end();
    await ledger.drop();
  });

  it('is the sum of the charges before it, wherever the instant falls', async () => {
    for (const part of [0, 0.1, 0.333, 0.5, 0.77, 0.99, 1.1]) {
      const timeMs = Math.floor(beginMs + SPAN_MS * part);
      const { rows } = await client.query<{ sum: string }>(
        `select coalesce(sum(amount_micros), 0) as sum from farebox.charges
         where uuid_extract_timestamp(id) < to_timestamp($1::float8 / 1000)`,
        [timeMs],
      );
      assert.equal(await spentBefore(ledger.database, consumer, timeMs), Number(rows[0]?.sum));
    }
  });

  it('is the same for several instants at once, in the order in which they are asked for', async () => {
    const times = [0.5, 1.1, 0, 0.333].map((part) => Math.floor(beginMs + SPAN_MS * part));
    const alone: number[] = [];
    for (const timeMs of times) alone.push(await spentBefore(ledger.database, consumer, timeMs));
    assert.ok(new Set(alone).size === 4, String(alone));
    assert.deepEqual(await spentBeforeEach(ledger.database, consumer, times), alone);
    assert.deepEqual(await spentBeforeEach(ledger.database, consumer, []), []);
  });

  it('reads the charges of the minutes around it, and no others, where charges were swapped by as much', async () => {
    const read = await rowsRead(consumer, Math.floor(beginMs + SPAN_MS / 2));
    assert.ok(read > 0 && read < PER_SECOND * 130, String(read));
  });

  it('is read for a hundred instants by statements that each read the charges around a few', async () => {
    const times = Array.from({ length: 100 }, (_, n) => Math.floor(beginMs + (SPAN_MS * n) / 100));
    const plans = await explaining.plansOf((connection) =>
      spentBeforeEach(connection, consumer, times),
    );
    const read = plans.map(rowsOf);
    assert.ok(Math.max(...read) < 25 * PER_SECOND * 130, read.join(', '));
  });

  it('is read one instant at a time where charges are hours out of order', async () => {
    await setDisorder('1 hour');
    try {
      const times = Array.from({ length: 25 }, (_, n) => Math.floor(beginMs + (SPAN_MS * n) / 25));
      const plans = await explaining.plansOf((connection) =>
        spentBeforeEach(connection, consumer, times),
      );
      const read = plans.map(rowsOf);
      assert.ok(Math.max(...read) > CHARGES / 2 && Math.max(...read) <= 2 * CHARGES, String(read));
    } finally {
      await setDisorder('1 minute');
    }
  });

  for (const [rate, everyMs] of [
    ['10 charges a second', 100],
    ['1,000 charges a second', 1],
  ] as const) {
    it(`reads a handful of charges at ${rate}, even where some were swapped`, async () => {
      const [payer] = (await newConsumers(client, 1, 1_000_000)) as [Consumer];
      const times = Array.from({ length: 400 }, (_, n) => beginMs + DAY_MS + n * everyMs);
      // Every tenth flush is overtaken by the next.
      for (let n = 0; n < times.length; n += 10) {
        times.splice(n, 2, times[n + 1] ?? 0, times[n] ?? 0);
      }
      for (const timeMs of times) {
        const id = idsAt(timeMs)(0, payer.consumerId, randomUUID());
        const [outcome] = await post(ledger.database, [{ ...newDraft(payer, 3), id }]);
        assert.equal(outcome?.kind, 'posted');
      }
      for (const n of [0, 100, 101, 102, 205, 399]) {
        const timeMs = beginMs + DAY_MS + n * everyMs;
        assert.equal(await spentBefore(ledger.database, payer, timeMs), 3 * n);
        const read = await rowsRead(payer, timeMs);
        assert.ok(read > 0 && read <= 6, `${read} charges for the total before charge ${n}`);
      }
    });
  }

  it("is exact where Postgres' clock was set back by hours", async () => {
    const [payer] = (await newConsumers(client, 1, 1_000_000)) as [Consumer];
    const hoursMs = [0, 1, 2, 3, 1.5, 2.5, 3.5, 0.5, 4].map((hours) => hours * HOUR_MS);
    const times = hoursMs.map((ms) => beginMs + 5 * DAY_MS + ms);
    for (const timeMs of times) {
      const id = idsAt(timeMs)(0, payer.consumerId, randomUUID());
      const [outcome] = await post(ledger.database, [{ ...newDraft(payer, 3), id }]);
      assert.equal(outcome?.kind, 'posted');
    }
    for (const timeMs of times) {
      const earlier = times.filter((time) => time < timeMs).length;
      assert.equal(await spentBefore(ledger.database, payer, timeMs), 3 * earlier);
    }
  });

  async function setDisorder(text: string): Promise<void> {
    await client.query('update farebox.consumers set disorder = $2 where id = $1', [
      consumer.consumerId,
      text,
    ]);
  }

  async function rowsRead(payer: Consumer, timeMs: number): Promise<number> {
    const plans = await explaining.plansOf((connection) => spentBefore(connection, payer, timeMs));
    return plans.map(rowsOf).reduce((sum, rows) => sum + rows, 0);
  }
});

function rowsOf(plan: PlanNode): number {
  return nodesOf(plan)
    .filter((node) => (node['Relation Name'] ?? '').startsWith('charges'))
    .map(
      (node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    )
    .reduce((sum, rows) => sum + rows, 0);
}
