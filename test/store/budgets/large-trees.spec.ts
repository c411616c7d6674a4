/** A tree with a great many nodes: a page of it and a charge in it read no more than in a small one. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { sql, type Connection, type Database } from '../../../src/store/database.ts';
import { BUDGETS_MAX, USAGE_GROUPS } from '../../../src/domain/budget.ts';
import { listBudgets } from '../../../src/store/budgets/budgets.ts';
import { closeBudget, makeBudget } from '../../../src/store/budgets/change-budgets.ts';
import { readBudgetUsage } from '../../../src/store/budgets/usage.ts';
import { UNLIMITED } from '../../support/budget-settings.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { Random } from '../../support/random.ts';
import { blocksOf, plansOf } from '../query-plans.ts';
import { openHarnesses, postDrafts, type BudgetHarness } from './budget-harness.ts';
import type { ModelKey } from './budget-model.ts';

/** As many as an account can have, but one. */
const CHILDREN = BUDGETS_MAX - 1;
/** Each is an entry of the audit log. */
const KEYS = 1_000;
/** Blocks read for a page: some probes of three blocks for each of its nodes. To read all nodes takes over 100,000. */
const PAGE_BLOCKS_MAX = 2_000;
/** Blocks read for a page of usage. The keys' sums of 10 days are about 11,000 rows. */
const USAGE_BLOCKS_MAX = 800;
/** Rows of budgets that two charges at depth 2 may touch, and what the planner may look at besides. */
const TOUCHED_MAX = 20;

