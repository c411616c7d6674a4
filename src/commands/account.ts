/** `farebox account …`: creates accounts without the console, and changes settings that only an owner may change. */
import { InvalidArgumentError, type Command } from 'commander';
import { isEmail } from '../domain/email.ts';
import { wireId } from '../domain/ids.ts';
import { asMicros, type Micros } from '../domain/money.ts';
import {
  ACCOUNTS_AT_ONCE,
  createAccounts,
  type CreatedAccount,
} from '../store/accounts/accounts.ts';
import { isConnectionLost } from '../store/failures.ts';
import { failureReason } from '../stripe/errors.ts';
import { registerAccountKeys } from './account-keys.ts';
import { registerAdjust } from './account-adjust.ts';
import { registerList } from './account-list.ts';
import { registerLowBalance } from './account-low-balance.ts';
import { registerPromote } from './account-promote.ts';
import { registerSavedCard } from './account-saved-card.ts';
import { registerSignInLink } from './account-sign-in-link.ts';
import { registerTwoFactorOff } from './account-two-factor-off.ts';
import { dataDirOption } from './data-dir-option.ts';
import { parseDollars } from './dollars.ts';
import { CommandError, withDatabase } from './database-command.ts';
import { OutcomeUnknownError, UnwrittenError } from './outcome-unknown.ts';
import { printAll } from './output.ts';
import { untilStopped } from './until-stopped.ts';

const COUNT_MAX = 1_000_000;

