/** Accounts created directly in the database, like `farebox account create` does, but quickly and many. */
import { randomUUID } from 'node:crypto';
import { readLedgerConfig } from '../../src/config.ts';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros, microsOfDollars } from '../../src/domain/money.ts';
import { createAccounts } from '../../src/store/accounts/accounts.ts';
import { keptPool } from './kept-pools.ts';
import type { Environment } from './stack.ts';

/** Ids as on the wire, keys in plain text. */
export interface TestAccount {
  readonly email: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly consumerKey: string;
  readonly developerKey: string;
  readonly legacyKey: string;
}

/** With the environment's settings, which name the database. */
export async function createAccount(
  env: Environment,
  balanceDollars: number,
): Promise<TestAccount> {
  const config = readLedgerConfig(env);
  return createTestAccount(config.databaseUrl, balanceDollars, config);
}

const DEFAULTS = { keyPrefix: 'fare', ledgerCount: 16, consentCeilingMicros: undefined };

export async function createTestAccount(
  databaseUrl: string,
  balanceDollars: number,
  settings: Parameters<typeof createAccounts>[2] = DEFAULTS,
): Promise<TestAccount> {
  const [account] = await createTestAccounts(databaseUrl, 1, balanceDollars, settings);
  return account as TestAccount;
}

export async function createTestAccounts(
  databaseUrl: string,
  count: number,
  balanceDollars: number,
  settings: Parameters<typeof createAccounts>[2] = DEFAULTS,
): Promise<TestAccount[]> {
  const balanceMicros = asMicros(microsOfDollars(balanceDollars) ?? Number.NaN);
  const requested = Array.from({ length: count }, () => ({
    email: `${randomUUID()}@example.com`,
    balanceMicros,
  }));
  const result = await createAccounts(await keptPool(databaseUrl), requested, settings);
  if (result.kind !== 'created') throw new Error(`${result.email} is taken`);
  return result.accounts.map((account, index) => ({
    email: requested[index]?.email ?? '',
    consumerId: wireId('consumer', account.consumerId),
    developerId: wireId('developer', account.developerId),
    consumerKey: account.consumerKey,
    developerKey: account.developerKey,
    legacyKey: account.legacyKey,
  }));
}