describe('a budget with many children', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let harness: BudgetHarness;

  before(async () => {
    ledger = await openTestLedger(1);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    [harness] = (await openHarnesses(database, client, ledger.url, 1, 10)) as [BudgetHarness];
    await harness.addNode(new Random(5), 2_000);
    // The connection keeps the plans that it makes now, while the tables are next to empty.
    await chargeTwice(1);
    const { ledger: number, consumerId } = harness.view;
    // Each would be an entry of the audit log, which takes longer than the budget.
    const audit = 'farebox.budget_details disable trigger budget_details_audit_insert';
    await client.query(`alter table ${audit}`);
    for (const insert of [
      'budgets (ledger, consumer_id, number) select $1, $2, n',
      `budget_details (id, ledger, consumer_id, number, path, name) select uuidv7(), $1, $2, n, array[1, n], 'x'`,
    ]) {
      await client.query(`insert into farebox.${insert} from generate_series(2, ${CHILDREN}) n`, [
        number,
        consumerId,
      ]);
    }
    await client.query(`alter table ${audit.replace('disable', 'enable')}`);
    await client.query(
      `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
       select uuidv7(), sha256(n::text::bytea), a.id, $1, $2, n, n, array[1, n], 'test'
       from generate_series(${CHILDREN - KEYS}, ${CHILDREN}) n, farebox.accounts a where a.consumer_id = $2`,
      [number, consumerId],
    );
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  /** By the statement for what fits, and by the one that decides the rest. */
  async function chargeTwice(leaf: number): Promise<string[]> {
    const path = leaf === 1 ? [1] : [1, leaf];
    const key = {
      number: leaf,
      node: { path: path.map((number) => ({ number })) },
    } as unknown as ModelKey;
    const [fits] = await postDrafts(database, [harness.draft(key, 1)]);
    const [decided] = await postDrafts(database, [harness.draft(key, 11_000_000)]);
    return [fits?.kind ?? '', decided?.kind ?? ''];
  }

  it('is charged by probes of its nodes', async () => {
    const before = await rowsTouched();
    assert.deepEqual(await chargeTwice(CHILDREN - 7), ['posted', 'limit_reached']);
    const touched = (await rowsTouched()) - before;
    assert.ok(touched > 0 && touched <= TOUCHED_MAX, `${touched} rows`);
  });

  it('is listed page by page', async () => {
    const plans = await plansOf(database, client, (connection) =>
      listBudgets(connection, harness.view, 1, { limit: 51, beforeId: undefined }),
    );
    const blocks = plans.reduce((sum, plan) => sum + blocksOf(plan), 0);
    assert.ok(blocks <= PAGE_BLOCKS_MAX, `${blocks} blocks`);
  });

  it('takes one more, and no more than an account can have', async () => {
    const made = await make();
    assert.ok(made.kind === 'made' && made.budget.number === BUDGETS_MAX);
    assert.equal((await make()).kind, 'too_many');
  });

  it('shows what all of their keys spent, and closes, by touching few rows', async () => {
    const whole = { fromMs: undefined, toMs: undefined };
    const { total } = await readBudgetUsage(
      database,
      { ...harness.view, number: 1 },
      'key',
      whole,
      { limit: 50 },
    );
    assert.deepEqual(total, { spentMicros: 2, charges: 2 });
    const before = await rowsTouched();
    assert.equal((await closeBudget(database, harness.view, rootId())).kind, 'changed');
    const touched = (await rowsTouched()) - before;
    assert.ok(touched <= TOUCHED_MAX, `${touched} rows`);
    // Every branch is closed with it, for the debit too.
    assert.deepEqual(await chargeTwice(CHILDREN - 9), ['key_closed', 'key_closed']);
    const [child] = await listBudgets(database, harness.view, 1, { limit: 1, beforeId: undefined });
    assert.equal(child?.status, 'closed');
  });

  it('adds what its keys spent to its own sums, with one look at each key', async () => {
    const { ledger: number, consumerId } = harness.view;
    await client.query('begin');
    await client.query(
      `insert into farebox.key_spending
         (ledger, consumer_id, spend_key, span, begins_at, developer, tool, amount_micros, charges)
       select $1, $2, k, s.span, s.begins_at, 1, 'search', s.days, s.days
       from generate_series(${CHILDREN - KEYS}, ${CHILDREN}) k
       cross join (
         select 'day' as span, '2026-03-01Z'::timestamptz + make_interval(days => d) as begins_at, 1 as days
         from generate_series(0, 9) d
         union all select 'all', '-infinity', 10
       ) s`,
      [number, consumerId],
    );
    const { rows } = await client.query<{ looks: number }>(
      `select idx_scan::int as looks from pg_stat_xact_user_tables where relid = 'farebox.spend_keys'::regclass`,
    );
    await client.query('commit');
    assert.deepEqual(rows, [{ looks: KEYS + 1 }]);
  });

  it('takes no longer to show its usage when it has more keys', async () => {
    await client.query('analyze');
    const whole = { fromMs: undefined, toMs: undefined };
    const march = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 3, 1) };
    for (const group of USAGE_GROUPS) {
      for (const range of [whole, march]) {
        const read = (connection: Connection) =>
          readBudgetUsage(connection, { ...harness.view, number: 1 }, group, range, { limit: 51 });
        const { total, groups } = await read(database);
        assert.equal(total.charges, (KEYS + 1) * 10 + (range === whole ? 2 : 0), group);
        assert.ok(groups.length > 0);
        const plans = await plansOf(database, client, read);
        const blocks = plans.reduce((sum, plan) => sum + blocksOf(plan), 0);
        assert.ok(blocks <= USAGE_BLOCKS_MAX, `${blocks} blocks by ${group}`);
      }
    }
  });

  const make = () =>
    makeBudget(database, harness.view, rootId(), { ...UNLIMITED, name: 'one more' });
  function rootId(): string {
    return harness.model.nodes[0]?.id ?? '';
  }

  /** What the statements of the one connection have read and written of the counters, by index or not. */
  async function rowsTouched(): Promise<number> {
    // Otherwise a connection reports at most once a second, and what it read for an earlier test may come later.
    await database.query(sql.typeAlias('nothing')`select pg_stat_force_next_flush()`);
    await client.query('select pg_stat_force_next_flush()');
    await client.query('select pg_stat_clear_snapshot()');
    const { rows } = await client.query<{ rows: string }>(
      `select coalesce(idx_tup_fetch, 0) + seq_tup_read as rows from pg_stat_user_tables
       where relid = 'farebox.budgets'::regclass`,
    );
    return Number(rows[0]?.rows);
  }
});
