/**
 * Where each table belongs once ledgers are spread over nodes
 * (docs/decisions/0042-what-belongs-to-a-ledger.md): to a ledger, to all of them, or to each node. What an
 * engine would refuse is listed here, so that the lists can only get shorter.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { read, writtenFiles } from '../tree/sources.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';

/** Rows of one consumer, or of one flush. */
const OF_A_LEDGER = new Set([
  'adjustment_keys',
  'approvals',
  'archived_attribution',
  'archived_charges',
  'archived_key_spending',
  'archived_spending',
  'attribution_tail',
  'auto_top_ups',
  'budget_details',
  'budget_spending',
  'budgets',
  'charge_refunds',
  'charges',
  'consents',
  'consumers',
  'earnings',
  'earnings_tail',
  'events',
  'hold_expiries',
  'hold_extensions',
  'holds',
  'key_refusals',
  'key_spending',
  'key_spending_tail',
  'leases',
  'lots',
  'movement_sums',
  'movements',
  'outbox',
  'refund_keys',
  'reversals',
  'spend_keys',
  'thresholds',
  'top_up_earnings',
  'top_ups',
  'webhook_deliveries',
]);

/** Tables of accounts, keys, tools and agents, and of the whole service. */
const GLOBAL = new Set([
  'accounts',
  'agent_words',
  'agents',
  'api_keys',
  'archived_months',
  'audit_entries',
  'differences',
  'examinations',
  'grants',
  'invocations',
  'master_secrets',
  'operator_actions',
  'processor_events',
  'processor_mode',
  'reconciliation',
  'rate_cards',
  'refusals',
  'relays',
  'settled_differences',
  'tools',
  'webhook_endpoints',
]);

const OF_EACH_NODE = new Set(['functions', 'migrations']);

/** Their rows say no ledger. */
const WITHOUT_LEDGER = ['attribution_tail', 'earnings'];

/** A primary key without the ledger, or none. */
const KEY_WITHOUT_LEDGER = [
  'adjustment_keys',
  ...WITHOUT_LEDGER,
  'earnings_tail',
  'refund_keys',
  'top_ups',
].toSorted();

/** Unique over all ledgers, which no node can check alone. */
const UNIQUE_OVER_LEDGERS = [
  'budget_details_id_unique',
  'leases_id_unique',
  'reversals_processor_unique',
  'spend_keys_hash_unique',
  'spend_keys_id_unique',
  'top_ups_payment_intent_unique',
  'top_ups_session_unique',
];

interface Named {
  readonly name: string;
  readonly table: string;
}

function ofALedger(rows: readonly Named[]): string[] {
  return rows
    .filter(({ table }) => OF_A_LEDGER.has(table))
    .map(({ name }) => name)
    .toSorted();
}

describe('the tables', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const namesOf = async (query: string) => {
    const { rows } = await client.query<Named>(query);
    return rows;
  };

  it('each belong to a ledger, to all ledgers or to each node', async () => {
    const tables = await namesOf(`
      select relname as name, relname as table from pg_class
      where relnamespace = 'farebox'::regnamespace and relkind in ('r', 'p') and not relispartition
    `);
    const known = [...OF_A_LEDGER, ...GLOBAL, ...OF_EACH_NODE];
    assert.equal(new Set(known).size, known.length);
    assert.deepEqual(tables.map(({ name }) => name).toSorted(), known.toSorted());
  });

  it('say the ledger of a row that belongs to one, but for a list', async () => {
    const without = await namesOf(`
      select relname as name, relname as table from pg_class c
      where relnamespace = 'farebox'::regnamespace and relkind in ('r', 'p') and not relispartition
        and not exists (select from pg_attribute where attrelid = c.oid and attname = 'ledger')
    `);
    assert.deepEqual(ofALedger(without), WITHOUT_LEDGER);
  });

  it('have the ledger in the key, but for a list', async () => {
    const without = await namesOf(`
      select relname as name, relname as table from pg_class c
      where relnamespace = 'farebox'::regnamespace and relkind in ('r', 'p') and not relispartition
        and not exists (
          select from pg_constraint k
          join pg_attribute a on a.attrelid = c.oid and a.attnum = any (k.conkey)
          where k.conrelid = c.oid and k.contype = 'p' and a.attname = 'ledger'
        )
    `);
    assert.deepEqual(ofALedger(without), KEY_WITHOUT_LEDGER);
  });

  it('are unique within a ledger, but for a list', async () => {
    const over = await namesOf(`
      select i.relname as name, c.relname as table
      from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
      where c.relnamespace = 'farebox'::regnamespace and not c.relispartition
        and x.indisunique and not x.indisprimary
        and not exists (
          select from pg_attribute a
          where a.attrelid = c.oid and a.attnum = any (x.indkey) and a.attname = 'ledger'
        )
    `);
    assert.deepEqual(ofALedger(over), UNIQUE_OVER_LEDGERS);
  });

  it('refer to rows of the same ledger, or to global ones', async () => {
    const { rows } = await client.query<{
      name: string;
      table: string;
      target: string;
      hasLedger: boolean;
    }>(`
      select k.conname as name, c.relname as table, t.relname as target,
        exists (
          select from pg_attribute a
          where a.attrelid = c.oid and a.attnum = any (k.conkey) and a.attname = 'ledger'
        ) as "hasLedger"
      from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class t on t.oid = k.confrelid
      where k.contype = 'f' and c.relnamespace = 'farebox'::regnamespace and not c.relispartition
    `);
    const over = rows.filter(
      ({ table, target, hasLedger }) =>
        OF_A_LEDGER.has(target) && !(OF_A_LEDGER.has(table) && hasLedger),
    );
    assert.deepEqual(over, []);
  });

  it('are not locked for longer than a transaction, and nobody is notified', () => {
    const files = writtenFiles().filter((path) =>
      /^(src|activities|migrations)\/.*\.(ts|sql)$/.test(path),
    );
    const using = (pattern: RegExp) => files.filter((path) => pattern.test(read(path))).toSorted();
    assert.deepEqual(using(/\bpg_(try_)?advisory_lock(_shared)?\(/), []);
    assert.deepEqual(using(/[`']listen \w/), []);
    assert.deepEqual(using(/\bpg_notify\(/), []);
  });

  it('let a reversal be only of a top-up of its own consumer', async () => {
    const [one, other] = [
      '00000000-0000-7000-8000-000000000001',
      '00000000-0000-7000-8000-000000000002',
    ];
    await client.query(
      `with a as (
         insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
         values (uuidv7(), 'one@example.com', 1, $1, uuidv7()) returning id
       )
       insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros)
       select $1, 1, $1, id, 'checkout', 10 from a`,
      [one],
    );
    await assert.rejects(
      client.query(
        `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, processor_id)
         values (uuidv7(), 1, $1, $2, 'dispute', 'open', 10, 'dp_1')`,
        [other, one],
      ),
      { constraint: 'reversals_top_up_of_consumer_fkey' },
    );
  });
});
