/** What statements read: the consumer's own movements, and those of no other consumer; sums of earnings. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import {
  readConsumerStatement,
  readDeveloperStatement,
} from '../../../src/store/earnings/statements.ts';
import { newConsumers, type Consumer } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { nodesOf, plansOf, rowsReadOf } from '../query-plans.ts';

const REFUNDS = 200;
const OF_OTHERS = 20_000;
const TOOLS = 20;
const DAYS = 1_000;

describe('the statement of a consumer with refunds', () => {
  let ledger: TestLedger;
  let client: Client;
  let consumer: Consumer;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    const [own, other] = (await newConsumers(client, 2, 0)) as [Consumer, Consumer];
    consumer = own;
    await client.query('alter table farebox.movements disable trigger user');
    await client.query('alter table farebox.top_ups disable trigger user');
    await client.query(
      `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros)
       select $1, $2, uuidv7(), 'charge_refund', 1 from generate_series(1, $3) n`,
      [other.ledger, other.consumerId, OF_OTHERS],
    );
    await client.query(
      `insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
       values ($2, 'payer@example.com', $1, $2, uuidv7())`,
      [own.ledger, own.consumerId],
    );
    // Each top-up of $10.00, with $1.00 of tax, was refunded in two movements.
    await client.query(
      `with top_ups as (
         insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, tax_micros)
         select md5('t' || n)::uuid, $1, $2, $2, 'checkout', 'refunded', 10000000, 1000000
         from generate_series(1, $3) n returning id
       )
       insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, taken_micros, gross_micros, processor_id)
       select uuidv7(), $1, $2, id, 'refund', 'made', 10000000, 10000000, 11000000, 're_' || id from top_ups`,
      [own.ledger, own.consumerId, REFUNDS],
    );
    await client.query(
      `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, tax_micros, top_up_id, reversal_id)
       select ledger, consumer_id, uuidv7(), 'refund', -5000000, -500000, top_up_id, id
       from farebox.reversals, generate_series(1, 2)`,
    );
    await client.query('analyze farebox.movements, farebox.reversals, farebox.top_ups');
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('has the tax of refunds, and reads the movements once for each need', async () => {
    const now = new Date();
    const month = {
      fromMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth()),
      toMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
    };
    const closedCharges = new ClosedCharges();
    const closed = await closedCharges.countClosed(ledger.database, consumer, month);
    const plans = await plansOf(ledger.database, client, async (connection) => {
      const { movements } = await readConsumerStatement(
        connection,
        closedCharges,
        consumer,
        month,
        closed,
      );
      assert.equal(movements.length, 2 * REFUNDS);
      assert.equal(
        movements.reduce((total, { taxMicros }) => total + taxMicros, 0),
        -1_000_000 * REFUNDS,
      );
    });
    const read = plans
      .flatMap(nodesOf)
      .filter((node) => node['Relation Name'] === 'movements')
      .map(
        (node) =>
          node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)),
      );
    // For the opening balance and for the month.
    assert.ok(read.reduce((total, rows) => total + rows, 0) <= 2 * 2 * REFUNDS, read.join(' '));
  });
});

describe('the statement of a developer who has earned for years', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    await client.query(
      `insert into farebox.earnings (developer, span, tool, begins_at, amount_micros, charges)
       select 1, s.span, 'tool ' || t.n, s.begins_at, s.days * 10, s.days
       from generate_series(1, $1::int) t (n) cross join (
         select 'day' as span, date_trunc('month', now(), 'UTC') - make_interval(days => d) as begins_at, 1 as days
         from generate_series(1, $2::int) d
         union all select 'all', '-infinity', $2
       ) s`,
      [TOOLS, DAYS],
    );
    await client.query('analyze farebox.earnings');
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('opens with the sums of all time, less those since the month began', async () => {
    const now = new Date();
    const month = {
      fromMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth()),
      toMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
    };
    const plans = await plansOf(ledger.database, client, async (connection) => {
      const developer = { developerNumber: 1 };
      const statement = await readDeveloperStatement(connection, developer, month);
      assert.equal(statement.openingMicros, 10 * TOOLS * DAYS);
      assert.equal(statement.closingMicros, statement.openingMicros);
    });
    const rows = rowsReadOf('earnings', plans);
    assert.ok(rows >= TOOLS && rows <= 2 * TOOLS, `${rows} sums`);
  });
});
