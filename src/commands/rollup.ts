/** `farebox rollup rebuild`: recalculates the sums of earnings from the charges, while charging continues. */
import type { Command } from 'commander';
import { rebuildRollups } from '../store/earnings/rollups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { ifLost, withDatabase } from './database-command.ts';
import { endProgress, showProgress } from './inspection.ts';

export function register(rollup: Command): void {
  rollup
    .command('rebuild')
    .description(
      'recalculate the sums of earnings from the charges in one transaction, while charging continues',
    )
    .addOption(dataDirOption())
    .action(async ({ dataDir }: { dataDir: string }) => {
      showProgress('Recalculating the sums of earnings');
      await withDatabase(dataDir, rebuildRollups, { silenceMsMax: null })
        .catch(ifLost('Repeat the command: it recalculates everything again.'))
        .finally(endProgress);
      process.stdout.write('Rebuilt the sums of earnings.\n');
    });
}
