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
import { postEntries, type HoldEntry } from '../../../src/store/holds/post-hold-entries.ts';
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
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { nodesOf, type PlanNode } from '../query-plans.ts';

/** What the functions read. Their other tables are only written to. */
const HOT_TABLES =
  /^(consumers|charges|holds|hold_extensions|hold_expiries|reversals)(_\d|_rest|$)/;
const GROWN_TO = 2_000;
/** Each case is about three consumers and six entries at most; a read of a whole table finds GROWN_TO rows. */
const ROWS_READ_MAX = 6;
const CREDITED_MICROS = 1_000_000;

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

function expireSome(connection: Connection): Promise<unknown> {
  return connection.any(sql.unsafe`select * from farebox.expire_holds(200)`);
}

describe('plans made on young tables', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let explaining: Explaining;

  before(async () => {
    ledger = await openTestLedger(2);
    ({ database } = ledger);
    await ensureChargePartitions(ledger.url, Date.now());
    client = new Client({ connectionString: ledger.url });
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
    for (const { name, run } of CASES) {
      plans.set(name, await explaining.plansOf((connection) => run(connection, consumers)));
    }
    for (const [n, entries] of (await entriesOf(consumers)).entries()) {
      const run = (connection: Database) =>
        postEntries(connection, entries, RECEIPT_KEY, replayWindow());
      plans.set(
        `holds ${n}: ${entries.map(({ kind }) => kind).join(', ')}`,
        await explaining.plansOf(run),
      );
    }
    const [first] = consumers as [Consumer];
    const due = await capturable(database, first, 10);
    await client.query('update farebox.holds set expires_at = now() where id = $1', [due]);
    await client.query(`update farebox.hold_expiries set due_at = now() where $1 = any (holds)`, [
      due,
    ]);
    plans.set('expired holds', await explaining.plansOf(expireSome));
    return plans;
  }

  it('probe indexes once the tables have grown', async () => {
    const [first] = (await newConsumers(client, 1, CREDITED_MICROS)) as [Consumer];
    await postFittingCharges(database, drafts([first], 1), RECEIPT_KEY, replayWindow());
    const hold = await capturable(database, first, 10);
    await postEntries(
      database,
      [{ ...extending(hold, 900), ...newKey() }],
      RECEIPT_KEY,
      replayWindow(),
    );
    await client.query('analyze');
    await plansOfAll([first]);

    await grow();
    const consumers = await newConsumers(client, 3, CREDITED_MICROS);
    const wholeReads: string[] = [];
    const read = new Set<string>();
    for (const [name, plans] of await plansOfAll(consumers)) {
      for (const node of plans.flatMap(nodesOf)) {
        const table = node['Relation Name'] ?? '';
        if (!HOT_TABLES.test(table) || node['Node Type'] === 'ModifyTable') continue;
        read.add(table.replace(/_\d.*$/, ''));
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
    assert.deepEqual([...read].filter((table) => !table.endsWith('_rest')).toSorted(), [
      'charges',
      'consumers',
      'hold_expiries',
      'hold_extensions',
      'holds',
      'reversals',
    ]);
  });

  /** By SQL, so that no statistics follow. */
  async function grow(): Promise<void> {
    await client.query(`
      insert into farebox.consumers (ledger, id, credited_micros)
      select n % 2, uuidv7(), ${CREDITED_MICROS} from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
        developer, ledger, tool, metadata)
      select 1, 1, 1, now() + interval '1 hour', uuidv7(), uuidv7(), n, 0, 'search', ''
      from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.hold_expiries (due_at, developers, holds)
      select now() + interval '1 hour', array[n], array[uuidv7()] from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.hold_extensions (hold_id, idempotency_hash, request_fingerprint)
      select uuidv7(), n, n from generate_series(1, ${GROWN_TO}) n;
      insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
        request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata)
      select 1, 1, 1, n, n, uuidv7(), uuidv7(), 1, 0, 1, 'search', '' from generate_series(1, ${GROWN_TO}) n;
    `);
  }
});
