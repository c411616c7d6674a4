/**
 * `charges` and `holds` are partitioned by month of their ids, UUIDv7s. Partitions are created ahead by migrate, at API
 * start and by a schedule, whichever comes first. A charge of a month without a partition goes to `charges_rest`, where
 * it can be found like any other, and the next run of the schedule or of migrate moves it; a hold goes to `holds_rest`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseError, type Client } from 'pg';
import { withSessionOptions } from '../session.ts';
import { withClient } from '../with-client.ts';
import { monthPartition, type Month, type PartitionedTable } from './month-partition.ts';
import { moveRest, type Turn } from './move-rest.ts';

const TABLES: readonly PartitionedTable[] = ['charges', 'holds'];
const MONTHS_AHEAD = 3;
/** Waiting for a lock blocks every later request for it, so the wait is short and is retried. */
const LOCK_TIMEOUT_MS = 500;
const ATTEMPTS = 4;
/** Another process is making them. Longer than that takes, unless it moves rows. */
const TURN_TIMEOUT_MS = 10_000;
/** For a change of the catalog alone, while charges wait for it. */
const STATEMENT_TIMEOUT_MS = 1_000;
const RETRY_MS = 200;
/** To read which months some millions of misplaced rows have takes seconds. Past this, the server is silent. */
const ANSWER_MS_MAX = 120_000;

export interface EnsuredPartitions {
  readonly made: readonly string[];
  /** Could not be created because of traffic, or left. Nothing is lost, and the next call tries again. */
  readonly putOff: readonly string[];
}

/**
 * Creates the missing partitions of charges and holds for this month and the next three. If a default partition has
 * rows, of any month, they are moved too, which takes a minute for some millions; a process that starts leaves that to
 * others.
 */
export async function ensureChargePartitions(
  databaseUrl: string,
  at: number | 'now',
  rows: 'move' | 'leave' = 'move',
): Promise<EnsuredPartitions> {
  return connected(databaseUrl, async (client) => {
    const nowMs = at === 'now' ? await readNow(client) : at;
    if (!(await isWorkLeft(client, nowMs, rows))) return { made: [], putOff: [] };
    return connected(databaseUrl, async (other) => {
      const turn = await takeTurn(other);
      const missing = await findMissing(client, nowMs);
      if (!turn) return { made: [], putOff: missing.map(({ name }) => name) };
      const ensured = { made: [] as string[], putOff: [] as string[] };
      for (const table of TABLES) {
        const months = missing.filter((month) => month.table === table);
        const { made, putOff } = await makeAll(client, turn, table, months, rows);
        ensured.made.push(...made);
        ensured.putOff.push(...putOff);
      }
      return ensured;
    });
  });
}

function connected<T>(databaseUrl: string, work: (client: Client) => Promise<T>): Promise<T> {
  const url = withSessionOptions(databaseUrl, { lock_timeout: TURN_TIMEOUT_MS });
  return withClient(url, { statementMsMax: ANSWER_MS_MAX }, work);
}

/**
 * One process at a time. The lock belongs to a transaction that does nothing else and stays open until its
 * connection ends: the work needs several, and a lock of the session would stay with a pooler. Undefined:
 * another process moves rows.
 */
async function takeTurn(client: Client): Promise<Turn | undefined> {
  try {
    await client.query('begin');
    await client.query('set local idle_in_transaction_session_timeout = 0');
    await client.query('set local transaction_timeout = 0');
    await client.query(`select pg_advisory_xact_lock(hashtext('farebox.charge_partitions'))`);
  } catch (error) {
    if (stateOf(error) === LOCK_NOT_AVAILABLE) return undefined;
    throw error;
  }
  const { rows } = await client.query<Turn>('select pg_backend_pid() as pid');
  return rows[0];
}

/** By Postgres' clock, which dates charges. The machine's may be wrong. */
async function readNow(client: Client): Promise<number> {
  const { rows } = await client.query<{ now: Date }>('select now() as now');
  return rows[0]?.now.getTime() ?? Number.NaN;
}

