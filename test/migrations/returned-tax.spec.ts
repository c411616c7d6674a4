/** The tax of refunds and disputes that were recorded before movements kept it. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { migrate } from '../../src/store/migrations.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/stack.ts';

const MIGRATIONS = join(import.meta.dirname, '../../migrations');

describe('a migration to movements with tax', () => {
  let database: TestDatabase;
  let client: Client;
  let before: string;

  beforeEach(async () => {
    database = await createEmptyDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    before = await mkdtemp(join(tmpdir(), 'farebox-migrations-'));
    await cp(MIGRATIONS, before, { recursive: true });
    const later = (await readdir(before)).filter((name) => /^\d/.test(name) && name >= '0024');
    for (const name of later) await rm(join(before, name));
    // Their triggers are on columns and tables of the later migrations.
    for (const name of ['refuse_change', 'set_returned_tax']) {
      await rm(join(before, `functions/${name}.sql`));
    }
  });
  afterEach(async () => {
    await client.end();
    await database.drop();
    await rm(before, { recursive: true });
  });

  it('gives the tax to the first movement, and again to the first one after a return', async () => {
    await migrate(database.url, before);
    await client.query(`
      with owner as (
        insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
        values (uuidv7(), 'payer@example.com', 0, uuidv7(), uuidv7()) returning id, ledger, consumer_id
      ), top_up as (
        insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, tax_micros)
        select uuidv7(), ledger, consumer_id, id, 'checkout', 'charged_back', 20000000, 1780000 from owner
        returning *
      ), reversal as (
        insert into farebox.reversals
          (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, gross_micros, processor_id)
        select uuidv7(), ledger, consumer_id, id, 'dispute', 'lost', 10, gross, 'dp_' || coalesce(gross, 0)
        from top_up, (values (15), (null)) as each (gross)
        returning *
      )
      insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id, reversal_id)
      select ledger, consumer_id, uuidv7(), case when micros < 0 then 'dispute' else 'dispute_returned' end, micros,
        top_up_id, id
      from (
        select r.*, micros from reversal r, (values (1, -4), (2, -6), (3, 10), (4, -10)) as taken (step, micros)
        order by r.id, step
      ) in_order
    `);
    await migrate(database.url);
    const { rows } = await client.query<{ taxes: string }>(`
      select string_agg(m.tax_micros::text, ' ' order by m.id) as taxes
      from farebox.movements m join farebox.reversals r on r.id = m.reversal_id
      group by r.id, r.gross_micros order by r.gross_micros
    `);
    assert.deepEqual(
      rows.map(({ taxes }) => taxes),
      ['-5 0 5 -5', '0 0 0 0'],
    );
  });
});
