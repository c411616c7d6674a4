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
import { Ajv, type ValidateFunction } from 'ajv';
import type { Micros } from '../domain/money.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { boundWaiting } from './bounded-pool.ts';
import { connectPatiently } from './patient-connect.ts';
import { isOfStandby, toPrimary } from './primary-only.ts';
import { explainConnectFailure, withOwnTls, withSessionOptions } from './session.ts';
import { withDeadline } from './statement-deadline.ts';
import { tracedStatements } from './traced-statements.ts';
import { listenToClients, withListener } from './unheard-errors.ts';

listenToClients();
connectPatiently();

/** Anything that runs queries: the pool, or a transaction's connection. */
export type Connection = CommonQueryMethods;
export type Transaction = DatabaseTransactionConnection;
export type Database = DatabasePool;

export interface DatabaseOptions {
  readonly maxPoolSize: number;
  /** Called when an idle connection breaks. Without a listener, that would end the process. */
  readonly onError: (error: unknown) => void;
  /** No parallel workers and no JIT compilation, so that a statement leaves the other cores to charges. */
  readonly usesOneCore?: boolean;
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
  /** For commands: an operator may choose to run one that only reads on a standby. */
  readonly mayReadStandby?: boolean;
  /** In a process that traces. */
  readonly tracing?: Tracing | undefined;
}

const STATEMENT_TIMEOUT_MS = 10_000;
const LOCK_TIMEOUT_MS = 5_000;
/** A caller behind this many others would not get its turn in time. */
const WAITING_MAX = 1_000;

export async function createDatabase(url: string, options: DatabaseOptions): Promise<Database> {
  const { maxPoolSize, waitMsMax, silenceMsMax, tracing } = options;
  const heard = withListener(createPgDriverFactory());
  const driver = silenceMsMax === undefined ? heard : withDeadline(heard, silenceMsMax);
  const settings = {
    lock_timeout: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
    ...(options.usesOneCore === true && { max_parallel_workers_per_gather: 0, jit: 'off' }),
  };
  const { uri, ssl } = withOwnTls(withSessionOptions(url, settings));
  const pool = await createPool(uri, {
    ...(ssl && { ssl }),
    driverFactory: options.mayReadStandby === true ? driver : toPrimary(driver),
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
    interceptors: tracing ? [tracedStatements(tracing), resultParser] : [resultParser],
    typeParsers: [
      ...createTypeParserPreset().filter(
        ({ name }) => !['int8', 'timestamptz', 'numeric'].includes(name),
      ),
      { name: 'int8', parse: safeInteger },
      { name: '_int8', parse: safeIntegers },
      { name: '_text', parse: texts },
      { name: '_uuid', parse: texts },
      { name: 'timestamptz', parse: isoTimestamp },
      { name: 'numeric', parse: safeInteger },
    ],
  }).catch((error: unknown) => {
    throw explainConnectFailure(error);
  });
  pool.on('error', options.onError);
  if (waitMsMax === undefined) return pool;
  return boundWaiting(pool, { maxPoolSize, waitMsMax, waitingMax: WAITING_MAX });
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

/** A member: in quotes, where a backslash stands before quotes and backslashes, or without. */
const MEMBER = /"((?:[^"\\]|\\.)*)"|[^,]+/gs;

/** For one dimension. A budget may name a thousand developers: Slonik's own parser would take two milliseconds. */
function texts(text: string): (string | null)[] {
  return Array.from(text.slice(1, -1).matchAll(MEMBER), ([whole, quoted]) => {
    if (quoted === undefined) return whole === 'NULL' ? null : whole;
    return quoted.replaceAll(/\\(.)/gs, '$1');
  });
}

function isoTimestamp(text: string | null): string | null {
  return text === null ? null : new Date(text).toISOString();
}

/** An amount column, which the connection's parser has already checked to be a safe integer. */
export const micros = Type.Unsafe<Micros>(Type.Integer());

export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** The metadata of a row. The schemas of requests allow no other members. */
export const storedMetadata = nullable(
  Type.Record(
    Type.String(),
    Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
  ),
);

/** A developer as the charges name it: by the number of its account, four bytes instead of an id. */
export interface DeveloperRef {
  readonly developerNumber: number;
}

