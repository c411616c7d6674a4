/** `farebox account adjust`: credits or debits a balance manually, with a reason. For operators. */
import { InvalidArgumentError, type Command } from 'commander';
import { isIdempotencyKey, KEY_FORM } from '../domain/idempotency-key.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollars, LARGEST_AMOUNT, type Micros } from '../domain/money.ts';
import { adjustBalance } from '../store/balance/adjustments.ts';
import { common, type Common } from './common-options.ts';
import { parseSignedDollars } from './dollars.ts';
import { CommandError, getAccount, ifLost, withDatabase } from './database-command.ts';
import { print } from './output.ts';
import { printableText } from './printable-text.ts';

const REASON_LENGTH_MAX = 500;
const reasonOf = printableText(REASON_LENGTH_MAX);

interface AdjustOptions extends Common {
  readonly reason: string;
  readonly idempotencyKey?: string;
}

export function registerAdjust(account: Command): void {
  common(
    account
      .command('adjust')
      .argument('<account>', 'email, acct_…, cns_… or dev_…')
      .argument('<dollars>', 'credit (5) or debit (-2.50)', parseSignedDollars)
      .description('credit a balance, or debit it (-2.50); never below zero')
      .requiredOption('--reason <text>', 'reason, recorded with the adjustment', (text) =>
        reasonOf(text.trim()),
      )
      .option(
        '--idempotency-key <key>',
        'with the same key, a repeated command adjusts only once',
        keyOf,
      ),
  ).action(adjust);
}

async function adjust(
  who: string,
  amountMicros: Micros,
  { reason, idempotencyKey, json, dataDir }: AdjustOptions,
): Promise<void> {
  const adjusted = await withDatabase(dataDir, async (database) => {
    const account = await getAccount(database, who);
    const by = idempotencyKey === undefined ? undefined : { idempotencyKey };
    const result = await adjustBalance(database, account, { amountMicros, reason }, by);
    if (result.kind === 'insufficient_balance') {
      throw new CommandError(
        `The balance is ${formatDollars(result.balanceMicros)} and cannot go below zero.`,
      );
    }
    if (result.kind === 'too_much_credited') {
      throw new CommandError(`The account's lifetime credits would exceed ${LARGEST_AMOUNT}.`);
    }
    if (result.kind === 'key_reused') {
      throw new CommandError('This idempotency key belongs to another adjustment or a refund.');
    }
    return {
      consumerId: wireId('consumer', account.consumerId),
      amount: dollarsOf(amountMicros),
      balance: dollarsOf(result.balanceMicros),
      debt: dollarsOf(result.debtMicros),
    };
  }).catch(ifLost(adviceOn(who, idempotencyKey)));
  print(adjusted, json);
}

function adviceOn(who: string, idempotencyKey: string | undefined): string {
  return idempotencyKey === undefined
    ? `Look for it in \`farebox audit --account ${who}\` before you repeat the command, or it may adjust twice.`
    : 'Repeat the command with the same --idempotency-key: it adjusts only once.';
}

export function keyOf(text: string): string {
  if (isIdempotencyKey(text)) return text;
  throw new InvalidArgumentError(`It must be ${KEY_FORM}.`);
}
