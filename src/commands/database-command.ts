/** Shared by commands that use the database: reads the settings, connects and disconnects. */
import { readLedgerConfig, type LedgerConfig } from '../config.ts';
import { uuidOf } from '../domain/ids.ts';
import { environmentOf } from '../embedded/environment.ts';
import type { Environment } from '../read-setting.ts';
import { findAccount, type Account } from '../store/accounts/accounts.ts';
import { createDatabase, type Connection, type Database } from '../store/database.ts';
import { isConnectionLost, lacksSchema } from '../store/failures.ts';
import { OutcomeUnknownError } from './outcome-unknown.ts';

const STATEMENT_TIMEOUT_MS = 60_000;
/** Longer than the statement timeout, so it ends only what that cannot: a COMMIT, and the wait for a silent server. */
const SILENCE_MS_MAX = 75_000;

/** A command cannot do what it was asked to. Only the message is printed, and the exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

const NO_SCHEMA =
  'This database has no Farebox schema: run `farebox migrate`, or check DATABASE_URL.';

interface Options {
  /** How long PostgreSQL may take to answer. Null: any time, for transactions that have no statement timeout. */
  readonly silenceMsMax?: number | null;
}

type Work<T> = (database: Database, config: LedgerConfig) => Promise<T>;

export async function withDatabase<T>(
  dataDir: string,
  work: Work<T>,
  options: Options = {},
): Promise<T> {
  return withDatabaseOf(await environmentOf(dataDir), work, options);
}

/** `env`: the settings, already read. */
export async function withDatabaseOf<T>(
  env: Environment,
  work: Work<T>,
  { silenceMsMax = SILENCE_MS_MAX }: Options = {},
): Promise<T> {
  const config = readLedgerConfig(env);
  const database = await createDatabase(config.databaseUrl, {
    maxPoolSize: 2,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    mayReadStandby: true,
    ...(silenceMsMax !== null && { silenceMsMax }),
    onError: () => {},
  });
  try {
    return await work(database, config);
  } catch (error) {
    if (lacksSchema(error)) throw new CommandError(NO_SCHEMA, { cause: error });
    throw error;
  } finally {
    await database.end();
  }
}

/** The advice of a command that has the same result when it runs twice. */
export const SAME_AGAIN = 'Repeat the command: it sets the same again.';

/**
 * For the failures of a command that writes. When the connection is lost before the outcome is known, the
 * command ends with `advice`: how to find out, or how to repeat it safely. Undefined: it only reads this
 * time.
 */
export function ifLost(advice: string | undefined): (error: unknown) => never {
  return (error) => {
    if (advice === undefined || !isConnectionLost(error)) throw error;
    throw new OutcomeUnknownError(advice, { cause: error });
  };
}

/** By email, `acct_…`, `cns_…` or `dev_…`. */
export async function getAccount(connection: Connection, text: string): Promise<Account> {
  const uuid = uuidOf('account', text) ?? uuidOf('consumer', text) ?? uuidOf('developer', text);
  const account = await findAccount(connection, uuid === undefined ? { email: text } : { uuid });
  if (!account) throw new CommandError(`Account ${text} not found.`);
  return account;
}
