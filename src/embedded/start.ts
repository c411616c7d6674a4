/**
 * `farebox start`: starts every part on this machine in the order of their dependencies, keeps them running until a
 * signal arrives, then stops them in reverse order. The API is last: when its port is open, everything is up.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from './child.ts';
import { buildConsole } from './console-build.ts';
import { DEFAULT_DATA_DIR, holdDataDir, holdPackages, portsOf } from './data-dir.ts';
import { announceRun, hasAnnouncedRun, withdrawRun } from './environment.ts';
import { explainFolderProblem, refuseUnwritable } from './folder-problem.ts';
import { chargeCommand, openFirstAccount, type FirstAccount } from './first-account.ts';
import { SupervisedChild } from './supervised-child.ts';
import {
  refuseHalfSettings,
  refuseMetricsPort,
  refuseTakenPort,
  sharedSettings,
  startApi,
  startDatabase,
  startProcessor,
  startTemporalServer,
  startWorker,
  takePort,
  type Context,
  type Settings,
  type StartOptions,
} from './parts.ts';
import type { Claim } from './ports.ts';
import { createProgress, type Progress } from './progress.ts';
import { farebox } from './run-command.ts';

/** A start that was just killed may still be ending. */
const ENDING_MS = 2_000;
/** A start that is stopping gets more time: its API finishes the requests in flight first. */
const STOPPING_MS = 20_000;
/**
 * A second Ctrl-C kills. Within this time it counts as the same one: npm forwards the signal that the terminal already
 * sent us.
 */
const SAME_SIGNAL_MS = 1_000;
const OTHER_PORT = 'choose another one with --port';

/** Resolves when everything is up. The process then runs until a signal arrives. */
export async function start(options: StartOptions): Promise<void> {
  try {
    await startOrStop(options);
  } catch (error) {
    throw explainFolderProblem(error, options.dataDir);
  }
}

async function startOrStop(options: StartOptions): Promise<void> {
  // The reader of the output may have gone. The parts still have to stop in order.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
  const progress = createProgress(process.stdout);
  refuseHalfSettings(options.env);
  refuseMetricsPort(options);
  refuseUnwritable(options.dataDir);
  // A start that is refused leaves no new directory behind. On an old one, an earlier start may still have the port.
  const early = existsSync(options.dataDir) ? undefined : await takeApiPort(options);
  const lock = await hold(options.dataDir, progress);
  const claim = early ?? (await takeApiPort(options));
  const packages = holdPackages();
  const run = new Run(options.dataDir, progress, () => {
    packages?.release();
    claim.release();
    lock.release();
  });
  run.stopOnSignals();
  try {
    await startAll(options, run, progress);
  } catch (error) {
    progress.end();
    if (run.isStopping) return;
    await run.stop();
    throw error;
  }
}

async function startAll(options: StartOptions, run: Run, progress: Progress): Promise<void> {
  const { dataDir } = options;
  const beganAt = performance.now();
  const ports = await portsOf(dataDir);
  const servers: Context = { ...options, ports, progress, keep: (child) => run.keep(child) };
  const ours: Context = { ...servers, keep: (child) => run.keepOurs(child) };

  const shared = sharedSettings(options);
  const processor = startProcessor(servers);
  if (options.maintenance) {
    const [database, payments] = await Promise.all([migrateDatabase(servers, shared), processor]);
    const settings = { ...shared, ...database, ...payments };
    progress.end();
    announceRun(dataDir, settings);
    progress.line('\nReady for maintenance: no API and no worker is running');
    return;
  }
  const built = prepareConsole(progress);
  const [database, temporal, payments] = await Promise.all([
    prepareDatabase(servers, shared, processor),
    startTemporalServer(servers),
    processor,
    built,
  ]);
  const settings = { ...shared, ...database.settings, ...temporal, ...payments };
  await startWorker(ours, settings);
  // Other programs do not know the claim, and may listen on the port by now.
  await refuseTakenPort(options.port, options.env['HOST'], OTHER_PORT);
  await startApi(ours, settings);
  progress.end();
  announceRun(dataDir, settings);
  const seconds = (performance.now() - beganAt) / 1_000;
  progress.line(`\nFarebox ready\n\n${summary(settings, dataDir, seconds, database)}`);
}

/** For the whole start: the processes of the API listen only when everything else is up. */
function takeApiPort({ port, env }: StartOptions): Promise<Claim> {
  return takePort(port, env['HOST'], OTHER_PORT);
}

interface Prepared {
  readonly settings: Settings;
  readonly account?: FirstAccount;
  /** Signs the first account in to the console, once. */
  readonly signInUrl?: string;
}

/** The migrated database and, when it is embedded, a first account. */
async function prepareDatabase(
  context: Context,
  shared: Settings,
  processor: Promise<Settings>,
): Promise<Prepared> {
  const { dataDir, env, progress } = context;
  const settings = await migrateDatabase(context, shared);
  if (env['DATABASE_URL'] || env['STRIPE_SECRET_KEY']) return { settings };
  const all = { ...shared, ...settings, ...(await processor) };
  const run = (...args: readonly string[]) => farebox(context, all, ...args);
  return { settings, ...(await openFirstAccount(dataDir, run, (line) => progress.line(line))) };
}

