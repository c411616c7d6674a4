/**
 * The first account of a new data directory. The directory keeps its keys, because Farebox shows a key only once and
 * users need them after the second start too.
 */
import { readJson, writeJson } from './data-dir.ts';

export interface FirstAccount {
  readonly email: string;
  readonly consumerId: string;
  readonly consumerKey: string;
  readonly developerId: string;
  readonly developerKey: string;
  readonly legacyKey: string;
}

const FIRST_EMAIL = 'you@example.com';
const FIRST_BALANCE_DOLLARS = 10;
const FILE = 'first-account.json';

/** `farebox` runs one of our commands and returns its output. */
export async function firstAccountOf(
  dataDir: string,
  farebox: (...args: readonly string[]) => Promise<string>,
): Promise<FirstAccount> {
  const kept = readJson(dataDir, FILE) as FirstAccount | undefined;
  if (kept) return kept;
  const create = async (email: string): Promise<FirstAccount> => {
    const balance = `--balance=${FIRST_BALANCE_DOLLARS}`;
    const printed = await farebox('account', 'create', `--email=${email}`, balance, '--json');
    return { ...(JSON.parse(printed) as Omit<FirstAccount, 'email'>), email };
  };
  // An earlier start was killed after it created the account and before it stored the keys. They are lost, so create
  // another account.
  const account = await create(FIRST_EMAIL).catch(() =>
    create(FIRST_EMAIL.replace('@', `+${Date.now()}@`)),
  );
  writeJson(dataDir, FILE, account);
  return account;
}

/**
 * What `@farebox/client` reads from the environment. Without a first account, such as with a real database,
 * the URL alone.
 */
export function toolServerSettings(dataDir: string, baseUrl: string): Record<string, string> {
  const account = readJson(dataDir, FILE) as FirstAccount | undefined;
  return {
    FAREBOX_URL: baseUrl,
    ...(account && {
      FAREBOX_SECRET_KEY: account.developerKey,
      FAREBOX_CONSUMER_KEY: account.consumerKey,
    }),
  };
}

/** A link that signs its owner in to the console, once: a new one at each start. */
export async function signInUrlOf(
  { consumerId }: FirstAccount,
  farebox: (...args: readonly string[]) => Promise<string>,
): Promise<string> {
  return (await farebox('account', 'sign-in-link', consumerId)).trim();
}

/** For copy and paste. */
export function chargeCommand(baseUrl: string, account: FirstAccount): string {
  const body = JSON.stringify({ apiKey: account.consumerKey, tool: 'search', amount: 0.05 });
  return [
    `curl -sS ${baseUrl}/v1/charges`,
    `-H 'Authorization: Bearer ${account.developerKey}'`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(' \\\n  ');
}
