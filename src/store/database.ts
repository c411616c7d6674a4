/**
 * The connection to Postgres, through Slonik. Values arrive in one representation each: int8 as a safe integer (or an
 * error), timestamptz as an ISO 8601 UTC string, uuid and text as strings. Never set session state on a connection: the
 * pool does not reset it.
 */
import { createPgDriverFactory } from '@slonik/pg-driver';
import {
  createPool,
  createSqlTag,
  createTypeParserPreset,
  type CommonQueryMethods,
  type DatabasePool,
  type DatabaseTransactionConnection,
  type Interceptor,
} from 'slonik';
import { Type, type Static, type TSchema } from 'typebox';
import { Ajv } from 'ajv';
import type { Micros } from '../domain/money.ts';
import { boundWaiting } from './bounded-pool.ts';
import { withDeadline } from './statement-deadline.ts';

/** Anything that runs queries: the pool, or a transaction's connection. */
export type Connection = CommonQueryMethods;
export type Transaction = DatabaseTransactionConnection;
export type Database = DatabasePool;

export interface DatabaseOptions {
  readonly maxPoolSize: number;
  /** Called when an idle connection breaks. Without a listener, that would end the process. */
  readonly onError: (error: unknown) => void;
  /** Limits each statement, but not the COMMIT. */
  readonly statementTimeoutMs?: number;
  /** A statement fails when it waits longer than this for a lock, well before its caller gives up. */
  readonly lockTimeoutMs?: number;
  /** How long a caller may wait for a connection before a PoolBusyError. Unlimited when not set. */
  readonly waitMsMax?: number;
  /**
   * How long Postgres may take to answer before the connection counts as dead and is destroyed. Longer than the
   * statement timeout, whose error is more precise. Unlimited when not set, which the checks of all the books need.
   */
  readonly silenceMsMax?: number;
}

const STATEMENT_TIMEOUT_MS = 10_000;
/** A caller behind this many others would not get its turn in time. */
const WAITING_MAX = 1_000;

export async function createDatabase(url: string, options: DatabaseOptions): Promise<Database> {
  const { maxPoolSize, waitMsMax, silenceMsMax } = options;
  const driver = createPgDriverFactory();
  const pool = await createPool(withSessionOptions(url, options.lockTimeoutMs), {
    driverFactory: silenceMsMax === undefined ? driver : withDeadline(driver, silenceMsMax),
    // A connection past its deadline needs no more time.
    gracefulTerminationTimeout: 50,
    maxPoolSize,
    statementTimeout: options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
    idleInTransactionSessionTimeout: 15_000,
    idleTimeout: 'DISABLE_TIMEOUT',
    connectionRetryLimit: 0,
    connectionTimeout: 3_000,
    // Only the caller of a statement knows whether it is safe to run it again.
    queryRetryLimit: 0,
    // The default sends DISCARD ALL at each release, which costs a round trip and drops prepared statements.
    resetConnection: async () => {},
    interceptors: [resultParser],
    typeParsers: [
      ...createTypeParserPreset().filter(
        ({ name }) => !['int8', 'timestamptz', 'numeric'].includes(name),
      ),
      { name: 'int8', parse: safeInteger },
      { name: '_int8', parse: safeIntegers },
      { name: 'timestamptz', parse: isoTimestamp },
      { name: 'numeric', parse: safeInteger },
    ],
  });
  pool.on('error', options.onError);
  if (waitMsMax === undefined) return pool;
  return boundWaiting(pool, { maxPoolSize, waitMsMax, waitingMax: WAITING_MAX });
}

const LOCK_TIMEOUT_MS = 5_000;

/**
 * The server probes idle connections, so that firewalls keep them open, and closes those that do not answer, which
 * releases their locks.
 */
const SESSION_OPTIONS = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 15_000,
};

