/** `farebox account sign-in-link`: a one-time link that signs the owner of an account in to the console. */
import type { Command } from 'commander';
import { readConsoleUrl } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { createSignInLink } from '../store/console/sign-in-links.ts';
import { dataDirOption } from './data-dir-option.ts';
import { getAccount, ifLost, withDatabase } from './database-command.ts';

const LIFETIME_SECONDS = 86_400;

export function registerSignInLink(account: Command): void {
  account
    .command('sign-in-link <account>')
    .description(
      'print a one-time sign-in link for the owner of an account; it expires after a day',
    )
    .addOption(dataDirOption())
    .action(print);
}

async function print(who: string, { dataDir }: { readonly dataDir: string }): Promise<void> {
  const env = await environmentOf(dataDir);
  const consoleUrl = readConsoleUrl(env);
  const token = await withDatabase(dataDir, async (database) => {
    const { email } = await getAccount(database, who);
    return createSignInLink(database, email, LIFETIME_SECONDS);
  }).catch(ifLost('Repeat the command: it prints another link.'));
  process.stdout.write(`${consoleUrl}/console/auth/sign-in-link?token=${token}\n`);
  // A running `npm start` sets BASE_URL.
  if (!env['BASE_URL'] && !env['CONSOLE_URL']) {
    process.stderr.write(
      'farebox: neither BASE_URL nor CONSOLE_URL is set, so this link works only on this machine. Set them as for the API.\n',
    );
  }
}
