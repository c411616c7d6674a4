/**
 * Access to the embedded PostgreSQL: a superuser that sets it up, and the application's role, which owns its own
 * database and cannot read files or run programs. Both need a password. A cluster of an earlier release, which accepted
 * everyone, is secured before it accepts connections.
 */
import { chown, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, DatabaseError } from 'pg';
import type { Environment } from './child.ts';
import type { PostgresPasswords } from './data-dir.ts';
import { runWith } from './run-with.ts';

/** The role that creates the cluster and sets it up at each start. */
export const SUPERUSER = 'postgres';
const APPLICATION = 'farebox';
const DATABASE = 'farebox';
/** The new name of an earlier release's superuser, whose name the application's role now has. */
const RETIRED = 'farebox_retired';
const WRONG_PASSWORD = '28P01';

/** A line of pg_hba.conf that requires no password. */
const TRUSTING = /^([ \t]*(?:local|host)[^#\n]*[ \t])trust[ \t]*$/gm;

/**
 * Gives an earlier release's cluster a superuser with this password and removes `trust` from its pg_hba.conf. Runs in
 * PostgreSQL's single-user mode, in which nobody can connect. `program` is the command for `postgres`.
 */
export async function closeTrustingCluster(
  program: readonly string[],
  dataDir: string,
  env: Environment,
  password: string,
): Promise<void> {
  const file = join(dataDir, 'pg_hba.conf');
  const rules = await readFile(file, 'utf8');
  const closed = rules.replaceAll(TRUSTING, '$1scram-sha-256');
  if (closed === rules) return;
  // After an interrupted run the role exists already, and the first line fails harmlessly.
  const statements = `create role ${SUPERUSER}\nalter role ${SUPERUSER} superuser login password '${password}'\n`;
  await runWith(statements, [...program, '--single', '-D', dataDir, 'postgres'], env);
  const { uid, gid } = await stat(file);
  await writeFile(`${file}.new`, closed, { mode: 0o600 });
  await chown(`${file}.new`, uid, gid);
  await rename(`${file}.new`, file);
}

/** Brings the application's role and database up to date. Returns the server's address and version. */
export async function setUpRoles(
  port: number,
  passwords: PostgresPasswords,
): Promise<{ readonly url: string; readonly superuserUrl: string; readonly version: string }> {
  const urlOf = (role: string, password: string, database: string) =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  const superuserUrl = urlOf(SUPERUSER, passwords.superuser, 'postgres');
  const version = await withClient(superuserUrl, async (client) => {
    await retireTrustedSuperuser(client);
    await setUpApplication(client, passwords.application);
    const { rows } = await client.query<{ version: string }>(
      `select current_setting('server_version') as version`,
    );
    return rows[0]?.version ?? '';
  });
  await withClient(urlOf(SUPERUSER, passwords.superuser, DATABASE), handOver);
  return { version, superuserUrl, url: urlOf(APPLICATION, passwords.application, DATABASE) };
}

/** The role that created a cluster is a superuser forever, so rename it and disable its login. */
async function retireTrustedSuperuser(client: Client): Promise<void> {
  const { rowCount } = await client.query(`select from pg_roles where rolname = $1 and rolsuper`, [
    APPLICATION,
  ]);
  if (rowCount === 0) return;
  await client.query(`alter role ${APPLICATION} rename to ${RETIRED}`);
  await client.query(`alter role ${RETIRED} nologin`);
}

async function setUpApplication(client: Client, password: string): Promise<void> {
  const { rows } = await client.query<{ role: boolean; database: boolean }>(
    `select exists (select from pg_roles where rolname = $1) as role,
            exists (select from pg_database where datname = $2) as database`,
    [APPLICATION, DATABASE],
  );
  if (!rows[0]?.role) await client.query(`create role ${APPLICATION}`);
  await client.query(`alter role ${APPLICATION} login password '${password}'`);
  if (!rows[0]?.database) {
    await client.query(`create database ${DATABASE} owner ${APPLICATION}`);
  }
  // Roles of other databases on this server must not connect to this one.
  await client.query(`revoke all on database ${DATABASE} from public`);
}

/** Upgrades from an earlier release: transfers the superuser's objects to the application. */
async function handOver(client: Client): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select format('alter database ${DATABASE} owner to ${APPLICATION}') as statement
       from pg_database where datname = $1 and datdba = (select oid from pg_roles where rolname = $2)
     union all
     select format('alter schema %I owner to ${APPLICATION}', nspname)
       from pg_namespace where nspowner = (select oid from pg_roles where rolname = $2) and nspname = 'farebox'
     union all
     select format('alter %s %s owner to ${APPLICATION}',
              case relkind when 'S' then 'sequence' when 'v' then 'view'
                when 'm' then 'materialized view' else 'table' end, oid::regclass)
       from pg_class
       where relowner = (select oid from pg_roles where rolname = $2) and relnamespace = to_regnamespace('farebox')
         and relkind in ('r', 'p', 'S', 'v', 'm')
         -- An identity column's sequence follows its table.
         and not exists (select from pg_depend d where d.objid = pg_class.oid
           and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i') and relkind = 'S')
     union all
     select format('alter routine %s owner to ${APPLICATION}', oid::regprocedure)
       from pg_proc where proowner = (select oid from pg_roles where rolname = $2) and pronamespace = to_regnamespace('farebox')
     union all
     select format('alter type %s owner to ${APPLICATION}', t.oid::regtype)
       from pg_type t left join pg_class c on c.oid = t.typrelid
       where typowner = (select oid from pg_roles where rolname = $2) and typnamespace = to_regnamespace('farebox')
         and typelem = 0 and (typtype in ('d', 'e') or c.relkind = 'c')`,
    [DATABASE, RETIRED],
  );
  if (rows.length === 0) return;
  // One message runs as one transaction.
  await client.query(rows.map(({ statement }) => statement).join(';\n'));
}

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, ssl: false });
  // A connection that is lost makes the statement fail. Without a listener, it would end the process too.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== WRONG_PASSWORD) throw error;
    throw new Error(
      'the password of the embedded PostgreSQL does not match secrets.json in its data directory: restore the ' +
        'secrets.json that belongs to this data',
      { cause: error },
    );
  } finally {
    await client.end().catch(() => {});
  }
}
