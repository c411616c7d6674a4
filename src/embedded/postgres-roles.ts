/**
 * Access to the embedded PostgreSQL: a superuser that sets it up, and the application's role, which owns its own
 * database and cannot read files or run programs. Both need a password.
 */
import { Client, DatabaseError } from 'pg';
import type { PostgresPasswords } from './data-dir.ts';

/** The role that creates the cluster and sets it up at each start. */
export const SUPERUSER = 'postgres';
const APPLICATION = 'farebox';
const DATABASE = 'farebox';
const WRONG_PASSWORD = '28P01';

/** Brings the application's role and database up to date. Returns the server's address and version. */
export async function setUpRoles(
  port: number,
  passwords: PostgresPasswords,
): Promise<{ readonly url: string; readonly superuserUrl: string; readonly version: string }> {
  const urlOf = (role: string, password: string, database: string) =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  const superuserUrl = urlOf(SUPERUSER, passwords.superuser, 'postgres');
  const version = await withClient(superuserUrl, async (client) => {
    await setUpApplication(client, passwords.application);
    // A checkpointer that began before the end of the start-up first looks at archive_timeout after
    // checkpoint_timeout. A reload makes it look now.
    await client.query('select pg_reload_conf()');
    const { rows } = await client.query<{ version: string }>(
      `select current_setting('server_version') as version`,
    );
    return rows[0]?.version ?? '';
  });
  return { version, superuserUrl, url: urlOf(APPLICATION, passwords.application, DATABASE) };
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
