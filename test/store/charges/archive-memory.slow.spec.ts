/**
 * The archive of a month in which one consumer made most of the charges: PostgreSQL's memory does not grow
 * with them.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';

const CHARGES = 400_000;
/** A charge that is kept in memory takes more than 100 bytes. */
const KB_MAX = 32 * 1024;
const LOOK_EVERY_MS = 20;
const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);

/** Many charges of $0.000001 behind the first one. */
const REPEAT = `
  insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash, request_fingerprint, id,
    consumer_id, developer, ledger, receipt_key, tool)
  select amount_micros, spent_micros + n, balance_micros - n, idempotency_hash, request_fingerprint,
    uuidv7(make_interval(secs => $2 - extract(epoch from now()) + 2 + n * 1000000.0 / $1)), consumer_id, developer, ledger,
    receipt_key, tool
  from (select * from farebox.charges) c, generate_series(1, $1::int8) n
`;

describe('an archive of a month with very many charges of one consumer', function () {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let client: Client;

  before(async function () {
    // Only Linux tells what a process of PostgreSQL uses.
    if (process.platform !== 'linux') this.skip();
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await harness?.close();
    await testDatabase?.drop();
  });

  it('takes little memory', async () => {
    await ensureChargePartitions(testDatabase.url, OLD_MS);
    const [developer, consumer] = await harness.parties(2);
    assert.ok(developer && consumer);
    await harness.topUp(consumer, 2 * CHARGES);
    await harness.charge([{ consumer, developer, amount: 1, timeMs: OLD_MS + 1_000 }]);
    await client.query(REPEAT, [CHARGES, OLD_MS / 1_000]);
    while ((await rollUp(harness.database)).hasMore);

    const month = new Date(OLD_MS).toISOString().slice(0, 7);
    const archiving = archiveMonth(harness.database, month, Date.now());
    let kilobytes = 0;
    // Memory that grows with the charges is held until the end, so a look now and then sees it.
    while (!(await Promise.race([archiving, delay(LOOK_EVERY_MS)]))) {
      const { rows } = await client.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      );
      kilobytes = Math.max(kilobytes, ...rows.map(({ pid }) => anonymousOf(pid)));
    }
    assert.partialDeepStrictEqual(await archiving, { kind: 'archived', charges: CHARGES + 1 });
    assert.ok(kilobytes < KB_MAX, `${kilobytes} KB`);
    const { rows } = await client.query('select stretches from farebox.archived_spending');
    assert.deepEqual(rows, [{ stretches: `{[0,${CHARGES + 1})}` }]);
  });
});

/** In kilobytes; 0 when it has ended. */
function anonymousOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}
