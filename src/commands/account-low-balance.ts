/** `farebox account low-balance`: the balance below which an account is told so, by the event `balance.low`. */
import type { Command } from 'commander';
import { dollarsOf, type Micros } from '../domain/money.ts';
import { findLowBalance, setLowBalance } from '../store/balance/thresholds.ts';
import { nullIfNone, orNone } from './budget-arguments.ts';
import { common, type Common } from './common-options.ts';
import { getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';
import { print } from './output.ts';
import { parsePositiveDollars } from './dollars.ts';

interface Options extends Common {
  readonly threshold?: Micros | 'none';
}

export function registerLowBalance(account: Command): void {
  common(
    account
      .command('low-balance <account>')
      .description(
        'send the event balance.low when a charge leaves too little; without options, show the current setting',
      )
      .option(
        '--threshold <dollars>',
        'send the event when the balance falls below this, or none',
        orNone(parsePositiveDollars),
      ),
  ).action(lowBalance);
}

async function lowBalance(who: string, { threshold, json, dataDir }: Options): Promise<void> {
  const below = await withDatabase(dataDir, async (database) => {
    const account = await getAccount(database, who);
    if (threshold !== undefined) await setLowBalance(database, account, nullIfNone(threshold));
    return findLowBalance(database, account);
  }).catch(ifLost(threshold === undefined ? undefined : SAME_AGAIN));
  const shown = { threshold: below === null ? null : dollarsOf(below) };
  print(shown, json);
}
