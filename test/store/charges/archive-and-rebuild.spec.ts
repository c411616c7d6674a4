/** A month is archived while the sums of earnings are rebuilt: its earnings stay, although its charges are gone. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { auditLedger } from '../../../src/store/audit/ledger-checks.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';

const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);
const MONTH = new Date(OLD_MS).toISOString().slice(0, 7);

describe('an archive beside a rebuild', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let reader: Client;

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    reader = new Client({ connectionString: testDatabase.url });
    await reader.connect();
  });
  after(async () => {
    await reader?.end();
    await harness?.close();
    await testDatabase?.drop();
  });

  const isWaiting = (isDetaching: boolean) =>
    until(async () => {
      const { rowCount } = await harness.client.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and (query ~ 'detach partition') = $1`,
        [isDetaching],
      );
      return rowCount !== 0;
    });

  it('keeps the earnings of the month', async () => {
    await ensureChargePartitions(testDatabase.url, OLD_MS);
    const [developer, consumer] = await harness.parties(2);
    assert.ok(developer && consumer);
    await harness.topUp(consumer, 100);
    await harness.charge([{ consumer, developer, amount: 70, timeMs: OLD_MS + 1_000 }]);
    while ((await rollUp(harness.database)).hasMore);

    // Somebody reads the month, so that it cannot be detached yet.
    await reader.query('begin');
    await reader.query(`select from farebox.charges_${MONTH.replace('-', '_')}`);
    const archiving = archiveMonth(harness.database, MONTH, Date.now());
    await isWaiting(true);
    const rebuilding = rebuildRollups(harness.database);
    await isWaiting(false);
    await reader.query('commit');
    assert.equal((await archiving).kind, 'archived');
    await rebuilding;

    const { rows } = await harness.client.query(
      `select sum(amount_micros)::int as micros from farebox.earnings where span = 'all' and developer = $1`,
      [developer.developerNumber],
    );
    assert.deepEqual(rows, [{ micros: 70 }]);
    assert.deepEqual(await auditLedger(harness.database, { parts: ['earnings'] }), []);
  });
});
