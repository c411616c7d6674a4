/**
 * What a charge looks up when it is not in memory: keys, prices and budgets, and after a wait which consumers
 * are locked. A process looks up dozens at a time. PostgreSQL must find each in an index, with or without
 * statistics of the tables. It used to read all accounts to find the owners of 40 keys.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { findKeyOwners } from '../../../src/store/accounts/api-keys.ts';
import { findLockedConsumers } from '../../../src/store/balance/consumers.ts';
import { findBudgetRules } from '../../../src/store/budgets/rules.ts';
import type { Connection } from '../../../src/store/database.ts';
import { findPricedTools } from '../../../src/store/tools/tools.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { nodesOf, plansOf, type PlanNode } from '../query-plans.ts';

const ROWS = 20_000;
/** An account has one row in each table, so a look-up of a name finds at most one row of a table. */
const FILL = [
  `accounts (id, email, ledger, consumer_id, developer_id)
   select md5('a' || n)::uuid, n || '@example.com', 1, md5('c' || n)::uuid, md5('d' || n)::uuid`,
  `consumers (ledger, id) select 1, md5('c' || n)::uuid`,
  `api_keys (id, hash, kind, account_id, last_four)
   select uuidv7(), sha256(n::text::bytea), 'consumer', md5('a' || n)::uuid, 'last'`,
  `budgets (ledger, consumer_id, number) select 1, md5('c' || n)::uuid, 1`,
  `budget_details (id, ledger, consumer_id, number, path, name)
   select uuidv7(), 1, md5('c' || n)::uuid, 1, '{1}', 'agents'`,
  `spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
   select uuidv7(), sha256(('s' || n)::bytea), md5('a' || n)::uuid, 1, md5('c' || n)::uuid, 1, 1, '{1}', 'last'`,
  `tools (id, developer_id, name) select uuidv7(), md5('d' || n)::uuid, 'search'`,
];
const TRIGGERED = ['budget_details', 'spend_keys', 'api_keys'];

type LookUp = (connection: Connection, names: readonly Names[]) => Promise<unknown>;

interface Names {
  readonly keyHash: string;
  readonly spendKeyHash: string;
  readonly consumerId: string;
  readonly developerId: string;
}

const LOOK_UPS: Readonly<Record<string, LookUp>> = {
  keys: (connection, names) =>
    findKeyOwners(
      connection,
      names.map(({ keyHash }) => keyHash),
    ),
  'spend keys': (connection, names) =>
    findKeyOwners(
      connection,
      names.map(({ spendKeyHash }) => spendKeyHash),
    ),
  prices: (connection, names) =>
    findPricedTools(
      connection,
      names.map(({ developerId }) => ({ developerId, name: 'search' })),
    ),
  budgets: (connection, names) =>
    findBudgetRules(
      connection,
      names.map(({ consumerId }) => ({ consumerId, number: 1 })),
    ),
  'locked consumers': (connection, names) =>
    findLockedConsumers(
      connection,
      names.map(({ consumerId }) => ({ ledger: 1, consumerId })),
    ),
};

const COUNTS = [1, 9, 40, 400];

describe('look-ups for charges', () => {
  let ledger: TestLedger;
  let client: Client;
  let names: readonly Names[];

  before(async () => {
    ledger = await openTestLedger(1);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    for (const table of TRIGGERED) {
      await client.query(`alter table farebox.${table} disable trigger user`);
    }
    for (const rows of FILL) {
      await client.query(`insert into farebox.${rows} from generate_series(1, ${ROWS}) n`);
    }
    for (const table of TRIGGERED) {
      await client.query(`alter table farebox.${table} enable trigger user`);
    }
    ({ rows: names } = await client.query<Names>(
      `select encode(sha256(n::text::bytea), 'hex') as "keyHash", encode(sha256(('s' || n)::bytea), 'hex') as "spendKeyHash",
         md5('c' || n)::uuid as "consumerId", md5('d' || n)::uuid as "developerId"
       from generate_series(1, ${ROWS}, ${ROWS / Math.max(...COUNTS)}) n`,
    ));
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  for (const statistics of ['of no rows yet', 'of all rows']) {
    describe(`with statistics ${statistics}`, () => {
      before(() => (statistics === 'of all rows' ? client.query('analyze') : undefined));

      for (const [what, lookUp] of Object.entries(LOOK_UPS)) {
        for (const count of COUNTS) {
          it(`read ${count} ${what} by probes of indexes`, async () => {
            const some = names.slice(0, count);
            const plans = await plansOf(ledger.database, client, (connection) =>
              lookUp(connection, some),
            );
            const reads = plans
              .flatMap(nodesOf)
              .filter((node) => node['Relation Name'] !== undefined)
              .map((node) => ({
                rows: rowsRead(node),
                what: `${node['Node Type']} of ${node['Relation Name']}`,
              }));
            assert.deepEqual(
              reads.filter(({ rows }) => rows > count),
              [],
            );
            assert.ok(
              reads.some(({ rows }) => rows === count),
              'some table has a row for each name',
            );
          });
        }
      }
    });
  }
});

/** Explain's rows are a mean of the loops, rounded to hundredths. */
const rowsRead = (node: PlanNode) =>
  Math.round((node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']);
