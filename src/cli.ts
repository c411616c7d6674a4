/**
 * The commands. Each file of commands/ registers one. A command that fails prints only its error message and exits
 * with 1. bin/farebox runs this under Node 24.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { program, type Command } from 'commander';

/** Only the requested command is loaded: loading all of them takes a second, and a start runs four. */
const commands: Readonly<Record<string, () => Promise<{ register(program: Command): void }>>> = {
  start: () => import('./commands/start.ts'),
  api: () => import('./commands/api.ts'),
  worker: () => import('./commands/worker.ts'),
  migrate: () => import('./commands/migrate.ts'),
  account: () => import('./commands/account.ts'),
  key: () => import('./commands/key.ts'),
  archive: () => import('./commands/archive.ts'),
  rollup: () => import('./commands/rollup.ts'),
  refund: () => import('./commands/refund-top-up.ts'),
  doctor: () => import('./commands/doctor.ts'),
  reconcile: () => import('./commands/reconcile.ts'),
  env: () => import('./commands/env.ts'),
  init: () => import('./commands/init.ts'),
};

// bin/farebox has already enabled the cache when it runs this file.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'));
program.name('farebox').description('Prepaid-balance billing for tool servers.');
const asked = commands[process.argv[2] ?? ''];
for (const load of asked ? [asked] : Object.values(commands)) (await load()).register(program);

// A parent process that opened an IPC channel is expected to stop us. If it is gone, nothing else will.
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
