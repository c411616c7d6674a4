/**
 * The commands. Each file of commands/ registers one; what fails prints its message alone and exits
 * with 1. bin/farebox runs this under Node 24.
 */
import { program } from 'commander';
import * as account from './commands/account.ts';
import * as api from './commands/api.ts';
import * as env from './commands/env.ts';
import * as key from './commands/key.ts';
import * as migrate from './commands/migrate.ts';
import * as start from './commands/start.ts';
import * as worker from './commands/worker.ts';

program.name('farebox').description('Prepaid-balance billing for tool servers.');
for (const command of [start, api, worker, migrate, account, key, env]) command.register(program);

// Who started us with a channel would also stop us: when he is gone, nobody else will.
if (process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}

try {
  await program.parseAsync();
} catch (error) {
  const text = process.env['LOG_LEVEL'] === 'debug' ? (error as Error).stack : messageOf(error);
  process.stderr.write(`farebox: ${text}\n`);
  process.exitCode = 1;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
