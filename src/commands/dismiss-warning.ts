/** `farebox dismiss-warning`: lifts the hold of the bank's fraud warnings on a top-up. For operators. */
import type { Command } from 'commander';
import { uuidOf } from '../domain/ids.ts';
import { dismissFraudWarnings } from '../store/top-ups/reversals.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';

export function register(command: Command): void {
  command.argument('<top-up>').addOption(dataDirOption()).action(dismiss);
}

async function dismiss(topUp: string, { dataDir }: { readonly dataDir: string }): Promise<void> {
  const topUpId = uuidOf('topUp', topUp);
  const dismissed =
    topUpId === undefined
      ? undefined
      : await withDatabase(dataDir, (database) => dismissFraudWarnings(database, topUpId)).catch(
          ifLost(
            'Repeat the command. If it finds no open fraud warning, the warning was dismissed.',
          ),
        );
  if (dismissed === undefined) throw new CommandError(`Top-up ${topUp} not found.`);
  if (dismissed === 0) throw new CommandError(`${topUp} has no open fraud warning.`);
  process.stdout.write(
    `Released the money that the fraud warning held. A dispute would hold it again.\n`,
  );
}
