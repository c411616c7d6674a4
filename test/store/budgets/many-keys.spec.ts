/** What is read to list the leases and refusals of an account that has made very many keys and leases. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Database } from '../../../src/store/database.ts';
import { listLeases } from '../../../src/store/leases/lease.ts';
import { listKeyRefusals } from '../../../src/store/refusals/key-refusals.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const ROWS = 5_000;
const PAGE = { limit: 20, beforeId: undefined };
const REFUSED = 150;
/** Each key that was refused, once, and a page. */
const READ_MAX = REFUSED + 2 * PAGE.limit;

describe('an account with many keys and leases', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;
  let developerNumber: number;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    const of = [payer.ledger, payer.consumerId];
    const { rows } = await client.query<{ number: number }>(
      'select developer_number as number from farebox.accounts where id = $1',
      [payer.accountId],
    );
    developerNumber = rows[0]?.number ?? assert.fail();
    // Each would be an entry of the audit log.
    await client.query('alter table farebox.spend_keys disable trigger user');
    await client.query(
      `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
       select uuidv7(), sha256(n::text::bytea), $3, $1, $2, n, 1, '{1}', 'last' from generate_series(1, $4::int) n`,
      [...of, payer.accountId, ROWS],
    );
    await client.query(
      `with held as (
         insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, held_micros, balance_micros,
           state, expires_at, spend_key)
         select uuidv7(), $1, $2, $3, '', 10, 0, 0, 2, now(), n from generate_series(1, $4::int) n
         returning id, ledger, consumer_id, developer
       )
       insert into farebox.leases (id, ledger, consumer_id, developer, tools, asked_prices, prices, highest_prices)
       select id, ledger, consumer_id, developer, '{search}', '{null}', '{1}', '{1}' from held`,
      [...of, developerNumber, ROWS],
    );
    await client.query(
      `insert into farebox.key_refusals (ledger, consumer_id, hour, spend_key, code, count, last_at)
       select $1, $2, date_trunc('hour', now()), n, 'spend_limit_reached', 1, now() from generate_series(1, $3::int) n`,
      [...of, REFUSED],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const lists: Readonly<Record<string, (database: Database) => Promise<number>>> = {
    'the leases on its balance': async (database) =>
      (await listLeases(database, { ...payer, kind: 'consumer' }, PAGE)).length,
    'the leases that it placed': async (database) =>
      (await listLeases(database, { kind: 'developer', developerNumber }, PAGE)).length,
    'what its keys were refused': async (database) => {
      const node = { ...payer, root: null, number: 1 };
      const refusals = await listKeyRefusals(database, node, { hours: 24, limit: PAGE.limit });
      return refusals.length;
    },
  };

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(`lists ${statistics}`, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      for (const [what, list] of Object.entries(lists)) {
        it(what, async () => {
          const plans = await plansOf(ledger.database, client, async (database) => {
            assert.equal(await list(database), PAGE.limit);
          });
          const rows = rowsReadOf('spend_keys', plans);
          assert.ok(rows > 0 && rows <= READ_MAX, `${rows} keys were read`);
        });
      }
    });
  }
});
