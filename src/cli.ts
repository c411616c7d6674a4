/**
 * The commands. Each file of commands/ registers one. A command that fails prints only its error message and exits
 * with 1, or with 3 if it may have changed something. bin/farebox runs this under Node 24.
 */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { CommanderError, program, type Command } from 'commander';
import { OutcomeUnknownError, UnwrittenError } from './commands/outcome-unknown.ts';
import { withoutEmpty, type Environment } from './read-setting.ts';
import { ROOT } from './root.ts';
import { withSecretFiles } from './secret-files.ts';

interface Listed {
  readonly description: string;
  /** Only the requested command is loaded: loading all of them takes seconds, and a start runs four. */
  readonly load?: () => Promise<{ register(command: Command): void }>;
}

const COMMANDS: Readonly<Record<string, Listed>> = {
  start: {
    description: 'start PostgreSQL, Temporal, the payment simulator, a worker and the API',
    load: () => import('./commands/start.ts'),
  },
  api: {
    description: 'run an API process; settings come from the environment',
    load: () => import('./commands/api.ts'),
  },
  worker: {
    description: 'run a worker process; settings come from the environment',
    load: () => import('./commands/worker.ts'),
  },
  migrate: {
    description: 'migrate the database and the Temporal namespace to this release',
    load: () => import('./commands/migrate.ts'),
  },
  account: {
    description: 'list, show, create and change accounts',
    load: () => import('./commands/account.ts'),
  },
  key: {
    description: 'list, create, roll and revoke keys',
    load: () => import('./commands/key.ts'),
  },
  budget: {
    description: 'list, create, change and close budgets and their spend keys',
    load: () => import('./commands/budget.ts'),
  },
  webhook: {
    description: 'list, add, change, test and remove webhook endpoints, and resend events',
    load: () => import('./commands/webhook.ts'),
  },
  archive: {
    description:
      'move the charges and other rows of an old month out of the ledger, and keep sums of charges',
    load: () => import('./commands/archive.ts'),
  },
  rollup: {
    description: 'manage the sums of earnings',
    load: () => import('./commands/rollup.ts'),
  },
  refund: {
    description: 'refund the unspent part of a top-up to the card that paid for it',
    load: () => import('./commands/refund-top-up.ts'),
  },
  'dismiss-warning': {
    description: "release the money that a bank's fraud warning holds, and keep the payment",
    load: () => import('./commands/dismiss-warning.ts'),
  },
  doctor: {
    description: 'check the books against every row and against the payment processor',
    load: () => import('./commands/doctor.ts'),
  },
  reconcile: {
    description:
      'compare payments, refunds and disputes with the processor, and correct what webhooks did not report',
    load: () => import('./commands/reconcile.ts'),
  },
  builds: {
    description: 'list the builds of workers, and choose where workflows start and continue',
    load: () => import('./commands/builds.ts'),
  },
  'codec-server': {
    description: 'decrypt payloads for the Temporal UI on this machine',
    load: () => import('./commands/codec-server.ts'),
  },
  audit: {
    description:
      'print the audit log, newest first: who changed access to accounts, or changed balances manually',
    load: () => import('./commands/audit.ts'),
  },
  env: {
    description: 'print the settings of the running `farebox start`, and keys for a tool server',
    load: () => import('./commands/env.ts'),
  },
  init: {
    description:
      'write .env for docker-compose.yml with new secrets; never overwrite an existing file',
    load: () => import('./commands/init.ts'),
  },
  // bin/farebox does this itself.
  exec: { description: 'run a program of node_modules/.bin under Node 24, for development' },
};

const EXIT_CODES = `
Exit codes:
  0  done; doctor and reconcile: nothing is wrong
  1  refused or failed; doctor and reconcile: something is wrong
  2  wrong usage; doctor and reconcile: could not check
  3  unknown: the connection was lost before PostgreSQL confirmed the change, or
     the output could not be written, for example because the disk is full, or
     nobody read it
`;
const WRONG_USAGE = 2;
const NOT_SHOWN = 3;
/** For them, an exit code of 1 says that something is wrong with the books. */
const INSPECTIONS = ['doctor', 'reconcile'];
const NOT_INSPECTED = 2;
/** The option with which one of them writes instead. */
const WRITES = 'settle';
/** They only show something, so what their reader did not read is not lost. */
const ONLY_SHOWS = ['list', 'show', 'usage', 'deliveries', 'audit', 'env', 'codec-server'];
/** They do too, without options. */
const SHOWS_WITHOUT_OPTIONS = ['builds', 'auto-top-up', 'low-balance'];
/** They continue, even if nothing that they print can be written. */
const RUNS_ON = ['start', 'api', 'worker'];

