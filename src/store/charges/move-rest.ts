/**
 * Moves all rows of a default partition, millions or a few, to the partitions of their months without stopping traffic.
 * They are copied first, in short transactions, to tables that nobody reads; the trigger copy_from_rest copies
 * what arrives or changes meanwhile. Then one short transaction empties the default partition and attaches the copies.
 * If a process dies on the way, nothing has changed, and the next one starts again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { monthPartition, type Month, type PartitionedTable } from './month-partition.ts';

/** Blocks of the table that are copied in one transaction: some thousand rows, about a tenth of a second. */
const BATCH_BLOCKS = 64;
const POLL_MS = 100;
/** For transactions that began before the last row was copied. Reads of the API end within 10 seconds. */
const OLD_SNAPSHOTS_WAIT_MS = 60_000;

/** The connection that keeps other processes from moving rows, by the number of its process. */
export interface Turn {
  readonly pid: number;
}

/** Runs work in a transaction that waits only briefly for locks. False: traffic did not let it through. */
export type BriefTransaction = (work: () => Promise<void>) => Promise<boolean>;

/** The months that were made: those asked for and all others that have rows here. Null: traffic did not allow it. */
export async function moveRest(
  client: Client,
  turn: Turn,
  table: PartitionedTable,
  missing: readonly Month[],
  briefly: BriefTransaction,
): Promise<readonly string[] | null> {
  const months = new Map(missing.map((month) => [month.name, month]));
  for (const month of await monthsInRest(client, table)) months.set(month.name, month);
  await prepare(client, table, [...months.values()]);
  // Afterwards every statement that writes to the default partition sees the prepared tables.
  const isSeen = await briefly(async () => {
    await client.query(`lock table farebox.${table}_rest in share mode`);
  });
  if (!isSeen) return null;
  await copy(client, table, [...months.values()]);
  if (!(await waitForOldSnapshots(client))) return null;
  const isSwitched = await briefly(() => switchOver(client, turn, table, [...months.values()]));
  return isSwitched ? [...months.keys()] : null;
}

async function monthsInRest(client: Client, table: PartitionedTable): Promise<Month[]> {
  const { rows } = await client.query<{ month: string }>(`
    select distinct to_char(uuid_extract_timestamp(id) at time zone 'UTC', 'YYYY-MM') as month
    from farebox.${table}_rest where uuid_extract_timestamp(id) is not null
  `);
  return rows.map(({ month }) => monthPartition(table, Date.parse(`${month}-01T00:00:00Z`)));
}

/** Their check constraints spare ATTACH from reading them. The table `..._rest` takes rows of any other month. */
async function prepare(
  client: Client,
  table: PartitionedTable,
  months: readonly Month[],
): Promise<void> {
  const { rows: left } = await client.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'farebox_moving'::regnamespace and relkind = 'r' and relname like $1`,
    [`${table}\\_%`],
  );
  await client.query(
    [
      'begin',
      ...left.map(({ name }) => `drop table farebox_moving.${name}`),
      `create table farebox_moving.${table}_rest (like farebox.${table} including all)`,
      ...months.map(
        ({ name, fromId, toId, storage }) =>
          `create table farebox_moving.${name} (like farebox.${table} including all,
             constraint is_of_month check (id >= '${fromId}' and id < '${toId}')) ${storage}`,
      ),
      'commit',
    ].join('; '),
  );
}

async function copy(
  client: Client,
  table: PartitionedTable,
  months: readonly Month[],
): Promise<void> {
  const { rows } = await client.query<{ blocks: number }>(
    `select (pg_relation_size('farebox.${table}_rest') / current_setting('block_size')::int)::int as blocks`,
  );
  const blocks = rows[0]?.blocks ?? 0;
  for (let block = 0; block < blocks; block += BATCH_BLOCKS) {
    const batch = `ctid >= '(${block},0)'::tid and ctid < '(${block + BATCH_BLOCKS},0)'::tid`;
    for (const { name, fromId, toId } of months) {
      // What the trigger copied already is newer.
      await client.query(
        `insert into farebox_moving.${name} select * from farebox.${table}_rest
         where ${batch} and id >= '${fromId}' and id < '${toId}' on conflict do nothing`,
      );
    }
  }
}

/** A transaction with an older snapshot would find the rows in neither place. */
async function waitForOldSnapshots(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ xid: string }>(
    'select pg_current_xact_id()::xid::text as xid',
  );
  const deadline = performance.now() + OLD_SNAPSHOTS_WAIT_MS;
  for (;;) {
    const { rowCount } = await client.query(
      `select from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
         and age(backend_xmin) > age($1::text::xid) limit 1`,
      [rows[0]?.xid],
    );
    if (rowCount === 0) return true;
    if (performance.now() > deadline) return false;
    await delay(POLL_MS);
  }
}

/**
 * Everything is copied, so this changes only the catalog. The parent is locked before the default partition: a
 * statement that waited for the partition would have looked up the list of partitions before, and find the
 * rows in none.
 */
async function switchOver(
  client: Client,
  turn: Turn,
  table: PartitionedTable,
  months: readonly Month[],
): Promise<void> {
  await client.query(`lock table only farebox.${table} in access exclusive mode`);
  const copies = [`${table}_rest`, ...months.map(({ name }) => name)];
  await client.query(`lock table ${copies.map((name) => `farebox_moving.${name}`).join(', ')}`);
  await checkTurn(client, turn);
  await client.query(`truncate farebox.${table}_rest`);
  for (const { name, fromId, toId } of months) {
    await client.query(`
      alter table farebox_moving.${name} set schema farebox;
      alter table farebox.${table} attach partition farebox.${name} for values from ('${fromId}') to ('${toId}');
      alter table farebox.${name} drop constraint is_of_month
    `);
  }
  await client.query(`
    insert into farebox.${table} select * from farebox_moving.${table}_rest;
    drop table farebox_moving.${table}_rest
  `);
}

/**
 * Without the turn, another process may have begun again, and the copies, which are locked, may be its own
 * and incomplete.
 */
async function checkTurn(client: Client, { pid }: Turn): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_locks where locktype = 'advisory' and granted and pid = $1
       and database = (select oid from pg_database where datname = current_database())`,
    [pid],
  );
  if (rowCount === 0) throw new Error('lost the turn to move rows; will begin again');
}
