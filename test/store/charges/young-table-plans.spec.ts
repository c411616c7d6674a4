/**
 * A process keeps the plans of the charge and hold functions for days. Made while each table had one row, they must
 * still only probe indexes when the tables have grown, with any analyze in between.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { sql, type Connection, type Database } from '../../../src/store/database.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
} from '../../../src/store/charges/post-charges.ts';
import { postSpends } from '../../../src/store/charges/post-spends.ts';
import type { HoldEntry } from '../../../src/store/holds/hold-entry.ts';
import { postFittingEntries } from '../../../src/store/holds/post-hold-entries.ts';
import {
  newConsumers,
  newDraft,
  newKey,
  RECEIPT_KEY,
  replayWindow,
  type Consumer,
} from '../../support/charge-drafts.ts';
import { capturable, capturing, extending, placing, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { asSuperuser } from '../../support/stack.ts';
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { nodesOf, type PlanNode } from '../query-plans.ts';

/** What the functions and their triggers read. Their other tables are only written to. */
const HOT_TABLES = [
  'accounts',
  'approvals',
  'budget_details',
  'budgets',
  'charges',
  'consumers',
  'hold_expiries',
  'hold_extensions',
  'holds',
  'leases',
  'reversals',
  'spend_keys',
  'thresholds',
  'webhook_endpoints',
];
/** The table of a partition, by name. */
const tableOf = (relation: string) => relation.replace(/_(\d.*|rest)$/, '');
const GROWN_TO = 2_000;
/** Each case is about three consumers and nine entries at most; a read of a whole table finds GROWN_TO rows. */
const ROWS_READ_MAX = 9;
const CREDITED_MICROS = 1_000_000;
/** The limit of each consumer's budget, whose first mark is at 80 %. */
const LIMIT_MICROS = 100_000;

interface Case {
  readonly name: string;
  readonly run: (connection: Connection, consumers: readonly Consumer[]) => Promise<unknown>;
}

const drafts = (consumers: readonly Consumer[], amountMicros: number): ChargeDraft[] =>
  consumers.map((consumer) => ({ ...newDraft(consumer, amountMicros), ...newKey() }));

const CASES: readonly Case[] = [
  {
    name: 'charges that fit',
    run: (connection, consumers) =>
      postFittingCharges(connection, drafts(consumers, 1), RECEIPT_KEY, replayWindow()),
  },
  {
    name: 'charges that empty a balance',
    run: (connection, consumers) =>
      postFittingCharges(connection, drafts(consumers, 999_000), RECEIPT_KEY, replayWindow()),
  },
  {
    name: 'charges with a key that was used',
    run: async (connection, consumers) => {
      const used = drafts(consumers, 1);
      await postFittingCharges(connection, used, RECEIPT_KEY, replayWindow());
      await postFittingCharges(connection, used, RECEIPT_KEY, replayWindow());
      await postCharges(connection, used, RECEIPT_KEY, replayWindow());
    },
  },
  {
    name: 'charges that do not fit',
    run: (connection, consumers) =>
      postCharges(connection, drafts(consumers, 2_000_000), RECEIPT_KEY, replayWindow()),
  },
  {
    name: 'charges that are decided one by one',
    run: (connection, consumers) =>
      postCharges(connection, drafts(consumers, 1), RECEIPT_KEY, replayWindow()),
  },
];

const SPEND = { number: 1, path: [1] };
const spends = (consumers: readonly Consumer[], amountMicros: number): ChargeDraft[] =>
  drafts(consumers, amountMicros).map((draft) => ({ ...draft, spend: SPEND }));

const SPEND_CASES: readonly Case[] = [
  {
    name: 'spends that fit',
    run: (connection, consumers) =>
      postFittingCharges(connection, spends(consumers, 1), RECEIPT_KEY, replayWindow()),
  },
  {
    name: 'spends that reach a mark',
    run: (connection, consumers) =>
      postFittingCharges(connection, spends(consumers, 85_000), RECEIPT_KEY, replayWindow()),
  },
  {
    name: 'spends beyond their limit',
    run: async (connection, consumers) => {
      const beyond = spends(consumers, LIMIT_MICROS + 1);
      await postFittingCharges(connection, beyond, RECEIPT_KEY, replayWindow());
      await postSpends(connection, beyond, RECEIPT_KEY, replayWindow());
    },
  },
  {
    name: 'spends that are decided one by one',
    run: (connection, consumers) =>
      postSpends(connection, spends(consumers, 1), RECEIPT_KEY, replayWindow()),
  },
];