async function findMissing(client: Client, nowMs: number): Promise<Month[]> {
  // The partitions of an archived month are not created again when the clock is months behind: nothing may be
  // charged in it.
  const { rows } = await client.query<{ name: string }>(`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent in ('farebox.charges'::regclass, 'farebox.holds'::regclass)
    union all
    select t.name || to_char(a.month, '_YYYY_MM') from farebox.archived_months a, (values ('charges'), ('holds')) as t (name)
  `);
  const there = new Set(rows.map(({ name }) => name));
  const now = new Date(nowMs);
  return TABLES.flatMap((table) =>
    Array.from({ length: MONTHS_AHEAD + 1 }, (_, ahead) =>
      monthPartition(table, Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead)),
    ),
  ).filter(({ name }) => !there.has(name));
}

async function isWorkLeft(client: Client, nowMs: number, rows: 'move' | 'leave'): Promise<boolean> {
  if ((await findMissing(client, nowMs)).length > 0) return true;
  if (rows === 'leave') return false;
  return (await isMisplaced(client, 'charges')) || (await isMisplaced(client, 'holds'));
}

/**
 * Whether a default partition has rows: of a month that is not created ahead, for example because the clock was months
 * behind. One that is locked counts as empty: another process moves its rows.
 */
async function isMisplaced(client: Client, table: PartitionedTable): Promise<boolean> {
  let isFound = false;
  const find = async () => {
    const { rowCount } = await client.query(`select from farebox.${table}_rest limit 1`);
    isFound = rowCount !== 0;
  };
  await briefly(client, find, 1);
  return isFound;
}

/** Almost always the default partition is empty, and a month is an empty table that has only to be attached. */
async function makeAll(
  client: Client,
  turn: Turn,
  table: PartitionedTable,
  months: readonly Month[],
  rows: 'move' | 'leave',
): Promise<EnsuredPartitions> {
  const names = months.map(({ name }) => name);
  const { rowCount } = await client.query(`select from farebox.${table}_rest limit 1`);
  if (rowCount !== 0) {
    if (rows === 'leave') return { made: [], putOff: names };
    const moved = await moveRest(client, turn, table, months, (work) => briefly(client, work));
    if (moved) return { made: moved, putOff: [] };
    return { made: [], putOff: names.length > 0 ? names : [`${table}_rest`] };
  }
  const made: string[] = [];
  for (const month of months) {
    // What stopped one would stop the others too.
    if (!(await briefly(client, () => make(client, month)))) break;
    made.push(month.name);
  }
  return { made, putOff: names.filter((name) => !made.includes(name)) };
}

/** A plain table first, then ATTACH, which takes a weaker lock on the parent than CREATE ... PARTITION OF. */
async function make(client: Client, { table, name, fromId, toId, storage }: Month): Promise<void> {
  await client.query(
    `create table if not exists farebox.${name} (like farebox.${table} including all) ${storage}`,
  );
  await client.query(
    `alter table farebox.${table} attach partition farebox.${name}
     for values from ('${fromId}') to ('${toId}')`,
  );
}

/** False: traffic did not let it through. */
async function briefly(
  client: Client,
  work: () => Promise<void>,
  attempts = ATTEMPTS,
): Promise<boolean> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    try {
      await client.query('begin');
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await client.query(`set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
      await work();
      await client.query('commit');
      return true;
    } catch (error) {
      await client.query('rollback');
      // The next attempt would take as long, and charges would wait for it again.
      if (stateOf(error) === QUERY_CANCELED) return false;
      if (stateOf(error) !== LOCK_NOT_AVAILABLE) throw error;
    }
    await delay(RETRY_MS * attempt);
  }
  return false;
}

const LOCK_NOT_AVAILABLE = '55P03';
const QUERY_CANCELED = '57014';

function stateOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}