interface CreateOptions {
  readonly email: string;
  readonly balance: Micros;
  readonly count: number | undefined;
  readonly from: number | undefined;
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(account: Command): void {
  account
    .command('create')
    .description('create an account: a consumer, a developer and their keys, which are shown once')
    .requiredOption('--email <address>', "the owner's email; --count adds a number to it", emailOf)
    .option(
      '--balance <dollars>',
      'opening balance, recorded as a completed manual top-up',
      parseDollars,
      asMicros(0),
    )
    .option('--count <n>', 'create this many accounts', countOf)
    .option('--from <n>', 'with --count: the number of the first one; default: 1', countOf)
    .option('--json', 'print one JSON object per line', false)
    .addOption(dataDirOption())
    .action(create);
  registerList(account);
  registerSavedCard(account);
  registerLowBalance(account);
  registerAccountKeys(account);
  registerAdjust(account);
  registerPromote(account);
  registerSignInLink(account);
  registerTwoFactorOff(account);
}

async function create(options: CreateOptions): Promise<void> {
  const { balance, count, json, dataDir } = options;
  const emails = emailsOf(options);
  let shown = 0;
  let isInterrupted = false;
  const interrupt = (): void => {
    isInterrupted = true;
    process.stderr.write('farebox: stopping when the accounts that exist are printed\n');
  };
  if (count !== undefined) void untilStopped().then(interrupt);
  // As soon as they exist, and before others do: nothing shows their keys again, and a process that ends loses those
  // that wait in its memory for a slow reader.
  const printNew = async (accounts: readonly CreatedAccount[]): Promise<void> => {
    const each = accounts.map((account, at) => shownOnce(account, emails[shown + at] ?? ''));
    const upTo = shown + accounts.length;
    await printAll(each, json).catch((error: NodeJS.ErrnoException) => {
      throw unwritten(error, upTo, options);
    });
    shown = upTo;
  };
  const refuseMore = (): void => {
    if (isInterrupted) throw new CommandError(interrupted(shown, options));
  };
  const result = await withDatabase(dataDir, (database, config) =>
    createAccounts(
      database,
      emails.map((address) => ({ email: address, balanceMicros: balance })),
      config,
      { before: refuseMore, committed: printNew },
    ),
  ).catch((error: unknown) => {
    throw stoppedAfter(shown, options, error);
  });
  if (result.kind === 'email_taken') {
    throw new CommandError(`An account with the email ${result.email} already exists.`);
  }
}

function emailsOf({ email, count, from = 1 }: CreateOptions): readonly string[] {
  if (count === undefined && from !== 1) throw new CommandError('--from needs --count.');
  if (count === undefined) return [email];
  const emails = Array.from({ length: count }, (_, index) =>
    email.replace('@', `+${from + index}@`),
  );
  const longest = emails.at(-1) ?? '';
  if (!isEmail(longest)) throw new CommandError(`${longest} is too long for an email address.`);
  return emails;
}

/** The error of a run that stopped early. The accounts before are created, and their keys are printed. */
function stoppedAfter(shown: number, options: CreateOptions, error: unknown): unknown {
  if (error instanceof CommandError || error instanceof UnwrittenError) return error;
  const { count } = options;
  const isLost = isConnectionLost(error);
  const emails = emailsOf(options);
  // Nothing was created, or everything, and only closing the connection failed.
  if ((shown === 0 && !isLost) || shown === emails.length) return error;
  if (!isLost) return new CommandError(stopped(failureReason(error), shown, options));
  const before = count === undefined ? '' : createdAndPrinted(shown, options);
  const rest = restAfter(shown, options);
  const next = emails.slice(shown, shown + ACCOUNTS_AT_ONCE);
  const advice =
    count === undefined
      ? 'If it exists, it has keys that were not shown: create others with `farebox key create`.'
      : `If it does not exist, repeat the command with ${rest}. If it does, so does each one up to ${next.at(-1)}, ` +
        'with keys that were not shown: create others with `farebox key create`.';
  return new OutcomeUnknownError(
    `${before && `${before} before that. `}Run \`farebox account show ${next[0]}\`. ${advice}`,
    { cause: error },
  );
}

function interrupted(shown: number, options: CreateOptions): string {
  return shown === 0
    ? 'Interrupted before it created an account.'
    : stopped('it was interrupted', shown, options);
}

function stopped(reason: string, shown: number, options: CreateOptions): string {
  const rest = restAfter(shown, options);
  return `${createdAndPrinted(shown, options)}, then stopped: ${reason}. Repeat the command with ${rest} to create the rest.`;
}

function createdAndPrinted(shown: number, { count }: CreateOptions): string {
  return `Created and printed ${shown} of ${count} accounts`;
}

/** The error of a run that could not write the keys of all the accounts that it has `created`. */
function unwritten(
  { code, message }: NodeJS.ErrnoException,
  created: number,
  options: CreateOptions,
): UnwrittenError {
  const emails = emailsOf(options);
  const why =
    code === 'EPIPE' ? 'Nobody reads the output.' : `The output could not be written (${message}).`;
  const which =
    options.count === undefined
      ? `The account ${emails[0]} exists, with keys that nobody has seen`
      : `The accounts up to ${emails[created - 1]} exist, and some have keys that nobody has seen`;
  const more =
    created === emails.length
      ? ''
      : ` Repeat the command with ${restAfter(created, options)} to create the rest.`;
  return new UnwrittenError(`${why} ${which}: create others with \`farebox key create\`.${more}`);
}

function restAfter(created: number, { count = 1, from = 1 }: CreateOptions): string {
  return `--from ${from + created} --count ${count - created}`;
}

function shownOnce(account: CreatedAccount, address: string): Record<string, string> {
  return {
    accountId: wireId('account', account.accountId),
    email: address.toLowerCase(),
    consumerId: wireId('consumer', account.consumerId),
    consumerKey: account.consumerKey,
    developerId: wireId('developer', account.developerId),
    developerKey: account.developerKey,
    legacyKey: account.legacyKey,
  };
}

function emailOf(text: string): string {
  if (isEmail(text)) return text;
  throw new InvalidArgumentError('It must be an email address with which people can sign in.');
}

function countOf(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= COUNT_MAX) return count;
  throw new InvalidArgumentError(`It must be a number from 1 to ${COUNT_MAX}.`);
}
