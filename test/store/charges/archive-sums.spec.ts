/** Archives of months whose charges are more, over all accounts, than a JavaScript number can hold exactly. */
import assert from 'node:assert/strict';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';

/** More than half of what a number can hold. */
const MICROS = 5_000_000_000_000_001;
const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);

describe('an archive of very large sums', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
  });
  after(async () => {
    await harness.close();
    await testDatabase.drop();
  });

  it('is made, with the exact sum of all accounts', async () => {
    await ensureChargePartitions(testDatabase.url, OLD_MS);
    const [developer, ...consumers] = await harness.parties(3);
    assert.ok(developer);
    for (const consumer of consumers) {
      await harness.topUp(consumer, MICROS);
      await harness.charge([{ consumer, developer, amount: MICROS, timeMs: OLD_MS + 1_000 }]);
    }
    while ((await rollUp(harness.database)).hasMore);

    const month = new Date(OLD_MS).toISOString().slice(0, 7);
    assert.deepEqual(await archiveMonth(harness.database, month, Date.now()), {
      kind: 'archived',
      charges: 2,
      amountMicros: 10_000_000_000_000_002n,
      table: `farebox_archive.charges_${month.replace('-', '_')}`,
      holdTables: [],
      toMs: Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 5),
    });
    const parts = ['budgets', 'charges', 'earnings'] as const;
    assert.deepEqual(await examineLedger(harness.database, { parts }), []);
  });
});
