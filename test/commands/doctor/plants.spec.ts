/** Doctor reports each corruption of plants/, names the row, and reports nothing else. */
import { dropGuards, expectFindings, openPlantedBooks } from './planted-books.ts';
import { PLANTS } from './plants/all.ts';

for (const [part, plants] of PLANTS) {
  describe(`farebox doctor --only ${part}`, () => {
    it('finds each planted fault, names the offender, and nothing else', async () => {
      const books = await openPlantedBooks(plants.length, {
        MASTER_SECRET: `1:${'s'.repeat(32)}`,
      });
      try {
        await dropGuards(books.sql);
        await books.sql.query('insert into farebox.reconciliation (walked_until) values (now())');
        await expectFindings(books, part, plants);
      } finally {
        await books.close();
      }
    });
  });
}
