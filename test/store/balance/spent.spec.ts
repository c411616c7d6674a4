/** What a consumer had spent at an instant: exact, though charges close in time are swapped, and cheap. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { spentBefore } from '../../../src/store/balance/spent.ts';
import { newConsumers, type Consumer } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { nodesOf, plansOf } from '../query-plans.ts';

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
      `update farebox.consumers set spent_micros = (select sum(amount_micros) from farebox.charges)
       where id = $1`,
      [consumer.consumerId],
    );
    await client.query('analyze farebox.charges');
  });

  after(async () => {
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

  it('reads the charges of the minutes around it, and no others', async () => {
    const plans = await plansOf(ledger.database, client, (connection) =>
      spentBefore(connection, consumer, Math.floor(beginMs + SPAN_MS / 2)),
    );
    const read = plans
      .flatMap(nodesOf)
      .filter((node) => (node['Relation Name'] ?? '').startsWith('charges'))
      .map(
        (node) =>
          (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      )
      .reduce((sum, rows) => sum + rows, 0);
    assert.ok(read > 0 && read < PER_SECOND * 130, String(read));
  });
});