async function migrateDatabase(context: Context, shared: Settings): Promise<Settings> {
  const { progress } = context;
  const settings = await startDatabase(context);
  progress.say('Schema', 'migrating');
  await farebox(context, { ...shared, ...settings }, 'migrate');
  progress.say('Schema', 'up to date', 'done');
  return settings;
}

/** A machine that cannot build it, such as one with the production packages alone, still takes charges. */
async function prepareConsole(progress: Progress): Promise<void> {
  progress.say('Console', 'building');
  try {
    const wasBuilt = await buildConsole();
    progress.say('Console', wasBuilt ? 'built' : 'up to date', 'done');
  } catch (error) {
    progress.say('Console', (error as Error).message.slice(0, 200), 'done');
  }
}

async function hold(dataDir: string, progress: Progress): Promise<{ release(): void }> {
  for (let waitedMs = 0; ; waitedMs += 100) {
    const lock = holdDataDir(dataDir);
    if (lock) {
      // The settings of a start that was killed. From here on, commands would take them for this one's.
      withdrawRun(dataDir);
      return lock;
    }
    if (waitedMs >= (hasAnnouncedRun(dataDir) ? ENDING_MS : STOPPING_MS)) break;
    if (waitedMs === ENDING_MS)
      progress.line(`Waiting for another Farebox to stop using ${dataDir}`);
    await delay(100);
  }
  throw new Error(
    `another Farebox is using ${dataDir}: stop it first, or name another directory with ` +
      '--data-dir (and another port with --port) to run both',
  );
}

/** The parts that one start has started so far, and how to stop them. */
class Run {
  readonly #dataDir: string;
  readonly #progress: Progress;
  readonly #release: () => void;
  readonly #servers: SupervisedChild[] = [];
  /** The processes use the servers, so they stop first. */
  readonly #ours: SupervisedChild[] = [];
  #stopped: Promise<void> | undefined;

  constructor(dataDir: string, progress: Progress, release: () => void) {
    this.#dataDir = dataDir;
    this.#progress = progress;
    this.#release = release;
  }

  get isStopping(): boolean {
    return this.#stopped !== undefined;
  }

  keep<T extends Child>(startChild: () => Promise<T>): Promise<T> {
    return this.#keep(this.#servers, startChild);
  }

  keepOurs<T extends Child>(startChild: () => Promise<T>): Promise<T> {
    return this.#keep(this.#ours, startChild);
  }

  async #keep<T extends Child>(kept: SupervisedChild[], startChild: () => Promise<T>): Promise<T> {
    if (this.isStopping) throw new Error('stopping');
    const child = new SupervisedChild(startChild, (line) => this.#progress.line(line));
    kept.push(child);
    return child.start();
  }

  stopOnSignals(): void {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        firstAt ??= performance.now();
        if (!this.isStopping) void this.stop().then(() => process.exit(0));
        else if (signal === 'SIGINT' && performance.now() - firstAt > SAME_SIGNAL_MS) this.#kill();
      });
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    this.#progress.end();
    withdrawRun(this.#dataDir);
    if (this.#servers.length > 0) this.#progress.line('Stopping ...');
    await Promise.all(this.#ours.map((child) => child.stop()));
    await Promise.all(this.#servers.map((child) => child.stop()));
    this.#release();
  }

  #kill(): never {
    for (const child of [...this.#ours, ...this.#servers]) child.kill();
    process.exit(130);
  }
}

/** The URL that lists all payments; at the simulator with the token that its controls require. */
function paymentsUrl({ STRIPE_API_BASE, SIMULATOR_TOKEN }: Settings): string {
  if (STRIPE_API_BASE === undefined) return 'https://dashboard.stripe.com';
  if (SIMULATOR_TOKEN === undefined) return STRIPE_API_BASE;
  return `${STRIPE_API_BASE}/_simulator/payments?token=${SIMULATOR_TOKEN}`;
}

function summary(
  settings: Settings,
  dataDir: string,
  seconds: number,
  { account, signInUrl }: Prepared,
): string {
  const baseUrl = settings['BASE_URL'] ?? '';
  const lines = [
    `  Console      ${settings['CONSOLE_URL'] || baseUrl}/console`,
    `  API          ${baseUrl}  (up in ${seconds.toFixed(1)} s)`,
    `  Temporal UI  ${settings['TEMPORAL_UI_URL'] ?? `the one of ${settings['TEMPORAL_ADDRESS']}`}`,
    `  Payments     ${paymentsUrl(settings)}`,
    `  Logs         ${join(dataDir, 'logs')}`,
    '',
  ];
  const option = dataDir === DEFAULT_DATA_DIR ? '' : ` --data-dir ${dataDir}`;
  if (!account) {
    return [
      ...lines,
      `Create an account: bin/farebox account create --email ...${option}`,
      '',
    ].join('\n');
  }
  return [
    ...lines,
    `The first account, ${account.email}, was given $10.00 to spend:`,
    '',
    `  consumer key   ${account.consumerKey}`,
    `  secret key     ${account.developerKey}`,
    `  legacy key     ${account.legacyKey}`,
    '',
    'Sign in to its console (works once):',
    '',
    `  ${signInUrl ?? ''}`,
    '',
    'Show the account, and print the settings for a tool server:',
    '',
    `  bin/farebox account show ${account.consumerId}${option}`,
    `  bin/farebox env --tool-server${option}`,
    '',
    'Charge it $0.05:',
    '',
    chargeCommand(baseUrl, account),
    '',
  ].join('\n');
}
