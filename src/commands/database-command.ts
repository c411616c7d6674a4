/** Shared by commands that use the database: reads the settings, connects and disconnects. */
import { readLedgerConfig, type LedgerConfig } from '../config.ts';
import { uuidOf } from '../domain/ids.ts';
import { environmentOf } from '../embedded/environment.ts';
import { findAccount, type Account } from '../store/accounts/accounts.ts';
import { createDatabase, type Connection, type Database } from '../store/database.ts';

/** A command cannot do what it was asked to. Only the message is printed, and the exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

export async function withDatabase<T>(
  dataDir: string,
  work: (database: Database, config: LedgerConfig) => Promise<T>,
): Promise<T> {
  const config = readLedgerConfig(await environmentOf(dataDir));
  const database = await createDatabase(config.databaseUrl, {
    maxPoolSize: 2,
    statementTimeoutMs: 60_000,
    onError: () => {},
  });
  try {
    return await work(database, config);
  } finally {
    await database.end();
  }
}

/** By email, `acct_…`, `cns_…` or `dev_…`. */
export async function getAccount(connection: Connection, text: string): Promise<Account> {
  const uuid = uuidOf('account', text) ?? uuidOf('consumer', text) ?? uuidOf('developer', text);
  const account = await findAccount(connection, uuid === undefined ? { email: text } : { uuid });
  if (!account) throw new CommandError(`Account ${text} not found.`);
  return account;
}
