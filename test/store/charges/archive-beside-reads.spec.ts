/** A month is archived while its statement and its total wait for their turn: they do not lose its charges. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { takeTurn, takeTurnInSteps } from '../../../src/store/accounts/turns.ts';
import { spentBefore } from '../../../src/store/balance/spent.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import type { Connection } from '../../../src/store/database.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import { readConsumerStatement } from '../../../src/store/earnings/statements.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';

const NOW = new Date();
const monthAt = (ahead: number): number =>
  Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() + ahead);
const nameAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString().slice(0, 7);
const FIRST = -7;
const SECOND = -6;
const THIRD = -5;

describe('an archive beside reads', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
  });
  after(async () => {
    await harness?.close();
    await testDatabase?.drop();
  });

  it('leaves a statement and a total as they were', async () => {
    const { database } = harness;
    for (const month of [FIRST, SECOND]) {
      await ensureChargePartitions(testDatabase.url, monthAt(month));
    }
    const [developer, party] = await harness.parties(2);
    assert.ok(developer && party);
    await harness.topUp(party, 1_000);
    const times = [monthAt(FIRST) + 1_000, monthAt(SECOND) + 1_000, Date.now()];
    for (const timeMs of times) {
      await harness.charge([{ consumer: party, developer, amount: 100, timeMs }]);
    }
    while ((await rollUp(database)).hasMore);
    const consumer = { ledger: party.ledger, consumerId: party.consumer };

    /** In its turn, with a month that is archived as soon as the turn lets it. */
    async function besideArchive<T>(
      take: typeof takeTurn,
      month: number,
      read: (connection: Connection) => Promise<T>,
    ): Promise<T> {
      let archiving: ReturnType<typeof archiveMonth> | undefined;
      const found = await take(database, party?.accountId ?? '', async (connection) => {
        let isOver = false;
        archiving = archiveMonth(database, nameAt(month), Date.now()).finally(() => {
          isOver = true;
        });
        await until(async () => isOver || (await isDetaching()));
        return read(connection);
      });
      assert.equal((await archiving)?.kind, 'archived');
      return found;
    }

    const memory = new ClosedCharges();
    const first = { fromMs: monthAt(FIRST), toMs: monthAt(SECOND) };
    const closed = await memory.countClosed(database, consumer, first);
    const statement = (connection: Connection) =>
      readConsumerStatement(connection, memory, consumer, first, closed);
    const before = await statement(database);
    assert.deepEqual([before.openingMicros, before.closingMicros], [0, -100]);
    assert.deepEqual(await besideArchive(takeTurn, FIRST, statement), before);
    // Until the first charge of the month. Once it is archived, its sum is all that is known.
    const total = (connection: Connection) =>
      spentBefore(connection, consumer, monthAt(SECOND) + 1);
    const totalBefore = await total(database);
    assert.equal(totalBefore, 100);
    assert.equal(
      await besideArchive(takeTurnInSteps, SECOND, (connection) => total(connection)),
      totalBefore,
    );
  });

  it('waits for a vacuum of the month, while its charges can be read', async () => {
    const { database } = harness;
    const vacuum = new Client({ connectionString: testDatabase.url });
    await vacuum.connect();
    const table = `farebox.charges_${nameAt(THIRD).replace('-', '_')}`;
    await vacuum.query('begin');
    // As VACUUM does.
    await vacuum.query(`lock table ${table} in share update exclusive mode`);
    let isOver = false;
    const archiving = archiveMonth(database, nameAt(THIRD), Date.now()).finally(() => {
      isOver = true;
    });
    await until(async () => isOver || (await isWaiting('share update exclusive')));
    assert.equal(isOver, false);
    await harness.client.query(`select from ${table}`);
    await vacuum.end();
    assert.equal((await archiving).kind, 'archived');
  });

  const isDetaching = () => isWaiting('detach partition');

  /** Whether a statement with these words waits for a lock. */
  async function isWaiting(words: string): Promise<boolean> {
    const { rowCount } = await harness.client.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query ~ $1`,
      [words],
    );
    return rowCount !== 0;
  }
});
