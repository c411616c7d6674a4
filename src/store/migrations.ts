/**
 * Brings the database to the schema of this release: the numbered files of migrations/, each once and in
 * order, then every function of migrations/functions whose text is new. One transaction under one lock, so
 * however many processes try at once, and wherever one is killed, all of it happens, once, or nothing.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';

const DIRECTORY = join(import.meta.dirname, '../../migrations');
/** A migration that cannot get its locks gives up and can be run again; it must not queue behind traffic. */
const LOCK_TIMEOUT_MS = 10_000;

/** A newer release wrote the database; this one would damage the data. */
export class NewerDatabaseError extends Error {
  override readonly name = 'NewerDatabaseError';
}

/** The database has migrations of an unreleased version, which no release can continue. */
export class UnreleasedDatabaseError extends Error {
  override readonly name = 'UnreleasedDatabaseError';
}

interface SqlFile {
  /** Without `.sql`. */
  readonly name: string;
  readonly text: string;
  /** SHA-256 of the text, in hex. */
  readonly hash: string;
}

/** Returns the names of the migrations and functions that it applied. */
export async function migrate(databaseUrl: string, directory = DIRECTORY): Promise<string[]> {
  const numbered = await sqlFiles(directory, /^\d{4}_\w+\.sql$/);
  const functions = await sqlFiles(join(directory, 'functions'), /^\w+\.sql$/);
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(`select pg_advisory_xact_lock(hashtext('farebox.migrate'))`);
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const applied = [
      ...(await applyNumbered(client, numbered)),
      ...(await applyFunctions(client, functions)),
    ];
    await client.query('commit');
    return applied;
  } finally {
    // Without a commit, the end of the connection undoes everything.
    await client.end();
  }
}

/** In the order of their names, by code unit: the same on every machine. */
async function sqlFiles(directory: string, pattern: RegExp): Promise<SqlFile[]> {
  const files = (await readdir(directory)).filter((file) => pattern.test(file)).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(directory, file), 'utf8');
      const hash = createHash('sha256').update(text).digest('hex');
      return { name: file.replace(/\.sql$/, ''), text, hash };
    }),
  );
}

async function applyNumbered(client: Client, files: readonly SqlFile[]): Promise<string[]> {
  const names = await appliedNames(client);
  refuseOtherHistory(
    names,
    files.map(({ name }) => name),
  );
  const missing = files.slice(names.length);
  for (const { name, text } of missing) {
    await apply(client, `migrations/${name}.sql`, text);
    await client.query('insert into farebox.migrations (name) values ($1)', [name]);
  }
  return missing.map(({ name }) => name);
}

async function appliedNames(client: Client): Promise<string[]> {
  const { rows: tables } = await client.query(
    `select from pg_tables where schemaname = 'farebox' and tablename = 'migrations'`,
  );
  if (tables.length === 0) return []; // the first migration makes it
  const { rows } = await client.query<{ name: string }>(
    `select name from farebox.migrations order by name collate "C"`,
  );
  return rows.map(({ name }) => name);
}

/** The applied migrations must be the first ones of this release. */
function refuseOtherHistory(applied: readonly string[], known: readonly string[]): void {
  const n = known.findIndex((name, place) => place < applied.length && name !== applied[place]);
  if (n >= 0) {
    throw new UnreleasedDatabaseError(
      `The database has the migration ${applied[n]} where this Farebox has ${known[n]}, so a version from ` +
        'before the first release made it: remove the data directory (.farebox), or use an empty database.',
    );
  }
  refuseNewer(applied.slice(known.length));
}

/** A function is applied when its text has not been applied before; the table keeps every text's hash. */
async function applyFunctions(client: Client, files: readonly SqlFile[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string; hash: string; is_newest: boolean }>(
    `select name, hash, id = max(id) over (partition by name) as is_newest from farebox.functions`,
  );
  const known = new Map(files.map(({ name, hash }) => [name, hash]));
  // A newer release has added these, or has replaced this release's text.
  const isNewer = (row: (typeof rows)[number]) =>
    !known.has(row.name) || (!row.is_newest && known.get(row.name) === row.hash);
  refuseNewer([...new Set(rows.filter(isNewer).map(({ name }) => `functions/${name}`))]);

  const missing = files.filter(
    (file) => !rows.some((row) => row.name === file.name && row.hash === file.hash),
  );
  for (const { name, hash, text } of missing) {
    await apply(client, `migrations/functions/${name}.sql`, text);
    await client.query('insert into farebox.functions (name, hash) values ($1, $2)', [name, hash]);
  }
  if (missing.length > 0) await refuseOverloads(client);
  return missing.map(({ name }) => `functions/${name}`);
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
      'release or a later one, because this one would damage the data.',
  );
}

async function apply(client: Client, path: string, text: string): Promise<void> {
  await client.query(text).catch((error: unknown) => {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  });
}
