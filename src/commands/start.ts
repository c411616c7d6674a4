/** `farebox start`: runs everything on this machine with one command. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { start } from '../embedded/start.ts';
import { dataDirOption } from './data-dir-option.ts';

interface StartCommandOptions {
  readonly port: number;
  readonly dataDir: string;
  readonly maintenance: boolean;
}

export function register(command: Command): void {
  command
    .addOption(
      new Option('--port <number>', 'port of the API').env('PORT').default(8080).argParser(portOf),
    )
    .addOption(dataDirOption())
    .option(
      '--maintenance',
      'start only PostgreSQL and the payment simulator, without an API and a worker, for example to restore a backup',
      false,
    )
    .action(async ({ port, dataDir, maintenance }: StartCommandOptions) => {
      await start({ port, dataDir, maintenance, env: process.env });
    });
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new InvalidArgumentError('It must be a number from 1 to 65535.');
}
