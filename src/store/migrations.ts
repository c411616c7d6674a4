/**
 * Brings the database to the schema of this release: the numbered files of migrations/, each once and in order, then
 * every function of migrations/functions whose text is new. One transaction under one lock: no matter how many
 * processes try at once or where one is killed, everything happens once, or nothing does.
 */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { ROOT } from '../root.ts';
import { NOTICE_OUR_END } from './long-transaction.ts';
import { withSessionOptions } from './session.ts';
import { withClient } from './with-client.ts';

const DIRECTORY = join(ROOT, 'migrations');
/** A migration that cannot get its locks gives up and can be run again; it must not queue behind traffic. */
const LOCK_TIMEOUT_MS = 10_000;
const CHECK_MS_MAX = 10_000;

/** A newer release wrote the database; to migrate it with this one would damage the data. */
export class NewerDatabaseError extends Error {
  override readonly name = 'NewerDatabaseError';
}

/** The database has other migrations than this release, or other versions of them. */
export class UnreleasedDatabaseError extends Error {
  override readonly name = 'UnreleasedDatabaseError';
}

/** The database has the tables but not the rows that migrations write, or lacks migrations of this release. */
export class UnmigratedDatabaseError extends Error {
  override readonly name = 'UnmigratedDatabaseError';
}

interface SqlFile {
  /** Without `.sql`. */
  readonly name: string;
  readonly text: string;
  /** SHA-256, in hex. */
  readonly hash: string;
}

type Applied = Pick<SqlFile, 'name' | 'hash'>;

/**
 * Returns the names of the migrations and functions that it applied. While another migration holds the lock,
 * it waits for as long as that takes, and tells `onWait` for whom.
 */
export async function migrate(
  databaseUrl: string,
  directory = DIRECTORY,
  onWait: (holder: string) => void = () => {},
): Promise<string[]> {
  const numbered = await sqlFiles(directory, NUMBERED, withoutComments);
  const functions = await sqlFiles(join(directory, 'functions'), FUNCTION, String);
  return withClient(withSessionOptions(databaseUrl, {}), {}, async (client) => {
    await client.query('begin');
    await noticeOurEnd(client);
    await takeLock(client, onWait);
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const applied = [
      ...(await applyNumbered(client, numbered)),
      ...(await applyFunctions(client, functions)),
    ];
    // Without it, the end of the connection undoes everything.
    await client.query('commit');
    return applied;
  });
}

/** Without this, an index that nobody waits for any longer would be built to its end, under its locks. */
async function noticeOurEnd(client: Client): Promise<void> {
  await client.query('savepoint before_setting');
  await client
    .query(NOTICE_OUR_END.sql)
    .catch(() => client.query('rollback to savepoint before_setting'));
}

async function takeLock(client: Client, onWait: (holder: string) => void): Promise<void> {
  const key = `hashtext('farebox.migrate')`;
  const { rows } = await client.query<{ isOurs: boolean; holder: string | null }>(
    `select pg_try_advisory_xact_lock(${key}) as "isOurs", (
       select format('process %s of PostgreSQL, %s', pid,
         concat_ws(', ', nullif(application_name, ''), 'since ' || to_char(xact_start, 'HH24:MI:SS TZ')))
       from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and granted and pid <> pg_backend_pid()
         and database = (select oid from pg_database where datname = current_database())
         and objsubid = 1 and (classid::int8 << 32) | objid::int8 = ${key}::int8
       limit 1
     ) as holder`,
  );
  if (rows[0]?.isOurs) return;
  onWait(rows[0]?.holder ?? 'a process that has just ended');
  await client.query(`select pg_advisory_xact_lock(${key})`);
}

/**
 * Throws when a migration or a function that this release needs is missing. A newer release may have added
 * more, and may have dropped functions that this release no longer calls.
 */
export async function checkMigrated(databaseUrl: string): Promise<void> {
  const released = await listReleased();
  const url = withSessionOptions(databaseUrl, {});
  await withClient(url, { statementMsMax: CHECK_MS_MAX }, async (client) => {
    const applied = new Set((await appliedMigrations(client)).map(({ name }) => name));
    const missing = released.migrations.filter((name) => !applied.has(name));
    if (missing.length === 0 && applied.size === released.migrations.length) {
      const functions = new Set((await appliedFunctions(client)).map(({ name }) => name));
      missing.push(...released.functions.filter((name) => !functions.has(name)).map(ofFunctions));
    }
    if (missing.length === 0) return;
    throw new UnmigratedDatabaseError(
      `The database lacks ${missing.length} of this release's migrations and functions, the first of them ` +
        `${missing[0]}: run \`farebox migrate\`.`,
    );
  });
}

/** The names of what this release records in a database. */
export async function listReleased(): Promise<
  Readonly<Record<'migrations' | 'functions', readonly string[]>>
> {
  const [migrations, functions] = await Promise.all([
    namesIn(DIRECTORY, NUMBERED),
    namesIn(join(DIRECTORY, 'functions'), FUNCTION),
  ]);
  return { migrations, functions };
}

const NUMBERED = /^\d{4}_\w+\.sql$/;
const FUNCTION = /^\w+\.sql$/;

