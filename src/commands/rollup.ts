/** `farebox rollup rebuild`: makes the sums of earnings again from the charges, beside traffic. */
import type { Command } from 'commander';
import { rebuildRollups } from '../store/earnings/rollups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { withDatabase } from './database-command.ts';

export function register(program: Command): void {
  const rollup = program.command('rollup').description('the sums of what developers earned');
  rollup
    .command('rebuild')
    .description('make them again from the charges, all at once, while charging goes on')
    .addOption(dataDirOption())
    .action(async ({ dataDir }: { dataDir: string }) => {
      await withDatabase(dataDir, rebuildRollups);
      process.stdout.write('The sums are rebuilt.\n');
    });
}