/**
 * TypeBox makes valid schemas. To check the first one, Ajv would compile the meta-schema, a tenth of a
 * command's CPU time.
 */
const ajv = new Ajv({ allErrors: false, meta: false, validateSchema: false });

/** Slonik takes any Standard Schema as the shape of a row. */
interface RowParser<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'farebox';
    readonly validate: (value: unknown) => { value: T } | { issues: { message: string }[] };
    readonly types?: { readonly input: T; readonly output: T };
  };
}

/**
 * A row's shape as a TypeBox schema, checked on every row. Create it once, at the top of a module, not for each query:
 * it is compiled with its first row. To compile all of them at the start took a quarter of the start.
 */
export function row<T extends TSchema>(schema: T): RowParser<Static<T>> {
  let check: ValidateFunction | undefined;
  return {
    '~standard': {
      version: 1,
      vendor: 'farebox',
      validate: (value) => {
        check ??= ajv.compile(schema);
        return check(value)
          ? { value: value as Static<T> }
          : { issues: [{ message: ajv.errorsText(check.errors) }] };
      },
    },
  };
}

/** For the hot statements, whose rows come from our own functions and are not checked. */
export function unchecked<T>(): RowParser<T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'farebox',
      validate: (value) => ({ value: value as T }),
    },
  };
}

/** The rows that many statements return. */
export const idRow = row(Type.Object({ id: Type.String() }));
export const existsRow = row(Type.Object({ exists: Type.Boolean() }));
export const countRow = row(Type.Object({ count: Type.Integer() }));

/** Slonik's tag. `sql.type(accountRow)` for rows, `sql.typeAlias('nothing')` for none. */
export const sql = createSqlTag({ typeAliases: { nothing: row(Type.Object({})) } });

/** A part of a statement. */
export type Fragment = ReturnType<typeof sql.fragment>;

/** How a Postgres that answers can take charges. */
const SERVER_STATES = ['up', 'read_only', 'not_durable'] as const;
export type ServerState = (typeof SERVER_STATES)[number];

const stateRow = row(Type.Object({ state: Type.Enum(SERVER_STATES) }));

/** Its session is not `up`. Thrown inside `connect`, which then closes the connection. */
class UnfitSessionError extends Error {
  override readonly name = 'UnfitSessionError';
  readonly state: ServerState;

  constructor(state: ServerState) {
    super(`The session is ${state}`);
    this.state = state;
  }
}

/**
 * Rejects when Postgres does not answer. `not_durable` with synchronous_commit off, when a crash of Postgres would lose
 * what was confirmed. A session that is not `up` is closed: it has the defaults of its beginning, and the
 * next one has those of its own.
 */
export async function readServerState(database: Database): Promise<ServerState> {
  try {
    return await database.connect(async (connection) => {
      const state = await connection.oneFirst(sql.type(stateRow)`
        select case
          when current_setting('transaction_read_only') = 'on' then 'read_only'
          when current_setting('synchronous_commit') = 'off' then 'not_durable'
          else 'up' end as state
      `);
      if (state !== 'up') throw new UnfitSessionError(state);
      return state;
    });
  } catch (error) {
    if (error instanceof UnfitSessionError) return error.state;
    if (isOfStandby(error)) return 'read_only';
    throw error;
  }
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

/** Milliseconds as a Postgres interval. */
export function durationOf(ms: number) {
  return sql.fragment`${ms}::int8 * interval '1 ms'`;
}

/**
 * Runs `read` in a read-only snapshot: it sees one moment, regardless of concurrent writes. `lock` comes
 * before the snapshot and takes only locks.
 */
export function inOneSnapshot<T>(
  database: Database,
  read: (tx: Transaction) => Promise<T>,
  lock?: (tx: Transaction) => Promise<void>,
): Promise<T> {
  return database.transaction(async (tx) => {
    await tx.query(sql.typeAlias('nothing')`
      set transaction isolation level repeatable read, read only
    `);
    await lock?.(tx);
    return read(tx);
  });
}

/** A row does not have the shape that its query declares: a bug, or a database of another version. */
class RowShapeError extends Error {
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