function withSessionOptions(text: string, lockTimeoutMs = LOCK_TIMEOUT_MS): string {
  const url = new URL(text);
  const options = { ...SESSION_OPTIONS, lock_timeout: lockTimeoutMs };
  const settings = Object.entries(options).map(([name, value]) => `-c ${name}=${value}`);
  const given = url.searchParams.get('options');
  // The operator's options in the URL come last, so they win.
  url.searchParams.set('options', [...settings, ...(given === null ? [] : [given])].join(' '));
  return url.href;
}

/** Null only inside an array: Slonik parses array members one by one, nulls included. */
function safeInteger(text: string | null): number | null {
  if (text === null) return null;
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer: ${text}`);
  return value;
}

/** For one dimension. Slonik's own parser reads character by character, and each flush of charges returns an array. */
function safeIntegers(text: string): (number | null)[] {
  if (text === '{}') return [];
  return text
    .slice(1, -1)
    .split(',')
    .map((member) => (member === 'NULL' ? null : safeInteger(member)));
}

function isoTimestamp(text: string | null): string | null {
  return text === null ? null : new Date(text).toISOString();
}

/** An amount column, which the connection's parser has already checked to be a safe integer. */
export const micros = Type.Unsafe<Micros>(Type.Integer());

export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** A developer as the charges name it: by the number of its account, four bytes instead of an id. */
export interface DeveloperRef {
  readonly developerNumber: number;
}

const ajv = new Ajv({ allErrors: false });

/** Slonik takes any Standard Schema as the shape of a row. */
export interface RowParser<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'farebox';
    readonly validate: (value: unknown) => { value: T } | { issues: { message: string }[] };
    readonly types?: { readonly input: T; readonly output: T };
  };
}

/**
 * A row's shape as a TypeBox schema, checked on every row. It is compiled here, so create it once, at the top of a
 * module, not for each query.
 */
export function row<T extends TSchema>(schema: T): RowParser<Static<T>> {
  const check = ajv.compile(schema);
  return {
    '~standard': {
      version: 1,
      vendor: 'farebox',
      validate: (value) =>
        check(value)
          ? { value: value as Static<T> }
          : { issues: [{ message: ajv.errorsText(check.errors) }] },
    },
  };
}

/** Slonik's tag. `sql.type(accountRow)` for rows, `sql.typeAlias('nothing')` for none. */
export const sql = createSqlTag({ typeAliases: { nothing: row(Type.Object({})) } });

const oneRow = row(Type.Object({ one: Type.Integer() }));

/** Resolves to true once Postgres answers; rejects when it cannot. */
export async function isDatabaseUp(connection: Connection): Promise<boolean> {
  await connection.one(sql.type(oneRow)`select 1 as one`);
  return true;
}

const timeRow = row(Type.Object({ timeMs: Type.Integer() }));

/** Postgres's clock, in milliseconds since 1970. */
export function readClock(connection: Connection): Promise<number> {
  return connection.oneFirst(sql.type(timeRow)`
    select floor(extract(epoch from clock_timestamp()) * 1000)::int8 as "timeMs"
  `);
}

/** An instant in milliseconds as a Postgres timestamptz. */
export function timestampOf(timeMs: number) {
  return sql.fragment`${new Date(timeMs).toISOString()}::timestamptz`;
}

/** Runs `read` in a read-only snapshot: it sees one moment, regardless of concurrent writes. */
export function inOneSnapshot<T>(
  database: Database,
  read: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return database.transaction(async (tx) => {
    await tx.query(sql.typeAlias('nothing')`
      set transaction isolation level repeatable read, read only
    `);
    return read(tx);
  });
}

/** A row does not have the shape that its query declares: a bug, or a database of another version. */
export class RowShapeError extends Error {
  override readonly name = 'RowShapeError';
}

const resultParser: Interceptor = {
  name: 'result-parser',
  transformRow: (context, query, value) => {
    const parser = context.resultParser as RowParser<unknown> | undefined;
    if (!parser) return value;
    const result = parser['~standard'].validate(value);
    if ('issues' in result) {
      throw new RowShapeError(
        `${result.issues[0]?.message} in a row of: ${query.sql.slice(0, 200)}`,
      );
    }
    return result.value as typeof value;
  },
};