// bin/farebox has already enabled the cache when it runs this file.
enableCompileCache(join(ROOT, 'node_modules/.cache/compiled'));
program
  .name('farebox')
  .description('Prepaid-balance billing for tool servers.')
  .version(readVersion(), '-V, --version', 'print the version')
  .addHelpText('after', EXIT_CODES)
  .exitOverride();
/** Help does too. */
let onlyShows = true;
let isUnread = false;
// Before Commander reads the settings that are options too.
useEnvironment(withoutEmpty(process.env));
const [first, second] = process.argv.slice(2);
const asked = first === 'help' ? second : first;
let inspects = asked !== undefined && INSPECTIONS.includes(asked);
// Before a package that a command loads adds its own listener, which throws.
process.stdout.on('error', endUnwritten);
process.stderr.on('error', () => {});
// The audit log names the command that made a change, as PostgreSQL knows it: `farebox key revoke`.
program.hook('preAction', (_, command) => {
  if (command.getOptionValue(WRITES) !== undefined) inspects = false;
  onlyShows =
    ONLY_SHOWS.includes(command.name()) ||
    (SHOWS_WITHOUT_OPTIONS.includes(command.name()) && !changesSomething(command));
  process.env['PGAPPNAME'] = pathOf(command);
  useEnvironment(withSecretFiles(process.env));
});

// In a container without an init, this is process 1. A signal ends it only if it listens. A command that also listens
// stops by itself.
if (process.pid === 1) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

// A parent process that opened an IPC channel is expected to stop us. If it is gone, nothing else will.
if (process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}

try {
  for (const [name, { description, load }] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(description);
    if (name === asked) (await load?.())?.register(command);
  }
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) await endUsage(error);
  else if (inspects) await endUnchecked(error);
  else await endFailed(error);
}

/** Whether it has an option besides those of each command. */
function changesSomething(command: Command): boolean {
  return Object.keys(command.opts()).some((name) => name !== 'json' && name !== 'dataDir');
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** Everything reads the environment after this, and a process started from here gets no file that was already read. */
function useEnvironment(env: Environment): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}

/** Commander has printed what it has to say, but not as JSON. */
async function endUsage(error: CommanderError): Promise<void> {
  process.exitCode = error.exitCode === 0 ? 0 : WRONG_USAGE;
  if (error.exitCode === 0 || !inspects) return;
  if (process.argv.includes('--json')) await endUnchecked(error);
}

/** A file of secrets could not be read, or the command itself. */
async function endUnchecked(error: unknown): Promise<void> {
  const { couldNotCheck } = await import('./commands/inspection.ts');
  couldNotCheck(error, { json: process.argv.includes('--json') });
}

/**
 * Exits, because a start that failed halfway may have connections open, and no supervisor restarts a process
 * that hangs. Other commands first wait until everything is written: an exit would drop what a slow reader has not yet
 * read.
 */
async function endFailed(error: unknown): Promise<never> {
  const text = process.env['LOG_LEVEL'] === 'debug' ? (error as Error).stack : messageOf(error);
  process.stderr.write(`farebox: ${text}\n`);
  if (asked === undefined || !RUNS_ON.includes(asked)) {
    await isWritten(process.stdout);
    await isWritten(process.stderr);
  }
  const isUnknown = error instanceof OutcomeUnknownError || error instanceof UnwrittenError;
  process.exit(isUnknown ? error.exitCode : 1);
}

/** Resolves when the stream has written everything, or never will. */
async function isWritten(stream: NodeJS.WriteStream): Promise<void> {
  // Another write, even of nothing, would fail where nobody reads, as if some output were lost.
  if (stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    stream.write('', () => resolve());
  });
}

/** The command may have changed something. One whose reader has gone (`| head -1`) continues to its end. */
function endUnwritten({ code, message }: NodeJS.ErrnoException): void {
  if (asked !== undefined && RUNS_ON.includes(asked)) return;
  if (code === 'EPIPE') {
    // Each write that fails says so.
    if (!isUnread && !inspects && !onlyShows) process.once('exit', endUnread);
    isUnread = true;
    return;
  }
  process.stderr.write(
    `farebox: the output could not be written, so it is unknown what the command did: ${message}\n`,
  );
  process.exit(inspects ? NOT_INSPECTED : NOT_SHOWN);
}

/** A command that failed has printed its error. */
function endUnread(code: number): void {
  process.exitCode = NOT_SHOWN;
  if (code !== 0) return;
  process.stderr.write(
    'farebox: the command is done, but nobody read its output: look for what it did, such as a new key that nobody has seen\n',
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function readVersion(): string {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
