/**
 * Whether a PostgreSQL can keep the promises of this service. It is checked at each start, because defaults of the
 * server, the database or the role can break them silently.
 */
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { explainConnectFailure, PoolerError, USUAL, withSessionOptions } from './session.ts';
import { withClient } from './with-client.ts';

/** The first version whose `uuid_extract_timestamp` reads the time of our ids. */
const VERSION_MIN = 180_000;
const STATEMENT_MS_MAX = 10_000;

/** Farebox does not start on this server. */
export class UnsuitableServerError extends Error {
  override readonly name = 'UnsuitableServerError';
}

export interface Session {
  /** It has the settings that we asked for. */
  readonly isOurs: boolean;
  /** The settings that it has unlike USUAL. */
  readonly unusual: readonly (keyof typeof USUAL)[];
  readonly firesTriggers: boolean;
  /** As in `server_version_num`. */
  readonly versionNumber: number;
  readonly version: string;
  readonly isReadOnly: boolean;
  readonly isDurable: boolean;
  readonly isSyncing: boolean;
  readonly isOrderChanged: boolean;
}

/**
 * Throws a PoolerError or an UnsuitableServerError. Returns warnings about settings that are dangerous but may be
 * intended, as sentences for the log.
 */
export async function checkServer(databaseUrl: string): Promise<string[]> {
  // A pooler gives its sessions to one client after the other, so it does not pass on what only this one asks for.
  const mark = randomUUID();
  const url = withSessionOptions(databaseUrl, { 'farebox.mark': mark });
  const reading = withClient(url, { statementMsMax: STATEMENT_MS_MAX }, async (client) =>
    judgeServer(await readSession(client, mark)),
  );
  return reading.catch((error: unknown) => {
    throw explainConnectFailure(error);
  });
}

async function readSession(client: Client, mark: string): Promise<Session> {
  const { rows } = await client.query<Session>(
    `select coalesce(current_setting('farebox.mark', true) = $1, false) as "isOurs",
      array(select name from json_each_text($2) as wanted (name, value)
        -- DateStyle also has the order of day and month, and a server may call the time zone Etc/UTC.
        where not current_setting(name) in (value, value || ', MDY', value || ', DMY', value || ', YMD', 'Etc/' || value)
        order by name) as unusual,
      current_setting('session_replication_role') <> 'replica' as "firesTriggers",
      current_setting('server_version_num')::int as "versionNumber",
      current_setting('server_version') as version,
      pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
      current_setting('synchronous_commit') <> 'off' as "isDurable",
      current_setting('fsync') = 'on' as "isSyncing",
      (select datcollversion <> pg_database_collation_actual_version(oid) from pg_database
        where datname = current_database()) is true as "isOrderChanged"`,
    [mark, JSON.stringify(USUAL)],
  );
  return rows[0] as Session;
}

export function judgeServer(session: Session): string[] {
  if (!session.isOurs) throw new PoolerError();
  if (session.versionNumber < VERSION_MIN) {
    throw new UnsuitableServerError(
      `This is PostgreSQL ${session.version}, and Farebox needs PostgreSQL 18 or newer.`,
    );
  }
  if (session.unusual.length > 0) {
    const wanted = session.unusual.map((name) => `${name} to ${USUAL[name]}`);
    throw new UnsuitableServerError(
      `Behind a connection pooler, sessions keep the defaults of their role: set ${wanted.join(', ')} for it, ` +
        'with alter role ... set ...',
    );
  }
  if (!session.firesTriggers) {
    throw new UnsuitableServerError(
      'session_replication_role is replica, so triggers and foreign keys do nothing: ' +
        'set it to origin for this role and database.',
    );
  }
  if (session.isReadOnly) {
    throw new UnsuitableServerError(
      'Postgres is read-only: it is a standby, its disk is full, or default_transaction_read_only is on.',
    );
  }
  if (!session.isDurable) {
    throw new UnsuitableServerError(
      'synchronous_commit is off, so a crash of Postgres would lose charges that were confirmed: ' +
        'set it to on for this role and database.',
    );
  }
  return [
    ...(session.isSyncing
      ? []
      : ['fsync is off: a crash of this machine can destroy the database']),
    ...(session.isOrderChanged
      ? [
          'the operating system sorts text differently than when this database was created, so its indexes may ' +
            'miss rows: run reindex database, then alter database ... refresh collation version',
        ]
      : []),
  ];
}
