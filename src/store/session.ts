/** What every session with Postgres asks for, whatever the role, the database or the server has as its default. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

/** DATABASE_URL leads to a connection pooler: connections get sessions without the settings they asked for. */
export class PoolerError extends Error {
  override readonly name = 'PoolerError';

  constructor(options?: ErrorOptions) {
    super(
      'DATABASE_URL leads to a connection pooler that drops session settings, such as PgBouncer: use the address ' +
        'of PostgreSQL itself, because Farebox pools its own connections.',
      options,
    );
  }
}

const SESSION_OPTIONS = {
  // The server probes idle connections, so that firewalls keep them open, and closes those that do not answer, which
  // releases their locks.
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 15_000,
  // Times are parsed as ISO 8601. With another style, 5 December would be read as 12 May.
  datestyle: 'ISO',
  timezone: 'UTC',
  // The charge functions look at rows that committed while they waited for locks.
  default_transaction_isolation: 'read committed',
};

/** The operator's own `options` in the URL come last, so they win. */
export function withSessionOptions(
  text: string,
  options: Readonly<Record<string, string | number>>,
): string {
  const url = new URL(text);
  const settings = Object.entries({ ...SESSION_OPTIONS, ...options }).map(
    ([name, value]) => `-c ${name}=${String(value).replaceAll(/[\\ ]/g, String.raw`\$&`)}`,
  );
  const given = url.searchParams.get('options');
  url.searchParams.set('options', [...settings, ...(given === null ? [] : [given])].join(' '));
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

/** PgBouncer refuses the settings above, unless it is told to drop them. */
export function explainConnectFailure(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (/unsupported startup parameter/.test(at.message)) return new PoolerError({ cause: error });
  }
  return error;
}
