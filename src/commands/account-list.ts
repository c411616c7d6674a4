/** `farebox account list` and `farebox account show`: accounts and what they have. For operators. */
import type { Command } from 'commander';
import { uuidOf, wireId } from '../domain/ids.ts';
import { dollarsOf } from '../domain/money.ts';
import { listKeys } from '../store/accounts/api-keys.ts';
import { listAccounts, type ListedAccount } from '../store/accounts/list-accounts.ts';
import { getBooks } from '../store/balance/account-books.ts';
import { getCounters } from '../store/balance/consumers.ts';
import { findAutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import { common, type Common } from './common-options.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError, getAccount, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';
import { limitOf, LIMIT_MAX } from './limit.ts';

interface ListOptions extends Common {
  readonly limit: number;
  readonly after?: string;
  readonly search?: string;
}

export function registerList(account: Command): void {
  account
    .command('list')
    .description('list accounts with their balances, newest first')
    .option('--limit <n>', `at most this many, up to ${LIMIT_MAX}`, limitOf, 50)
    .option('--after <account>', 'continue after this account (acct_…)')
    .option('--search <text>', 'only emails that contain this')
    .option('--json', 'print one JSON object per line', false)
    .addOption(dataDirOption())
    .action(list);
  common(
    account
      .command('show')
      .argument('<account>', 'email, acct_…, cns_… or dev_…')
      .description('show an account: ids, balance, held money, limits and number of keys'),
  ).action(show);
}

async function list({ limit, after, search, json, dataDir }: ListOptions): Promise<void> {
  const afterId = after === undefined ? undefined : uuidOf('account', after);
  if (after !== undefined && afterId === undefined) {
    throw new CommandError(`--after must be the id of an account (acct_…), not ${after}.`);
  }
  const accounts = await withDatabase(dataDir, (database) =>
    listAccounts(database, { limit, after: afterId, search }),
  );
  const shown = accounts.map(listed);
  process.stdout.write(json ? jsonLines(shown) : columns(shown));
}

function listed(account: ListedAccount) {
  return {
    accountId: wireId('account', account.id),
    email: account.email,
    consumerId: wireId('consumer', account.consumerId),
    developerId: wireId('developer', account.developerId),
    balance: dollarsOf(account.balanceMicros),
    createdAt: account.createdAt,
  };
}

async function show(who: string, { json, dataDir }: Common): Promise<void> {
  const shown = await withDatabase(dataDir, async (database) => {
    const account = await getAccount(database, who);
    const counters = await getCounters(database, account);
    const books = await getBooks(database, account);
    const autoTopUp = await findAutoTopUp(database, account);
    const keys = await listKeys(database, account.id);
    const { consentCeilingMicros: ceiling } = account;
    return {
      accountId: wireId('account', account.id),
      email: account.email,
      consumerId: wireId('consumer', account.consumerId),
      developerId: wireId('developer', account.developerId),
      balance: dollarsOf(counters.balanceMicros),
      heldByHolds: dollarsOf(books.heldByHoldsMicros),
      heldByDisputes: dollarsOf(books.heldByDisputesMicros),
      debt: dollarsOf(counters.debtMicros),
      spent: dollarsOf(counters.spentMicros),
      refunded: dollarsOf(counters.refundedMicros),
      consentCeiling: ceiling === null ? null : dollarsOf(ceiling),
      autoTopUp: autoTopUp?.status ?? 'off',
      keys: keys.filter(({ revokedAt, expiresAt }) => !revokedAt && !isPast(expiresAt)).length,
    };
  });
  print(shown, json);
}

const isPast = (time: string | null) => time !== null && Date.parse(time) <= Date.now();
