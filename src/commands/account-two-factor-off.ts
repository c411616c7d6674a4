/**
 * `farebox account two-factor-off`: restores access for an owner who has lost the authenticator app and all
 * backup codes.
 */
import type { Command } from 'commander';
import { takeSecondFactorFrom } from '../store/console/users.ts';
import { dataDirOption } from './data-dir-option.ts';
import { getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';

export function registerTwoFactorOff(account: Command): void {
  account
    .command('two-factor-off <account>')
    .description(
      'turn off two-factor authentication for an owner who cannot sign in, and end all sessions of the owner',
    )
    .addOption(dataDirOption())
    .action(turnOff);
}

async function turnOff(who: string, { dataDir }: { readonly dataDir: string }): Promise<void> {
  const { email, wasOn } = await withDatabase(dataDir, async (database) => {
    const found = await getAccount(database, who);
    return { email: found.email, wasOn: await takeSecondFactorFrom(database, found.id) };
  }).catch(ifLost(SAME_AGAIN));
  process.stdout.write(
    wasOn
      ? `Two-factor authentication is off for ${email}, and all sessions were ended. A worker with SMTP_URL sends the owner an email within minutes.\n`
      : `Two-factor authentication is not on for ${email}. Nothing was changed.\n`,
  );
}
