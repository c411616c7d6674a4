/** `farebox account keys`: what the consumer keys of an account may be charged. A consumer key cannot change it. */
import { Option, type Command } from 'commander';
import { dollarsOf, type Micros } from '../domain/money.ts';
import {
  changeAccountKeys,
  readAccountKeys,
  type AccountKeys,
} from '../store/accounts/account-keys.ts';
import { common, type Common } from './common-options.ts';
import { nullIfNone, orNone } from './budget-arguments.ts';
import { parseDollars } from './dollars.ts';
import { getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';
import { print } from './output.ts';

interface Options extends Common {
  readonly charge?: AccountKeys['charge'];
  readonly developerDayLimit?: Micros | 'none';
}

export function registerAccountKeys(account: Command): void {
  common(
    account
      .command('keys <account>')
      .description(
        'close the consumer keys of an account to charges, or limit them; without options, show current settings',
      )
      .addOption(
        new Option(
          '--charge <state>',
          'whether tools can charge them; spend keys are not affected',
        ).choices(['open', 'closed']),
      )
      .option(
        '--developer-day-limit <dollars>',
        'maximum that one developer may charge in a UTC day, or none',
        orNone(parseDollars),
      ),
  ).action(keys);
}

async function keys(
  who: string,
  { charge, developerDayLimit, json, dataDir }: Options,
): Promise<void> {
  const isChange = charge !== undefined || developerDayLimit !== undefined;
  const { charge: state, developerDayMicros } = await withDatabase(dataDir, async (database) => {
    const account = await getAccount(database, who);
    if (!isChange) return readAccountKeys(database, account);
    return changeAccountKeys(database, account, {
      ...(charge !== undefined && { charge }),
      ...(developerDayLimit !== undefined && {
        developerDayMicros: nullIfNone(developerDayLimit),
      }),
    });
  }).catch(ifLost(isChange ? SAME_AGAIN : undefined));
  const shown = {
    charge: state,
    developerDayLimit: developerDayMicros === null ? null : dollarsOf(developerDayMicros),
  };
  print(shown, json);
}
