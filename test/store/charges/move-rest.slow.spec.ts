/** Hundreds of thousands of rows without a partition are moved to their months while charges and captures continue. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { Client } from 'pg';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';

const MISPLACED = 200_000;
const HOLDS = 20_000;
/** The wait for a lock may take half a second; a busy machine gets more. */
const STALL_MS_MAX = 2_500;

describe('rows in the default partitions', () => {
  let ledger: TestLedger;
  let client: Client;
  let consumer: Consumer;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    [consumer] = (await newConsumers(client, 1, 1_000_000_000)) as [Consumer];
    const now = new Date();
    const beginMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 20);
    await client.query(
      `insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id,
         developer, ledger, receipt_key, tool, metadata)
       select 1, n, 0, (lpad(to_hex($1::int8 + n * 5000), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid,
         uuidv7(), 1, 0, 1, 'search', ''
       from generate_series(1, ${MISPLACED}) n`,
      [beginMs],
    );
    await client.query(
      `insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
         developer, ledger, tool, metadata)
       select 1, 1, 1, now() + interval '1 hour', uuidv7(), uuidv7(), n, 0, 'search', ''
       from generate_series(1, ${HOLDS}) n`,
    );
  });
  after(async () => {
    await client.end();
    await ledger.drop();
  });

  it(`move, ${MISPLACED} of them, while no charge waits for all of them`, async () => {
    const moved = new AbortController();
    let charged = 0;
    let longestMs = 0;
    const charge = async () => {
      while (!moved.signal.aborted) {
        const startedAt = performance.now();
        const [outcome] = await post(ledger.database, [newDraft(consumer, 1)]);
        assert.equal(outcome?.kind, 'posted');
        longestMs = Math.max(longestMs, performance.now() - startedAt);
        charged += 1;
        await turn();
      }
    };
    const capture = async () => {
      let captures = 0;
      while (!moved.signal.aborted) {
        const developer = 1 + ((captures * 7_919) % HOLDS);
        const { rowCount } = await client.query(
          'update farebox.holds set captures = captures + 1 where developer = $1',
          [developer],
        );
        assert.equal(rowCount, 1);
        captures += 1;
      }
      return captures;
    };
    const charging = charge();
    const capturing = capture();
    const beganAt = performance.now();
    const { made, putOff } = await ensureChargePartitions(ledger.url, Date.now());
    const movedMs = performance.now() - beganAt;
    moved.abort();
    await charging;
    const captures = await capturing;
    assert.deepEqual(putOff, []);
    assert.ok(made.length >= 8 && charged > 0 && captures > 0);
    const stallMsMax = Math.max(STALL_MS_MAX, movedMs / 4);
    assert.ok(longestMs < stallMsMax, `a charge waited for ${Math.round(longestMs)} ms`);
    assert.deepEqual(await countsOf('charges', 'spent_micros'), {
      rest: 0,
      rows: MISPLACED + charged,
      sum: (MISPLACED * (MISPLACED + 1) + charged * (charged + 1)) / 2,
    });
    assert.deepEqual(await countsOf('holds', 'captures'), { rest: 0, rows: HOLDS, sum: captures });
  });

  async function countsOf(table: 'charges' | 'holds', column: string) {
    const { rows } = await client.query<Record<string, string>>(
      `select count(*) as rows, sum(${column}) as sum,
         count(*) filter (where tableoid = 'farebox.${table}_rest'::regclass) as rest
       from farebox.${table}`,
    );
    return Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, n]) => [name, Number(n)]));
  }
});
