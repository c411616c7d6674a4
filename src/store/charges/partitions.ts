/**
 * `charges` and `holds` are partitioned by month of their ids, UUIDv7s. Partitions are created ahead by migrate, at API
 * start and by a schedule, whichever comes first. A charge of a month without a partition goes to `charges_rest`, where
 * it can be found like any other, and moves once its partition is created; a hold goes to `holds_rest`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';
import { uuidFloor } from '../../domain/ids.ts';
import { withSessionOptions } from '../session.ts';

/** Holds change once or twice, soon after they are placed. The free space keeps the new version on the same page. */
const TABLES = { charges: '', holds: 'with (fillfactor = 55)' } as const;
const MONTHS_AHEAD = 3;
/** Waiting for a lock blocks every later request for it, so the wait is short and is retried. */
const LOCK_TIMEOUT_MS = 500;
const ATTEMPTS = 4;
/** Another process is making them. */
const TURN_TIMEOUT_MS = 10_000;
/** For moving rows out of the default partition, while no more can arrive there. */
const STATEMENT_TIMEOUT_MS = 1_000;
/** Moving these takes a tenth of a second, during which charges wait. More stay where they are. */
const MOVED_ROWS_MAX = 5_000;
const RETRY_MS = 200;

interface Month {
  readonly table: keyof typeof TABLES;
  /** The partition's name. */
  readonly name: string;
  readonly fromId: string;
  readonly toId: string;
}

export interface EnsuredPartitions {
  readonly made: readonly string[];
  /** Could not be created because of traffic. Nothing is lost, and the next call tries again. */
  readonly putOff: readonly string[];
  /**
   * Not created: the default partition holds too many rows of these months to move them beside traffic. It keeps these
   * months. They are read as before, only not pruned.
   */
  readonly kept: readonly string[];
}

/** Creates the missing partitions of charges and holds for this month and the next three. */
export async function ensureChargePartitions(
  databaseUrl: string,
  nowMs: number,
): Promise<EnsuredPartitions> {
  const client = new Client({
    connectionString: withSessionOptions(databaseUrl, { lock_timeout: TURN_TIMEOUT_MS }),
    connectionTimeoutMillis: 5_000,
  });
  await client.connect();
  try {
    const months = monthsFrom(nowMs);
    const ensured = { made: [] as string[], putOff: [] as string[], kept: [] as string[] };
    if ((await missing(client, months)).length === 0) return ensured;
    // One process at a time; the lock ends with the session.
    await client.query(`select pg_advisory_lock(hashtext('farebox.charge_partitions'))`);
    for (const month of await missing(client, months)) {
      if (await isKept(client, month)) ensured.kept.push(month.name);
      // What stopped one would stop the others too.
      else if (ensured.putOff.length === 0 && (await makePatiently(client, month))) {
        ensured.made.push(month.name);
      } else ensured.putOff.push(month.name);
    }
    return ensured;
  } finally {
    await client.end();
  }
}

function monthsFrom(nowMs: number): Month[] {
  const now = new Date(nowMs);
  const begin = (ahead: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead);
  return Array.from({ length: MONTHS_AHEAD + 1 }, (_, ahead) => ({
    month: new Date(begin(ahead)).toISOString().slice(0, 7).replace('-', '_'),
    fromId: uuidFloor(begin(ahead)),
    toId: uuidFloor(begin(ahead + 1)),
  })).flatMap(({ month, ...bounds }) =>
    (['charges', 'holds'] as const).map((table) => ({
      table,
      name: `${table}_${month}`,
      ...bounds,
    })),
  );
}

async function missing(client: Client, months: readonly Month[]): Promise<Month[]> {
  const { rows } = await client.query<{ name: string }>(`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent in ('farebox.charges'::regclass, 'farebox.holds'::regclass)
  `);
  const there = new Set(rows.map(({ name }) => name));
  return months.filter(({ name }) => !there.has(name));
}

/** Reads without a lock that charges would wait for. Almost always the default partition is empty. */
async function isKept(client: Client, { table, fromId, toId }: Month): Promise<boolean> {
  const { rows } = await client.query(
    `select from farebox.${table}_rest where id >= $1 and id < $2 limit $3`,
    [fromId, toId, MOVED_ROWS_MAX + 1],
  );
  return rows.length > MOVED_ROWS_MAX;
}

async function makePatiently(client: Client, month: Month): Promise<boolean> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    try {
      await make(client, month);
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

/**
 * A plain table first, then ATTACH, which takes a weaker lock on the parent than CREATE ... PARTITION OF. It fails
 * while the default partition holds a row of the month, so these rows move first, under a lock that keeps others out.
 */
async function make(client: Client, { table, name, fromId, toId }: Month): Promise<void> {
  await client.query('begin');
  await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await client.query(`set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  await client.query(
    `create table if not exists farebox.${name} (like farebox.${table} including all) ${TABLES[table]}`,
  );
  await client.query(`lock table farebox.${table}_rest in access exclusive mode`);
  await client.query(
    `with moved as (
       delete from farebox.${table}_rest where id >= '${fromId}' and id < '${toId}' returning *
     )
     insert into farebox.${name} select * from moved`,
  );
  await client.query(
    `alter table farebox.${table} attach partition farebox.${name}
     for values from ('${fromId}') to ('${toId}')`,
  );
  await client.query('commit');
}

const LOCK_NOT_AVAILABLE = '55P03';
const QUERY_CANCELED = '57014';

function stateOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}
