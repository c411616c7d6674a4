/** `farebox env`: prints the settings of the running `farebox start`, for a shell or an .env file. */
import type { Command } from 'commander';
import { runningEnvironment } from '../embedded/environment.ts';
import { dataDirOption } from './data-dir-option.ts';

export function register(program: Command): void {
  program
    .command('env')
    .description('print DATABASE_URL, TEMPORAL_ADDRESS, URLs and keys of the running start')
    .addOption(dataDirOption())
    .action(({ dataDir }: { dataDir: string }) => {
      const environment = runningEnvironment(dataDir);
      const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
      process.stdout.write(lines.join(''));
    });
}
