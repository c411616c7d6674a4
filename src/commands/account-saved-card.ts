/**
 * `farebox account consent` and `farebox account auto-top-up`: how much the owner of an account allows Farebox to
 * charge to the saved card. Nothing else changes these limits; a consumer key cannot.
 */
import type { Command } from 'commander';
import { wireId } from '../domain/ids.ts';
import { dollarsOf, type Micros } from '../domain/money.ts';
import { findAutoTopUp, setAutoTopUp, type AutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../store/top-ups/monthly-ceiling.ts';
import { common, type Common } from './common-options.ts';
import { parseCardDollars, parseCardLimit, parsePositiveCardLimit } from './dollars.ts';
import { CommandError, getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';
import { print } from './output.ts';

interface AutoTopUpOptions extends Common {
  readonly threshold?: Micros;
  readonly amount?: Micros;
  readonly ceiling?: Micros;
  readonly off?: boolean;
}

export function registerSavedCard(account: Command): void {
  common(
    account
      .command('consent <account>')
      .description('set how much direct top-ups may charge to the saved card in a month')
      .requiredOption(
        '--ceiling <dollars>',
        'per UTC month; 0 withdraws the consent',
        parseCardLimit,
      ),
  ).action(consent);
  common(
    account
      .command('auto-top-up <account>')
      .description(
        'top up from the saved card when the balance is low; without options, show current settings',
      )
      .option(
        '--threshold <dollars>',
        'top up when a charge leaves less than this',
        parsePositiveCardLimit,
      )
      .option('--amount <dollars>', 'amount of each top-up', parseCardDollars)
      .option('--ceiling <dollars>', 'maximum to charge in a UTC month', parsePositiveCardLimit)
      .option('--off', 'turn automatic top-ups off'),
  ).action(autoTopUp);
}

interface ConsentOptions extends Common {
  readonly ceiling: Micros;
}

async function consent(who: string, { ceiling, json, dataDir }: ConsentOptions): Promise<void> {
  const shown = await withDatabase(dataDir, async (database) => {
    const { consumerId } = await getAccount(database, who);
    await changeConsent(database, consumerId, {
      ceilingMicros: ceiling === 0 ? null : ceiling,
      givenBy: 'operator',
    });
    return {
      consumerId: wireId('consumer', consumerId),
      consentCeiling: ceiling === 0 ? null : dollarsOf(ceiling),
    };
  }).catch(ifLost(SAME_AGAIN));
  print(shown, json);
}

async function autoTopUp(who: string, options: AutoTopUpOptions): Promise<void> {
  const settings = settingsIn(options);
  const found = await withDatabase(options.dataDir, async (database) => {
    const account = await getAccount(database, who);
    if (
      settings !== undefined &&
      (await setAutoTopUp(database, account, settings)) === 'consent_required'
    ) {
      throw new CommandError(
        'The owner has not allowed payments from the saved card, which automatic top-ups need. The owner can allow them ' +
          "in the console, or you can do so on the owner's behalf with farebox account consent.",
      );
    }
    return findAutoTopUp(database, account);
  }).catch(ifLost(settings === undefined ? undefined : SAME_AGAIN));
  const shown = shownOf(found);
  print(shown, options.json);
}

/** Null switches it off, undefined changes nothing. */
function settingsIn({ threshold, amount, ceiling, off }: AutoTopUpOptions) {
  const given = [threshold, amount, ceiling].filter((value) => value !== undefined);
  if (off && given.length > 0)
    throw new CommandError('--off cannot be combined with other settings.');
  if (off) return null;
  if (given.length === 0) return undefined;
  if (threshold === undefined || amount === undefined || ceiling === undefined) {
    throw new CommandError('Set --threshold, --amount and --ceiling together.');
  }
  if (amount > ceiling) throw new CommandError('The amount exceeds the monthly ceiling.');
  return { thresholdMicros: threshold, amountMicros: amount, ceilingMicros: ceiling };
}

function shownOf(autoTopUp: AutoTopUp | null): Record<string, string | number | null> {
  if (!autoTopUp) return { status: 'off', reason: null };
  const { status, reason, thresholdMicros, amountMicros, ceilingMicros } = autoTopUp;
  return {
    status,
    reason,
    threshold: dollarsOf(thresholdMicros),
    amount: dollarsOf(amountMicros),
    ceiling: dollarsOf(ceilingMicros),
  };
}