function settle(connection: Connection, leaseId: string): Promise<unknown> {
  const { fromId, toId } = replayWindow();
  return connection.any(sql.unsafe`
    select * from farebox.settle_lease(1, ${leaseId}::uuid, null, array[uuidv7()], array['search'], array[1::int8],
      array[${Date.now()}::int8], array[1::int8], array[null::text], true, 1::int2, ${fromId}::uuid, ${toId}::uuid)
  `);
}

function expireSome(connection: Connection): Promise<unknown> {
  return connection.any(sql.unsafe`select * from farebox.expire_holds(200)`);
}

describe('plans made on young tables', () => {
  let ledger: TestLedger;
  let database: Database;
  /** A superuser, who may write rows without their triggers. */
  let client: Client;
  let explaining: Explaining;

  before(async () => {
    ledger = await openTestLedger(2);
    ({ database } = ledger);
    await ensureChargePartitions(ledger.url, Date.now());
    client = new Client({ connectionString: asSuperuser(ledger.url) });
    await client.connect();
    explaining = await startExplaining(ledger.url, database);
  });

  after(async () => {
    await explaining.stop();
    await client.end();
    await ledger.drop();
  });

  async function entriesOf(consumers: readonly Consumer[]): Promise<HoldEntry[][]> {
    const [first] = consumers as [Consumer];
    const id = () => capturable(database, first, 10);
    return [
      consumers.map((consumer) => placing(consumer, 10)),
      [{ ...placing(first, 10), ...newKey() }],
      [capturing(await id())],
      [{ ...capturing(await id()), ...newKey() }],
      [releasing(await id())],
      [{ ...extending(await id(), 900), ...newKey() }],
      [placing(first, 10), capturing(await id()), releasing(await id())],
    ];
  }

  async function plansOfAll(consumers: readonly Consumer[]): Promise<Map<string, PlanNode[]>> {
    const plans = new Map<string, PlanNode[]>();
    for (const { name, run } of [...CASES, ...SPEND_CASES]) {
      plans.set(name, await explaining.plansOf((connection) => run(connection, consumers)));
    }
    for (const [n, entries] of (await entriesOf(consumers)).entries()) {
      const run = (connection: Database) =>
        postFittingEntries(connection, entries, RECEIPT_KEY, replayWindow());
      plans.set(
        `holds ${n}: ${entries.map(({ kind }) => kind).join(', ')}`,
        await explaining.plansOf(run),
      );
    }
    const [first] = consumers as [Consumer];
    const lease = await newLease(first);
    plans.set(
      'a settled lease',
      await explaining.plansOf((connection) => settle(connection, lease)),
    );
    const due = await capturable(database, first, 10);
    await client.query('update farebox.holds set expires_at = now() where id = $1', [due]);
    await client.query(`update farebox.hold_expiries set due_at = now() where $1 = any (holds)`, [
      due,
    ]);
    plans.set('expired holds', await explaining.plansOf(expireSome));
    return plans;
  }

  it('probe indexes once the tables have grown', async () => {
    const [first] = (await newPayers(1)) as [Consumer];
    await postFittingCharges(database, drafts([first], 1), RECEIPT_KEY, replayWindow());
    const hold = await capturable(database, first, 10);
    await postFittingEntries(
      database,
      [{ ...extending(hold, 900), ...newKey() }],
      RECEIPT_KEY,
      replayWindow(),
    );
    await client.query('analyze');
    await plansOfAll([first]);

    await grow();
    const consumers = await newPayers(3);
    const wholeReads: string[] = [];
    const read = new Set<string>();
    for (const [name, plans] of await plansOfAll(consumers)) {
      for (const node of plans.flatMap(nodesOf)) {
        const table = tableOf(node['Relation Name'] ?? '');
        if (!HOT_TABLES.includes(table) || node['Node Type'] === 'ModifyTable') continue;
        read.add(table);
        const rows =
          (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
        if (node['Index Cond'] === undefined || rows > ROWS_READ_MAX) {
          wholeReads.push(
            `${name}: ${node['Node Type']} of ${table} by ${node['Index Cond']}: ${rows} rows`,
          );
        }
      }
    }
    assert.deepEqual([...new Set(wholeReads)], []);
    // All of them were looked at.
    assert.deepEqual([...read].toSorted(), HOT_TABLES);
  });

  /** Consumers of accounts, each with a budget and a spend key. */
  async function newPayers(count: number): Promise<Consumer[]> {
    const consumers = await newConsumers(client, count, CREDITED_MICROS);
    for (const { ledger, consumerId } of consumers) {
      await client.query(
        `with account as (
           insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
           values (uuidv7(), $2 || '@example.com', $1, $2::uuid, uuidv7()) returning id
         ), endpoint as (
           insert into farebox.webhook_endpoints (id, account_id, url, description, secret_master)
           select uuidv7(), id, 'https://example.com', '', 1 from account
         ), budget as (
           insert into farebox.budgets (ledger, consumer_id, number, limit_micros, notice_at)
           values ($1, $2::uuid, 1, ${LIMIT_MICROS}, ${LIMIT_MICROS * 0.8})
         ), details as (
           insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
           values (uuidv7(), $1, $2::uuid, 1, '{1}', 'agents')
         )
         insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
         select uuidv7(), sha256($2::text::bytea), id, $1, $2::uuid, 1, 1, '{1}', 'last' from account`,
        [ledger, consumerId],
      );
      await client.query(
        `insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id, tool,
           amount_micros, code, budget, scope, limit_micros, asked_by, status, decision, decided_at, expires_at)
         select uuidv7(), id, $1, $2::uuid, 1, 1, uuidv7(), 'search', 1, 'spend_limit_reached', 1, 'total',
           ${LIMIT_MICROS}, 'payer', 'approved', 'once', now(), now() + interval '1 hour'
         from farebox.accounts where consumer_id = $2::uuid`,
        [ledger, consumerId],
      );
    }
    return consumers;
  }

  async function newLease({ ledger, consumerId }: Consumer): Promise<string> {
    const { rows } = await client.query<{ id: string }>(
      `with held as (
         update farebox.consumers set held_micros = held_micros + 10, reserved_micros = reserved_micros + 10
         where ledger = $1 and id = $2
       ), placed as (
         insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
           developer, ledger, tool)
         values (10, 10, 0, now() + interval '1 hour', uuidv7(), $2, 1, $1, '') returning id
       )
       insert into farebox.leases (id, consumer_id, developer, ledger, tools, asked_prices, prices, highest_prices)
       select id, $2, 1, $1, '{search}', '{5}', '{5}', '{5}' from placed returning id`,
      [ledger, consumerId],
    );
    return rows[0]?.id ?? '';
  }

  /** By SQL, so that no statistics follow. */
  async function grow(): Promise<void> {
    await client.query(`
      insert into farebox.consumers (ledger, id, credited_micros)
      select n % 2, uuidv7(), ${CREDITED_MICROS} from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
        developer, ledger, tool, metadata)
      select 1, 1, 1, now() + interval '1 hour', uuidv7(), uuidv7(), n, 0, 'search', ''
      from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.hold_expiries (ledger, due_at, developers, holds)
      select 0, now() + interval '1 hour', array[n], array[uuidv7()] from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.hold_extensions (ledger, hold_id, idempotency_hash, request_fingerprint)
      select 0, uuidv7(), n, n from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
        request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata)
      select 1, 1, 1, n, n, uuidv7(), uuidv7(), 1, 0, 1, 'search', '' from generate_series(1, ${GROWN_TO}) n;
      set session_replication_role = replica;
      insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
      select uuidv7(), n || '@example.com', n % 2, uuidv7(), uuidv7() from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.webhook_endpoints (id, account_id, url, description, secret_master)
      select uuidv7(), id, 'https://example.com', '', 1 from farebox.accounts;
      insert into farebox.budgets (ledger, consumer_id, number)
      select n % 2, uuidv7(), 1 from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
      select uuidv7(), n % 2, uuidv7(), 1, '{1}', 'agents' from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
      select uuidv7(), sha256(n::text::bytea), uuidv7(), n % 2, uuidv7(), 1, 1, '{1}', 'last'
      from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id, tool,
        amount_micros, code, budget, scope, limit_micros, asked_by, status, decision, decided_at, expires_at)
      select uuidv7(), uuidv7(), n % 2, uuidv7(), 1, 1, uuidv7(), 'search', 1, 'spend_limit_reached', 1, 'total', 1,
        'payer', 'approved', 'once', now(), now() + interval '1 hour' from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.leases (id, consumer_id, developer, ledger, tools, asked_prices, prices, highest_prices)
      select uuidv7(), uuidv7(), 1, n % 2, '{search}', '{5}', '{5}', '{5}' from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.thresholds (ledger, consumer_id, purpose, below_micros)
      select n % 2, uuidv7(), 'exhausted', 1 from generate_series(1, ${GROWN_TO}) n;
      set session_replication_role = origin;
    `);
  }
});
