/** A developer's charges are read from their index, newest first, no matter what Postgres knows about the tables. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { idsAt, uuidFloor, uuidOf } from '../../../src/domain/ids.ts';
import { findAccounts } from '../../../src/store/accounts/find-accounts.ts';
import {
  findDeveloperCharge,
  listDeveloperCharges,
} from '../../../src/store/charges/list-charges.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import type { Connection } from '../../../src/store/database.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { asSuperuser } from '../../support/stack.ts';
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { nodesOf } from '../query-plans.ts';

const BEGIN = Date.UTC(2026, 10, 1);
const SECOND_MS = 1_000;
const CHARGES = 20_000;
const DEVELOPER = { developerNumber: 1 };
const LIMIT = 20;
/**
 * The rows of a page, one more in each month, to know which month's is newer, and one to know whether the
 * last has equals.
 */
const ROWS_READ_MAX = LIMIT + 6;

/** One a second: every other one is of the first developer. */
const idAt = (n: number) => uuidFloor(BEGIN + n * SECOND_MS);
const page = { limit: LIMIT };
const READS: Readonly<Record<string, (connection: Connection) => Promise<unknown>>> = {
  'the first page': (connection) => listDeveloperCharges(connection, DEVELOPER, {}, page),
  'a later page': (connection) =>
    listDeveloperCharges(connection, DEVELOPER, {}, { ...page, beforeId: idAt(CHARGES / 2) }),
  'a range of time': (connection) =>
    listDeveloperCharges(connection, DEVELOPER, { fromId: idAt(100), toId: idAt(5_000) }, page),
  'a charge by its id': (connection) => findDeveloperCharge(connection, DEVELOPER, idAt(600)),
  'the accounts of a charge': (connection) =>
    findAccounts(connection, { kind: 'charge', uuid: idAt(600) }, LIMIT),
};

async function assertProbes(explaining: Explaining): Promise<void> {
  for (const [name, read] of Object.entries(READS)) {
    const nodes = (await explaining.plansOf(read)).flatMap(nodesOf);
    const reads = nodes.filter((node) => node['Relation Name']?.startsWith('charges'));
    assert.ok(reads.length > 0, name);
    for (const node of reads) {
      const rows =
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
      const what = `${name}: ${node['Node Type']} by ${node['Index Cond']}: ${rows} rows`;
      assert.match(node['Index Name'] ?? '', /^charges_.*developer/, what);
      assert.ok(rows <= ROWS_READ_MAX, what);
    }
  }
}

describe('reads of a developer’s charges', () => {
  let ledger: TestLedger;
  let client: Client;

  beforeEach(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: asSuperuser(ledger.url) });
    await client.connect();
    await createTestAccount(ledger.url, 0);
    await ensureChargePartitions(ledger.url, BEGIN);
    await client.query('alter table farebox.charges_2026_11 set (autovacuum_enabled = off)');
  });
  afterEach(async () => {
    await client.end();
    await ledger.drop();
  });

  async function insert(ids: readonly string[]): Promise<void> {
    await client.query(
      `insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id, developer, ledger,
         receipt_key, tool)
       select 1, 1, 1, id, uuidv7(), case when n % 2 = 1 then 1 else n end, 0, 1, 'search'
       from unnest($1::uuid[]) with ordinality as u (id, n)`,
      [ids],
    );
  }

  const rest = Array.from({ length: CHARGES - 1 }, (_, n) => idAt(n + 1));
  for (const [analyzed, fill] of Object.entries({
    never: () => insert([idAt(0), ...rest]),
    'when it had one row': async () => {
      await insert([idAt(0)]);
      await client.query('analyze');
      await insert(rest);
    },
    'when it had other developers’ charges': async () => {
      await insert([idAt(0), ...rest]);
      await client.query('update farebox.charges set developer = 3 where developer = 1');
      await client.query('analyze');
      await client.query('update farebox.charges set developer = 1 where developer = 3');
      await client.query('vacuum farebox.charges');
    },
    now: async () => {
      await insert([idAt(0), ...rest]);
      await client.query('analyze');
    },
  })) {
    it(`read no more than they return from a table that was analyzed ${analyzed}`, async () => {
      await fill();
      const explaining = await startExplaining(ledger.url, ledger.database);
      try {
        await assertProbes(explaining);
      } finally {
        await explaining.stop();
      }
    });
  }

  it('to one consumer are read by the primary key, even if the planner expects few', async () => {
    await insert([idAt(0)]);
    await client.query('analyze');
    await insert(rest);
    const consumer = await createTestAccount(ledger.url, 0);
    assert.ok(consumer);
    const consumerId = uuidOf('consumer', consumer.consumerId);
    assert.ok(consumerId);
    await client.query(
      `update farebox.charges c set consumer_id = a.consumer_id, ledger = a.ledger
       from farebox.accounts a where a.consumer_id = $1`,
      [consumerId],
    );
    const explaining = await startExplaining(ledger.url, ledger.database);
    try {
      const plans = await explaining.plansOf((connection) =>
        listDeveloperCharges(connection, DEVELOPER, { consumerId }, page),
      );
      // Months without charges may be read in any way.
      const nodes = plans.flatMap(nodesOf).filter((node) => node['Actual Rows'] > 0);
      const reads = nodes.filter((node) => node['Relation Name']?.startsWith('charges'));
      assert.ok(reads.length > 0);
      for (const node of reads) assert.match(node['Index Name'] ?? '', /^charges_.*pkey$/);
    } finally {
      await explaining.stop();
    }
  });

  it('show thousands of charges of one millisecond, each once and in order, page after page', async () => {
    // Beyond 4,096 charges of a statement, ids are equal but for their random digits.
    const consumerId = randomUUID();
    const newId = (index: number) => idsAt(BEGIN)(index, consumerId, randomUUID());
    const ids = Array.from({ length: 6_000 }, (_, n) => newId(Math.floor(n / 2)));
    const many = Array.from({ length: 500 }, () => newId(4_095));
    await insert([idAt(-1), ...ids, ...many, idAt(1)]);
    const { rows } = await client.query<{ id: string }>(
      'select id from farebox.charges where developer = 1 order by id desc',
    );
    const seen: string[] = [];
    for (;;) {
      const found = await listDeveloperCharges(
        ledger.database,
        DEVELOPER,
        {},
        { limit: 73, beforeId: seen.at(-1) },
      );
      seen.push(...found.map(({ id }) => id));
      if (found.length < 73) break;
    }
    assert.deepEqual(
      seen,
      rows.map(({ id }) => id),
    );
  });

  const countIn = async (filter: { readonly fromId?: string; readonly toId?: string }) =>
    (await listDeveloperCharges(ledger.database, DEVELOPER, filter, page)).length;

  it('take bounds that lie behind every charge', async () => {
    await insert([idAt(0)]);
    const far = uuidFloor(Date.UTC(9_999, 0));
    assert.equal(await countIn({ toId: far }), 1);
    assert.equal(await countIn({ fromId: far }), 0);
    assert.equal(await countIn({ fromId: idAt(0), toId: far }), 1);
  });
});
