/** Doctor reports faults in the sums of developers' earnings. */
import assert from 'node:assert/strict';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { rebuildRollups } from '../../../src/store/earnings/rollups.ts';
import { dropGuards, openPlantedBooks, type Planted, type PlantedBooks } from './planted-books.ts';
import { EARNINGS_FAULTS } from './plants/earnings.ts';

describe('farebox doctor --only earnings', () => {
  let books: PlantedBooks;
  let database: Database;
  let planted: Planted;

  before(async () => {
    books = await openPlantedBooks(1);
    database = await createDatabase(books.env['DATABASE_URL'] ?? '', {
      maxPoolSize: 1,
      onError: () => {},
    });
    planted = books.accounts[0] as Planted;
    await dropGuards(books.sql);
  });
  beforeEach(() => rebuildRollups(database));
  after(async () => {
    await database?.end();
    await books?.close();
  });

  for (const { what, statements, finds } of EARNINGS_FAULTS) {
    it(`finds ${what}, names the offender, and nothing else`, async () => {
      await books.plant(planted, statements);
      const found = await examineLedger(database, { parts: ['earnings'] });
      const subjects = {
        developer: `developer ${planted.developer}`,
        topUp: `top-up ${planted.manual}`,
      };
      assert.deepEqual(
        sorted(found.map(({ check, subject }) => `${check}: ${subject}`)),
        sorted(finds.map(([check, whom]) => `${check}: ${subjects[whom]}`)),
      );
    });
  }
});

const sorted = (lines: readonly string[]) => lines.toSorted();
