/** `farebox rollup rebuild`: after any damage, the sums agree with the charges again. */
import assert from 'node:assert/strict';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../support/earnings-harness.ts';
import { proveBooks } from '../support/books.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

const MIDNIGHT = Math.floor(Date.now() / 86_400_000) * 86_400_000;

describe('farebox rollup rebuild', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let parties: Party[];

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    parties = await harness.parties(3);
    for (const party of parties) await harness.topUp(party, 1_000);
  });
  after(async () => {
    await harness?.close();
    await testDatabase?.drop();
  });

  /** Each of the three by every other one, in one flush. */
  const flush = () =>
    harness.charge(
      parties.flatMap((consumer) =>
        parties.map((developer) => ({ consumer, developer, amount: 7 })),
      ),
    );
  const rebuild = () => farebox(['rollup', 'rebuild'], { env: { DATABASE_URL: testDatabase.url } });
  const prove = () => proveBooks({ DATABASE_URL: testDatabase.url }, { processor: false });

  it('repairs sums that are wrong, missing or orphaned, and leaves the tails alone', async () => {
    await flush();
    await rollUp(harness.database);
    await flush();
    await harness.client.query(`
      update farebox.earnings set amount_micros = amount_micros + 1 where span = 'all';
      delete from farebox.earnings where span = 'hour';
      insert into farebox.earnings values (77, 'day', 'nothing', now(), 5, 5);
      update farebox.top_up_earnings set charges = 0;
    `);
    await assert.rejects(prove(), /checks? failed:/);
    const tailRows = await harness.tailRows();
    assert.equal(await rebuild(), 'Rebuilt the sums of earnings.\n');
    assert.equal(await harness.tailRows(), tailRows);
    await prove();
    await harness.compare(parties, MIDNIGHT);
  });

  it('is invisible to concurrent reads, charges and roll-ups', async () => {
    const rebuilding = rebuild();
    // About as long as the rebuild takes.
    for (let round = 0; round < 12; round += 1) {
      await Promise.all([flush(), rollUp(harness.database), flush(), rollUp(harness.database)]);
      await harness.compare(parties, MIDNIGHT);
    }
    await rebuilding;
    await harness.compare(parties, MIDNIGHT);
    while ((await rollUp(harness.database)).hasMore);
    await harness.compare(parties, MIDNIGHT);
    await prove();
  });
});
