/** `farebox account adjust`: an operator's own addition to a balance, or subtraction from it, with its reason. */
import { InvalidArgumentError, type Command } from 'commander';
import { wireId } from '../domain/ids.ts';
import { asMicros, dollarsOf, type Micros } from '../domain/money.ts';
import { adjustBalance } from '../store/balance/adjustments.ts';
import { dataDirOption } from './data-dir-option.ts';
import { positiveDollarsOf } from './dollars.ts';
import { CommandError, getAccount, table, withLedger } from './ledger-command.ts';

const REASON_LENGTH_MAX = 500;

interface AdjustOptions {
  readonly reason: string;
  readonly json: boolean;
  readonly dataDir: string;
}

export function registerAdjust(account: Command): void {
  account
    .command('adjust <account> <dollars>')
    .description('add to a balance, or take from it (-2.50); never below zero')
    .requiredOption('--reason <text>', 'why; kept with it', reasonOf)
    .option('--json', 'print JSON', false)
    .addOption(dataDirOption())
    .action(adjust);
}

async function adjust(
  who: string,
  dollars: string,
  { reason, json, dataDir }: AdjustOptions,
): Promise<void> {
  const amountMicros = signedMicrosOf(dollars);
  const adjusted = await withLedger(dataDir, async (database) => {
    const account = await getAccount(database, who);
    const result = await adjustBalance(database, account, { amountMicros, reason });
    if (result.kind === 'insufficient_balance') {
      throw new CommandError(
        `The balance is ${dollarsOf(result.balance)} dollars, and never goes below zero.`,
      );
    }
    if (result.kind === 'too_much_credited') {
      throw new CommandError(
        'Everything that was ever credited to the account would exceed 9,007,199,254.740991 dollars.',
      );
    }
    if (result.kind === 'key_reused') throw new Error('a command has no idempotency key');
    return {
      consumerId: wireId('consumer', account.consumerId),
      amount: dollarsOf(amountMicros),
      balance: dollarsOf(result.balance),
      debt: dollarsOf(result.debt),
    };
  });
  process.stdout.write(json ? `${JSON.stringify(adjusted)}\n` : table(adjusted));
}

function signedMicrosOf(text: string): Micros {
  const isNegative = text.startsWith('-');
  const micros = positiveDollarsOf(isNegative ? text.slice(1) : text);
  return asMicros((isNegative ? -1 : 1) * micros);
}

function reasonOf(text: string): string {
  const reason = text.trim();
  if (reason !== '' && reason.length <= REASON_LENGTH_MAX) return reason;
  throw new InvalidArgumentError(`It must have from 1 to ${REASON_LENGTH_MAX} characters.`);
}