/** Without `.sql`, in order by code unit: the same on every machine. */
async function namesIn(directory: string, pattern: RegExp): Promise<string[]> {
  const files = (await readdir(directory)).filter((file) => pattern.test(file));
  return files.toSorted().map((file) => file.replace(/\.sql$/, ''));
}

async function sqlFiles(
  directory: string,
  pattern: RegExp,
  hashed: (text: string) => string,
): Promise<SqlFile[]> {
  const names = await namesIn(directory, pattern);
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(directory, `${name}.sql`), 'utf8');
      return { name, text, hash: hash('sha256', hashed(text)) };
    }),
  );
}

/** Comments of an applied file may be improved; its statements may not change. */
function withoutComments(text: string): string {
  return text.replaceAll(/--.*|\s+/g, '');
}

async function applyNumbered(client: Client, files: readonly SqlFile[]): Promise<string[]> {
  const applied = await appliedMigrations(client);
  refuseOtherHistory(applied, files);
  refuseNewer(applied.slice(files.length).map(({ name }) => name));
  const missing = files.slice(applied.length);
  for (const { name, hash, text } of missing) {
    await apply(client, `migrations/${name}.sql`, text);
    await client.query('insert into farebox.migrations (name, hash) values ($1, $2)', [name, hash]);
  }
  return missing.map(({ name }) => name);
}

async function appliedMigrations(client: Client): Promise<Applied[]> {
  const { rows: tables } = await client.query(
    `select from pg_tables where schemaname = 'farebox' and tablename = 'migrations'`,
  );
  if (tables.length === 0) return []; // the first migration makes it
  // As JSON, because the table of unreleased versions has no hashes.
  const { rows } = await client.query<Applied>(
    `select name, to_jsonb(m) ->> 'hash' as hash from farebox.migrations m order by name collate "C"`,
  );
  // The migration that makes the table records itself in the same transaction.
  if (rows.length === 0) {
    throw new UnmigratedDatabaseError(
      'The database has the tables of Farebox and no rows that say which release made them, as after a ' +
        'dump of the schema alone: restore a whole dump, or use an empty database.',
    );
  }
  return rows;
}

/** The applied migrations must be the first ones of this release. */
function refuseOtherHistory(applied: readonly Applied[], files: readonly SqlFile[]): void {
  const other = applied.find(({ name, hash }, n) => {
    const file = files[n];
    return file && (file.name !== name || file.hash !== hash);
  });
  if (!other) return;
  throw new UnreleasedDatabaseError(
    `A Farebox version from before the first release created this database (its ${other.name} is not ` +
      'that of this release), so it cannot be migrated. Remove the data directory (.farebox), or use ' +
      'an empty database.',
  );
}

/** A function is applied when its text has not been applied before; the table keeps the hash of every text. */
async function applyFunctions(client: Client, files: readonly SqlFile[]): Promise<string[]> {
  const rows = await appliedFunctions(client);
  const known = new Map(files.map(({ name, hash }) => [name, hash]));
  // A newer release has added these, or has replaced this release's text.
  const newer = rows.filter(
    ({ name, hash, is_newest }) => !known.has(name) || (!is_newest && known.get(name) === hash),
  );
  refuseNewer([...new Set(newer.map(({ name }) => ofFunctions(name)))]);

  const missing = files.filter(
    (file) => !rows.some((row) => row.name === file.name && row.hash === file.hash),
  );
  for (const { name, hash, text } of missing) {
    await apply(client, `migrations/functions/${name}.sql`, text);
    await client.query('insert into farebox.functions (name, hash) values ($1, $2)', [name, hash]);
  }
  if (missing.length > 0) await refuseOverloads(client);
  return missing.map(({ name }) => ofFunctions(name));
}

async function appliedFunctions(client: Client): Promise<(Applied & { is_newest: boolean })[]> {
  const { rows } = await client.query<Applied & { is_newest: boolean }>(
    `select name, hash, id = max(id) over (partition by name) as is_newest from farebox.functions`,
  );
  return rows;
}

/** As messages name a function, beside migrations. */
function ofFunctions(name: string): string {
  return `functions/${name}`;
}

/** Replacing a function whose parameters changed would leave two of one name, and its calls ambiguous. */
async function refuseOverloads(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(`
    select proname as name from pg_proc p
    where pronamespace = 'farebox'::regnamespace
      and not exists (select from pg_depend where objid = p.oid and deptype = 'e')
    group by proname having count(*) > 1
  `);
  if (rows.length === 0) return;
  throw new Error(
    `farebox.${rows[0]?.name} exists with other parameters: a function with a new signature needs a new ` +
      'name, because the previous release still calls the old one',
  );
}

function refuseNewer(names: readonly string[]): void {
  if (names.length === 0) return;
  throw new NewerDatabaseError(
    `The database was written by a newer Farebox, which applied ${names.join(', ')}: run that ` +
      'release or a later one. This release has changed nothing. If it is the one just before that release, its ' +
      'processes run on this database, without `farebox migrate`: see "Roll back" in docs/self-hosting.md.',
  );
}

async function apply(client: Client, path: string, text: string): Promise<void> {
  await client.query(text).catch((error: unknown) => {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  });
}
