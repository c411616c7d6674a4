/** What every session with Postgres asks for, regardless of the defaults of the role, the database or the server. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { keepConnectionsAlive } from './keep-alive.ts';
import { supportPoolers, POOLED } from './through-pooler.ts';

supportPoolers();
keepConnectionsAlive();

/**
 * DATABASE_URL leads to a connection pooler and does not say so: its sessions would not have the settings
 * they asked for.
 */
export class PoolerError extends Error {
  override readonly name = 'PoolerError';

  constructor(options?: ErrorOptions) {
    super(
      'DATABASE_URL leads to a connection pooler that drops session settings, such as PgBouncer: add ' +
        '?pooler=transaction to it, or use the address of PostgreSQL itself.',
      options,
    );
  }
}

/** Behind a pooler they are checked at the start (check-server.ts), which costs less than to set them each time. */
export const USUAL = {
  // Without it, null in an array is the text "NULL": charges without an idempotency key would have the same one.
  array_nulls: 'on',
  // Times are parsed as ISO 8601. With another style, 5 December would be read as 12 May.
  datestyle: 'ISO',
  timezone: 'UTC',
  // The charge functions look at rows that committed while they waited for locks.
  default_transaction_isolation: 'read committed',
  // Migrations have backslashes in strings.
  standard_conforming_strings: 'on',
  // Doctor compares the schema as text.
  bytea_output: 'hex',
  intervalstyle: 'postgres',
  quote_all_identifiers: 'off',
} as const;

const SESSION_OPTIONS = {
  // The server probes idle connections, so that firewalls keep them open, and closes those that do not answer, which
  // releases their locks.
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 15_000,
  ...USUAL,
  // For the search for agents.
  'pg_trgm.similarity_threshold': 0.3,
  // Where `migrate` creates pg_trgm, or where providers have created it. The default names the schema of the
  // role, which is another one after a restore for another role.
  search_path: 'farebox,public,extensions',
  // Each pool and each step has its own limits where it needs them. A limit of the role would end migrations, and idle
  // connections of pools.
  statement_timeout: 0,
  lock_timeout: 0,
  transaction_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  idle_session_timeout: 0,
};

/** Whether this DATABASE_URL says that it leads to a pooler in transaction mode. */
function isPooled(text: string): boolean {
  return new URL(text).searchParams.get('pooler') === 'transaction';
}

/** The operator's own `options` in the URL come last, so they win. */
export function withSessionOptions(
  text: string,
  options: Readonly<Record<string, string | number>>,
): string {
  const url = new URL(text);
  const pooled = isPooled(text);
  url.searchParams.delete('pooler');
  const settings = Object.entries(pooled ? options : { ...SESSION_OPTIONS, ...options }).map(
    ([name, value]) => `-c ${name}=${String(value).replaceAll(/[\\ ]/g, String.raw`\$&`)}`,
  );
  const given = url.searchParams.get('options');
  const all = [...(pooled ? [POOLED] : []), ...settings, ...(given === null ? [] : [given])];
  url.searchParams.set('options', all.join(' '));
  return url.href;
}

/**
 * DATABASE_URL as Slonik needs it: it knows no `verify-full`, and would ignore the files that the URL names.
 */
export function withOwnTls(text: string): {
  readonly uri: string;
  readonly ssl?: ConnectionOptions;
} {
  const url = new URL(text);
  const given = (name: string) => {
    const value = url.searchParams.get(name);
    url.searchParams.delete(name);
    return value;
  };
  const fileOf = (name: string) => {
    const path = given(name);
    return path ? readFileSync(path, 'utf8') : undefined;
  };
  const mode = given('sslmode');
  const [ca, cert, key] = [fileOf('sslrootcert'), fileOf('sslcert'), fileOf('sslkey')];
  if (mode === null || mode === 'disable') return { uri: url.href };
  const rejectUnauthorized = mode !== 'no-verify';
  return {
    uri: url.href,
    ssl: { rejectUnauthorized, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/** Errors of the network: nothing answers at the address, or its name is unknown. */
const UNREACHABLE = /^E(CONNREFUSED|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/;

/** Classes of SQLSTATE: a wrong user or password, and a database that does not exist. */
const REFUSED = /^(28|3D)/;

/** PgBouncer has one SQLSTATE for all that it refuses, so its words tell what that is. */
const REFUSED_BY_POOLER =
  /authentication failed|no such (user|database)|(database|role) ".*" does not exist/;

function isRefused({ code, message }: Error & { readonly code: unknown }): boolean {
  return code === '08P01' ? REFUSED_BY_POOLER.test(message) : REFUSED.test(String(code));
}

/**
 * PgBouncer refuses the settings above, unless it is told to drop them. The error of a network names neither
 * PostgreSQL nor the setting, and has no message where the name has several addresses. The error of a wrong
 * password does not name the setting.
 */
export function explainConnectFailure(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (/unsupported startup parameter/.test(at.message)) return new PoolerError({ cause: error });
    if (!('code' in at)) continue;
    if (isRefused(at)) {
      return new Error(`PostgreSQL refused what is in DATABASE_URL: ${at.message}`, {
        cause: error,
      });
    }
    if (UNREACHABLE.test(String(at.code))) {
      const each = at instanceof AggregateError ? (at.errors as Error[]) : [at];
      const reasons = each.map(({ message }) => message).join('; ');
      return new Error(`PostgreSQL cannot be reached at the address in DATABASE_URL: ${reasons}`, {
        cause: error,
      });
    }
  }
  return error;
}
