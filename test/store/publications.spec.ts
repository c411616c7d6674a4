/** What is published for all tables arrives whole at a subscriber, and stops nothing here. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { archiveMonth } from '../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import { expireHolds } from '../../src/store/holds/expire-holds.ts';
import { newConsumers, newDraft, post } from '../support/charge-drafts.ts';
import { capturable, capturing, postEntries } from '../support/hold-drafts.ts';
import { startOwnPostgres } from '../support/own-servers.ts';
import { until } from '../support/stack.ts';

/** All rows, as one text, of every table that charges, holds and rollups write to. */
const CONTENTS = `
  select (select string_agg(t::text, ',' order by t::text) from farebox.consumers t) as consumers,
    (select string_agg(t::text, ',' order by t::text) from farebox.charges t) as charges,
    (select string_agg(t::text, ',' order by t::text) from farebox.holds t) as holds,
    (select string_agg(t::text, ',' order by t::text) from farebox.hold_expiries t) as expiries,
    (select string_agg(t::text, ',' order by t::text) from farebox.earnings t) as earnings,
    (select string_agg(t::text, ',' order by t::text) from farebox.earnings_tail t) as earnings_tail,
    (select string_agg(t::text, ',' order by t::text) from farebox.attribution_tail t) as attribution_tail,
    (select string_agg(t::text, ',' order by t::text) from farebox.key_spending_tail t) as key_spending_tail
`;

const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);
const MONTH = new Date(OLD_MS).toISOString().slice(0, 7);

describe('a publication for all tables', () => {
  let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;
  let database: Database;
  let publisher: Client;
  let subscriber: Client;

  before(async () => {
    postgres = await startOwnPostgres({ wal_level: 'logical' });
    publisher = new Client({ connectionString: asSuperuser(new URL(postgres.url).pathname) });
    await publisher.connect();
    await publisher.query('create database copy');
    await migrate(asSuperuser('/copy'));
    subscriber = new Client({ connectionString: asSuperuser('/copy') });
    await subscriber.connect();
    database = await createDatabase(postgres.url, { maxPoolSize: 2, onError: () => {} });
  });

  after(async () => {
    await database?.end();
    await subscriber?.query('alter subscription copy disable').catch(() => {});
    await subscriber?.end();
    await publisher?.end();
    await postgres?.remove();
  });

  function asSuperuser(pathname: string): string {
    const url = new URL(postgres.superuserUrl);
    url.pathname = pathname;
    return url.href;
  }

  it('lets charges, holds and roll-ups continue, and a subscriber gets all of them', async () => {
    await publisher.query('create publication everything for all tables');
    const publisherUrl = asSuperuser(new URL(postgres.url).pathname);
    // A subscription in the same server would wait for itself if it made the slot.
    await publisher.query(`select pg_create_logical_replication_slot('copy', 'pgoutput')`);
    await subscriber.query(`
      create subscription copy connection '${publisherUrl}' publication everything
      with (create_slot = false, copy_data = false)
    `);
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    const consumers = await newConsumers(client, 3, 1_000_000);
    for (let n = 0; n < 3; n += 1) {
      await post(
        database,
        consumers.map((consumer) => newDraft(consumer, 10)),
      );
      for (const consumer of consumers) {
        await postEntries(database, [capturing(await capturable(database, consumer, 10))]);
      }
      // Deletes from the tails, and adds to the sums.
      await rollUp(database);
    }
    await client.query('update farebox.hold_expiries set due_at = now()');
    await expireHolds(database);
    await client.end();
    const tails = await publisher.query('select from farebox.earnings_tail');
    assert.equal(tails.rows.length, 0);

    const here = (await publisher.query(CONTENTS)).rows[0];
    await until(async () => {
      const { rows } = await subscriber.query(CONTENTS);
      return JSON.stringify(rows[0]) === JSON.stringify(here);
    });
    // The subscriber lacks the tables that these make.
    await ensureChargePartitions(postgres.url, OLD_MS);
    assert.equal((await archiveMonth(database, MONTH, Date.now())).kind, 'archived');
  });
});
