/** `farebox rollup rebuild`: recalculates the sums of earnings from the charges, while charging continues. */
import type { Command } from 'commander';
import { rebuildRollups } from '../store/earnings/rollups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { withDatabase } from './database-command.ts';

export function register(rollup: Command): void {
  rollup
    .command('rebuild')
    .description(
      'recalculate the sums from the charges in one transaction, while charging continues',
    )
    .addOption(dataDirOption())
    .action(async ({ dataDir }: { dataDir: string }) => {
      await withDatabase(dataDir, rebuildRollups);
      process.stdout.write('Rebuilt the sums of earnings.\n');
    });
}
