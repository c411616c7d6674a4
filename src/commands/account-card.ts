/**
 * `farebox account consent` and `farebox account auto-top-up`: what its owner lets be taken from an account's
 * saved card. Nothing else changes that; a consumer key cannot.
 */
import type { Command } from 'commander';
import { dollarsOf as inDollars, type Micros } from '../domain/money.ts';
import { findAutoTopUp, setAutoTopUp, type AutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../store/top-ups/consent.ts';
import { dataDirOption } from './data-dir-option.ts';
import { dollarsOf, payableDollarsOf, positiveDollarsOf } from './dollars.ts';
import { CommandError, getAccount, table, withLedger } from './ledger-command.ts';

interface AutoTopUpOptions {
  readonly threshold?: Micros;
  readonly amount?: Micros;
  readonly ceiling?: Micros;
  readonly off?: boolean;
  readonly json: boolean;
  readonly dataDir: string;
}

export function registerCard(account: Command): void {
  account
    .command('consent <account>')
    .description('let direct top-ups take up to so much a month from the saved card')
    .requiredOption('--ceiling <dollars>', 'per UTC month; 0 takes the consent back', dollarsOf)
    .addOption(dataDirOption())
    .action(async (who: string, options: { ceiling: Micros; dataDir: string }) => {
      await withLedger(options.dataDir, async (database) => {
        const { consumerId } = await getAccount(database, who);
        const ceiling = options.ceiling === 0 ? null : options.ceiling;
        await changeConsent(database, consumerId, { ceiling, givenBy: 'operator' });
      });
    });
  account
    .command('auto-top-up <account>')
    .description(
      'top up from the saved card when the balance is low; without options, show how it stands',
    )
    .option('--threshold <dollars>', 'a charge that leaves less asks for it', positiveDollarsOf)
    .option('--amount <dollars>', 'to take each time', payableDollarsOf)
    .option('--ceiling <dollars>', 'to take at most in a UTC month', positiveDollarsOf)
    .option('--off', 'switch it off')
    .option('--json', 'print JSON', false)
    .addOption(dataDirOption())
    .action(autoTopUp);
}

async function autoTopUp(who: string, options: AutoTopUpOptions): Promise<void> {
  const settings = settingsIn(options);
  const found = await withLedger(options.dataDir, async (database) => {
    const account = await getAccount(database, who);
    if (settings !== undefined) await setAutoTopUp(database, account, settings);
    return findAutoTopUp(database, account);
  });
  const shown = shownOf(found);
  process.stdout.write(options.json ? `${JSON.stringify(shown)}\n` : table(shown));
}

/** Null to switch off, undefined to leave as it is. */
function settingsIn({ threshold, amount, ceiling, off }: AutoTopUpOptions) {
  const given = [threshold, amount, ceiling].filter((value) => value !== undefined);
  if (off && given.length > 0) throw new CommandError('--off goes with no other setting.');
  if (off) return null;
  if (given.length === 0) return undefined;
  if (threshold === undefined || amount === undefined || ceiling === undefined) {
    throw new CommandError('--threshold, --amount and --ceiling are set together.');
  }
  if (amount > ceiling) throw new CommandError('The amount is more than the ceiling of a month.');
  return { thresholdMicros: threshold, amountMicros: amount, ceilingMicros: ceiling };
}

function shownOf(autoTopUp: AutoTopUp | null): Record<string, string | number | null> {
  if (!autoTopUp) return { status: 'off', reason: null };
  const { status, reason, thresholdMicros, amountMicros, ceilingMicros } = autoTopUp;
  return {
    status,
    reason,
    threshold: inDollars(thresholdMicros),
    amount: inDollars(amountMicros),
    ceiling: inDollars(ceilingMicros),
  };
}
