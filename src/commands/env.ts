/**
 * `farebox env`: prints the settings of the running `farebox start`, for a shell or an .env file, and the settings of
 * `@farebox/client` for a tool server beside it.
 */
import type { Command } from 'commander';
import { runningEnvironment } from '../embedded/environment.ts';
import { toolServerSettings } from '../embedded/first-account.ts';
import { dataDirOption } from './data-dir-option.ts';

export function register(command: Command): void {
  command.addOption(dataDirOption()).action(({ dataDir }: { dataDir: string }) => {
    const settings = runningEnvironment(dataDir);
    const environment = { ...settings, ...toolServerSettings(dataDir, settings['BASE_URL'] ?? '') };
    const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
    process.stdout.write(lines.join(''));
  });
}
