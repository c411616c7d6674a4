/**
 * `farebox env`: prints the settings of the running `farebox start`, for a shell or an .env file, and the settings of
 * `@farebox/client` for a tool server beside it.
 */
import type { Command } from 'commander';
import { runningEnvironment } from '../embedded/environment.ts';
import { toolServerSettings } from '../embedded/first-account.ts';
import { dataDirOption } from './data-dir-option.ts';

export function register(command: Command): void {
  command
    .option(
      '--tool-server',
      'print only the settings for a tool server, without secrets of Farebox',
      false,
    )
    .addOption(dataDirOption())
    .action(({ dataDir, toolServer }: { dataDir: string; toolServer: boolean }) => {
      const settings = runningEnvironment(dataDir);
      const ofToolServer = toolServerSettings(dataDir, settings['BASE_URL'] ?? '');
      const environment = toolServer ? ofToolServer : { ...settings, ...ofToolServer };
      const lines = Object.entries(environment).map(
        ([name, value]) => `${name}=${quoted(value)}\n`,
      );
      process.stdout.write(lines.join(''));
    });
}

/** For a shell and for readers of .env files, which know no escapes in common. */
function quoted(value: string): string {
  if (/^[\w./:@=+,%-]*$/.test(value)) return value;
  if (!value.includes("'")) return `'${value}'`;
  // Between double quotes, these have a meaning.
  if (!/["$`\\!]/.test(value)) return `"${value}"`;
  // Only for a shell.
  return `'${value.replaceAll("'", String.raw`'\''`)}'`;
}
