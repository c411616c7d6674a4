/** How many rows lists of leases, refusals and spending read when an account has very many keys and leases. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { asMicros } from '../../../src/domain/money.ts';
import type { Database } from '../../../src/store/database.ts';
import { listKeyDays, type KeyDaySpending } from '../../../src/store/budgets/usage.ts';
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
    await client.query(
      `insert into farebox.key_spending
         (ledger, consumer_id, spend_key, developer, tool, span, begins_at, amount_micros, charges)
       select $1, $2, n, $3, 'search', span, begins_at, 5, 1 from generate_series(1, $4::int) n,
         (values ('all', '-infinity'::timestamptz), ('day', '2026-03-10 UTC'), ('day', '2026-03-11 UTC')) s (span, begins_at)`,
      [...of, developerNumber, ROWS],
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
    'what its keys spent by day': (database) => listSpending(database),
    'what its keys spent by day, from the middle of the file': async (database) =>
      listSpending(database, {
        number: ROWS / 2,
        keyId: '',
        keyName: null,
        day: '2026-03-10T00:00:00.000Z',
        developerNumber,
        developerId: '',
        tool: 'search',
        spentMicros: asMicros(5),
        charges: 1,
      }),
  };

  /** The keys in their order, with two days each. A page begins behind the first day of a key, or with it. */
  async function listSpending(database: Database, after?: KeyDaySpending): Promise<number> {
    const node = { ...payer, root: null, number: 1 };
    const rows = await listKeyDays(database, node, {}, { limit: PAGE.limit, after });
    const first = after ? ROWS / 2 : 1;
    assert.deepEqual(
      rows.map(({ number, day }) => `${number} ${day.slice(0, 10)}`),
      Array.from({ length: PAGE.limit + 1 }, (_, place) => place)
        .map((place) => `${first + Math.floor(place / 2)} 2026-03-${10 + (place % 2)}`)
        .slice(after ? 1 : 0, after ? undefined : -1),
    );
    return rows.length;
  }

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
