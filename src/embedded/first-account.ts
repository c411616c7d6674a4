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

/** Runs one of our commands and returns its output. */
type Farebox = (...args: readonly string[]) => Promise<string>;

interface Opened {
  readonly account: FirstAccount;
  /** Signs its owner in to the console, once: a new link at each start. */
  readonly signInUrl: string;
}

/** Creates the account if there is none. `report` receives a line when there is none any more. */
export async function openFirstAccount(
  dataDir: string,
  farebox: Farebox,
  report: (line: string) => void,
): Promise<Opened> {
  const kept = readJson(dataDir, FILE) as FirstAccount | undefined;
  if (kept) {
    const signInUrl = await findSignInUrl(kept, farebox);
    if (signInUrl !== undefined) return { account: kept, signInUrl };
    report(
      `The first account, ${kept.consumerId}, is not in the database, which may have been removed or restored: ` +
        'this start creates another one',
    );
  }
  const account = await createFirstAccount(dataDir, farebox);
  return { account, signInUrl: await signInUrlOf(account, farebox) };
}

async function createFirstAccount(dataDir: string, farebox: Farebox): Promise<FirstAccount> {
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

/** Undefined when the database does not have the account. */
async function findSignInUrl(account: FirstAccount, farebox: Farebox): Promise<string | undefined> {
  try {
    return await signInUrlOf(account, farebox);
  } catch (error) {
    if ((error as Error).message.includes(`Account ${account.consumerId} not found`)) {
      return undefined;
    }
    throw error;
  }
}

async function signInUrlOf({ consumerId }: FirstAccount, farebox: Farebox): Promise<string> {
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
