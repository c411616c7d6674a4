/** What is read of a consumer with very many movements and holds, nearly all of them old. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { sql, type Database } from '../../../src/store/database.ts';
import { getBooks } from '../../../src/store/balance/account-books.ts';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import { readConsumerStatement } from '../../../src/store/earnings/statements.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { nodesOf, plansOf, rowsReadOf, type PlanNode } from '../query-plans.ts';

const OLD = 10_000;
const OLD_MICROS = 10;
const TOP_UP_MICROS = 10_000_000;
const HELD_MICROS = 1_000;
const READ_MAX = 50;
/** A day and a half. Its holds and those of a day before may be open. */
const UNSWEPT_MS = 36 * HOUR_MS;

const now = new Date();
const monthAt = (ahead: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead);

describe('a consumer with many old movements and holds', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    const of = [payer.ledger, payer.consumerId];
    await client.query(
      `with refunds as (
         insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason, created_at)
         select $1, $2, uuidv7($5::timestamptz - now() - interval '1 day'), 'charge_refund', $3, 'chg_' || n,
           $5::timestamptz - interval '1 day'
         from generate_series(1, $4::int) n returning id
       )
       insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros)
       select $1, $2, id, (n - 1) * $3::int8, n * $3::int8 from (select id, row_number() over () as n from refunds) r`,
      [...of, OLD_MICROS, OLD, new Date(monthAt(-1))],
    );
    await client.query(
      'update farebox.consumers set credited_micros = $3 where ledger = $1 and id = $2',
      [...of, OLD * OLD_MICROS],
    );
    await payer.topUp(TOP_UP_MICROS);
    await client.query(
      `insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, held_micros, balance_micros,
         state, expires_at)
       select uuidv7(interval '-40 days'), $1, $2, 1, 'search', $3, 0, 0, 2, now() - interval '39 days'
       from generate_series(1, $4::int)`,
      [...of, HELD_MICROS, OLD],
    );
    // No worker has seen yet that it is due.
    await client.query(
      `with placed as (
         insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, held_micros, balance_micros,
           state, placed_at, expires_at)
         select uuidv7(-$4::interval - interval '1 day'), $1, $2, 1, 'search', $3, $3, 0, 0,
           now() - $4::interval - interval '1 day', now() - $4::interval
         returning id, expires_at
       )
       insert into farebox.hold_expiries (ledger, due_at, developers, holds) select $1, expires_at, '{1}', array[id] from placed`,
      [...of, HELD_MICROS, `${UNSWEPT_MS} ms`],
    );
    await client.query(
      `update farebox.consumers set held_micros = $3, reserved_micros = $3 where ledger = $1 and id = $2`,
      [...of, HELD_MICROS],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(statistics, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      it('is shown to operators without reading them', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          assert.deepEqual(await getBooks(database, payer), {
            creditedMicros: TOP_UP_MICROS + OLD * OLD_MICROS,
            spentMicros: 0,
            heldMicros: HELD_MICROS,
            refundedMicros: 0,
            heldByHoldsMicros: HELD_MICROS,
            heldByDisputesMicros: 0,
            openHolds: 1,
            debtMicros: 0,
            movements: [
              { kind: 'charge_refund', count: OLD, amountMicros: OLD * OLD_MICROS },
              { kind: 'top_up', count: 1, amountMicros: TOP_UP_MICROS },
            ],
          });
        });
        assertFewRead(plans);
      });

      it('has a statement that reads its own month only', async () => {
        const month = { fromMs: monthAt(0), toMs: monthAt(1) };
        const plans = await plansOf(ledger.database, client, async (database) => {
          const statement = await read(database, month);
          assert.equal(statement.openingMicros, OLD * OLD_MICROS);
          assert.equal(statement.movements.length, 1);
          assert.equal(statement.closingMicros, TOP_UP_MICROS + OLD * OLD_MICROS);
        });
        assertFewRead(plans);
      });

      it('has an earlier statement that reads nothing later', async () => {
        const month = { fromMs: monthAt(-3), toMs: monthAt(-2) };
        const plans = await plansOf(ledger.database, client, async (database) => {
          const statement = await read(database, month);
          assert.deepEqual([statement.openingMicros, statement.closingMicros], [0, 0]);
        });
        assertFewRead(plans);
      });
    });
  }

  describe('changed by hand', () => {
    it('has sums that follow', async () => {
      const own = sql.fragment`ledger = ${payer.ledger} and consumer_id = ${payer.consumerId}`;
      await ledger.database.query(sql.typeAlias('nothing')`
        update farebox.movements set created_at = created_at - interval '40 days' where ${own} and kind = 'charge_refund'
      `);
      const earlier = { fromMs: monthAt(-2), toMs: monthAt(-1) };
      assert.equal((await read(ledger.database, earlier)).openingMicros, OLD * OLD_MICROS);
      await ledger.database.query(sql.typeAlias('nothing')`
        delete from farebox.movements where ${own} and kind = 'charge_refund'
      `);
      assert.equal((await read(ledger.database, earlier)).openingMicros, 0);
      const { movements } = await getBooks(ledger.database, payer);
      assert.deepEqual(
        movements.map(({ kind }) => kind),
        ['top_up'],
      );
    });
  });

  const read = async (database: Database, month: { fromMs: number; toMs: number }) => {
    const closedCharges = new ClosedCharges();
    const closed = await closedCharges.countClosed(ledger.database, payer, month);
    return readConsumerStatement(database, closedCharges, payer, month, closed);
  };
});

function assertFewRead(plans: readonly PlanNode[]): void {
  const tables = new Set(
    plans
      .flatMap(nodesOf)
      .map((node) => node['Relation Name'] ?? '')
      .filter((name) => /^(movement|hold)/.test(name)),
  );
  assert.ok(tables.size > 0);
  for (const table of tables) {
    const rows = rowsReadOf(table, plans);
    assert.ok(rows < READ_MAX, `${rows} rows of ${table}`);
  }
}
