/** `farebox account promote`: makes the owner of an account an operator of the service, in the console. */
import type { Command } from 'commander';
import { setOperator } from '../store/operators/operator-actions.ts';
import { dataDirOption } from './data-dir-option.ts';
import { getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';

interface PromoteOptions {
  readonly off: boolean;
  readonly dataDir: string;
}

export function registerPromote(account: Command): void {
  account
    .command('promote <account>')
    .description(
      'make the owner an operator, who can see every account, adjust balances and refund top-ups',
    )
    .option('--off', 'remove the operator role from the owner', false)
    .addOption(dataDirOption())
    .action(promote);
}

async function promote(who: string, { off, dataDir }: PromoteOptions): Promise<void> {
  const email = await withDatabase(dataDir, async (database) => {
    const found = await getAccount(database, who);
    await setOperator(database, found.id, !off);
    return found.email;
  }).catch(ifLost(SAME_AGAIN));
  process.stdout.write(
    off
      ? `${email} is no longer an operator.\n`
      : `${email} is an operator. The console asks for two-factor authentication first.\n`,
  );
}
