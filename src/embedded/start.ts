/**
 * `farebox start`: every part on this machine, in the order in which they need each other, kept
 * running until a signal comes and then stopped in the reverse order. A part whose setting is given
 * (DATABASE_URL, TEMPORAL_ADDRESS, STRIPE_SECRET_KEY) is a real one, and none is started for it.
 * The API is last: when its port is open, everything is up.
 */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { startChild, type Child } from './child.ts';
import { holdDataDir, portsOf, secretsOf, type Ports } from './data-dir.ts';
import { announceRun, hasAnnouncedRun, withdrawRun } from './environment.ts';
import { chargeCommand, firstAccountOf, FIRST_EMAIL, type FirstAccount } from './first-account.ts';
import { Part } from './part.ts';
import { findPortHolder, isPortFree } from './ports.ts';
import { startPostgres } from './postgres.ts';
import { createProgress, type Progress } from './progress.ts';
import { findTemporal } from './temporal-binary.ts';
import { startTemporal } from './temporal.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Settings = Readonly<Record<string, string>>;

export interface StartOptions {
  readonly port: number;
  readonly dataDir: string;
  readonly env: Environment;
}

const ROOT = join(import.meta.dirname, '../..');
/** A start that was killed a moment ago may still be letting go of its port or its directory. */
const LET_GO_MS = 2_000;
/** One that is told to stop has longer: its API answers what is in flight first. */
const STOPPING_MS = 20_000;
/** A second Ctrl-C kills. One within this time is the same: npm passes on what the terminal sent anyway. */
const SAME_SIGNAL_MS = 1_000;

/** What others may have set for a part, and a command beside the start must know too. */
const PASSED_ON = ['KEY_PREFIX', 'LEDGERS', 'HOST', 'TEMPORAL_NAMESPACE', 'TEMPORAL_TASK_QUEUE'];
const PASSED_ON_SECRETS = ['TEMPORAL_TLS', 'TEMPORAL_API_KEY', 'STRIPE_API_BASE'];

/** Resolves when everything is up; the process then lives until a signal comes. */
export async function start(options: StartOptions): Promise<void> {
  const progress = createProgress(process.stdout);
  const lock = await hold(options.dataDir, progress);
  const run = new Run(options, progress, () => lock.release());
  run.stopOnSignals();
  try {
    await run.start();
  } catch (error) {
    progress.end();
    if (run.isStopping) return;
    await run.stop();
    throw error;
  }
}

async function hold(dataDir: string, progress: Progress): Promise<{ release(): void }> {
  for (let waitedMs = 0; ; waitedMs += 100) {
    const lock = holdDataDir(dataDir);
    if (lock) return lock;
    if (waitedMs === LET_GO_MS) progress.line(`Waiting for another start on ${dataDir} ...`);
    if (waitedMs >= (hasAnnouncedRun(dataDir) ? LET_GO_MS : STOPPING_MS)) break;
    await delay(100);
  }
  throw new Error(
    `another start is running on ${dataDir}: stop it first, or name another directory with ` +
      '--data-dir (and another port with --port) to run both',
  );
}

/** One start: the parts that it has started so far, and their end. */
class Run {
  readonly #options: StartOptions;
  readonly #progress: Progress;
  readonly #release: () => void;
  /** Ours use the servers, so they stop first. */
  readonly #ours: Part[] = [];
  readonly #servers: Part[] = [];
  #stopped: Promise<void> | undefined;

  constructor(options: StartOptions, progress: Progress, release: () => void) {
    this.#options = options;
    this.#progress = progress;
    this.#release = release;
  }

  get isStopping(): boolean {
    return this.#stopped !== undefined;
  }

  async start(): Promise<void> {
    const { port, dataDir, env } = this.#options;
    const beganAt = performance.now();
    refuseHalfSettings(env);
    await refuseTakenPort(port, env['HOST'], 'choose another one with --port');
    const ports = await portsOf(dataDir);
    const [database, temporal, processor] = await Promise.all([
      this.#startDatabase(ports),
      this.#startTemporal(ports),
      this.#startProcessor(ports),
    ]);
    const settings = this.#settings({ ...database, ...temporal, ...processor });
    await this.#migrate(settings);
    const isOurs = !env['DATABASE_URL'] && !env['STRIPE_SECRET_KEY'];
    const account = isOurs ? await this.#firstAccount(settings) : undefined;
    await this.#startOurs('worker', settings);
    await this.#startOurs('api', settings);
    this.#progress.end();
    announceRun(dataDir, settings);
    const seconds = ((performance.now() - beganAt) / 1_000).toFixed(1);
    this.#progress.line(`\nFarebox ready\n\n${summary(settings, dataDir, seconds, account)}`);
  }

  stopOnSignals(): void {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        firstAt ??= performance.now();
        if (!this.isStopping) void this.stop().then(() => process.exit(0));
        else if (signal === 'SIGINT' && performance.now() - firstAt > SAME_SIGNAL_MS) {
          for (const part of [...this.#ours, ...this.#servers]) part.kill();
          process.exit(130);
        }
      });
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    this.#progress.end();
    withdrawRun(this.#options.dataDir);
    if (this.#servers.length > 0) this.#progress.line('Stopping ...');
    await Promise.all(this.#ours.map((part) => part.stop()));
    await Promise.all(this.#servers.map((part) => part.stop()));
    this.#release();
  }

  /** Starts a part and keeps it running. */
  async #keep<T extends Child>(kept: Part[], startPart: () => Promise<T>): Promise<T> {
    if (this.isStopping) throw new Error('stopping');
    const part = new Part(startPart, (line) => this.#progress.line(line));
    kept.push(part);
    return part.start();
  }

  async #startDatabase(ports: Ports): Promise<Settings> {
    const { dataDir, env } = this.#options;
    if (env['DATABASE_URL']) return { DATABASE_URL: env['DATABASE_URL'] };
    this.#progress.say('PostgreSQL', 'starting');
    const { url, version } = await this.#keep(this.#servers, () =>
      startPostgres({
        dataDir: join(dataDir, 'postgres'),
        logFile: this.#logFile('postgres'),
        env,
        port: ports.postgres,
      }),
    );
    this.#progress.say('PostgreSQL', `${version} on port ${ports.postgres}`, 'done');
    return { DATABASE_URL: url };
  }

  async #startTemporal(ports: Ports): Promise<Settings> {
    const { dataDir, env } = this.#options;
    if (env['TEMPORAL_ADDRESS']) return { TEMPORAL_ADDRESS: env['TEMPORAL_ADDRESS'] };
    this.#progress.say('Temporal', 'starting');
    const program = await findTemporal(env, (line) => this.#progress.say('Temporal', line));
    const { address, uiUrl } = await this.#keep(this.#servers, () =>
      startTemporal({
        program,
        dataDir: join(dataDir, 'temporal'),
        logFile: this.#logFile('temporal'),
        env,
        port: ports.temporal,
        uiPort: ports.temporalUi,
      }),
    );
    this.#progress.say('Temporal', `on port ${ports.temporal}`, 'done');
    return { TEMPORAL_ADDRESS: address, TEMPORAL_UI_URL: uiUrl };
  }

  async #startProcessor({ simulator: port }: Ports): Promise<Settings> {
    const { dataDir, env } = this.#options;
    if (env['STRIPE_SECRET_KEY']) {
      return {
        STRIPE_SECRET_KEY: env['STRIPE_SECRET_KEY'],
        STRIPE_WEBHOOK_SECRET: env['STRIPE_WEBHOOK_SECRET'] ?? '',
      };
    }
    this.#progress.say('Simulator', 'starting');
    await refuseTakenPort(
      port,
      undefined,
      `the payment simulator keeps it, because it is in its session URLs: free it, or delete ` +
        `${join(dataDir, 'ports.json')} for another one`,
    );
    const { simulatorKey, webhookSecret } = secretsOf(dataDir);
    await mkdir(join(dataDir, 'simulator'), { recursive: true, mode: 0o700 });
    await this.#keep(this.#servers, () =>
      startChild({
        name: 'The payment simulator',
        command: [process.execPath, join(ROOT, 'src/processor/simulator/main.ts')],
        env: {
          ...env,
          SIMULATOR_PORT: String(port),
          SIMULATOR_DB: join(dataDir, 'simulator', 'simulator.db'),
          SIMULATOR_SECRET_KEY: simulatorKey,
          SIMULATOR_WEBHOOK_URL: `http://127.0.0.1:${this.#options.port}/webhooks/stripe`,
          SIMULATOR_WEBHOOK_SECRET: webhookSecret,
        },
        logFile: this.#logFile('simulator'),
        ready: 'message',
      }),
    );
    this.#progress.say('Simulator', `on port ${port}`, 'done');
    return {
      STRIPE_SECRET_KEY: simulatorKey,
      STRIPE_WEBHOOK_SECRET: webhookSecret,
      STRIPE_API_BASE: `http://127.0.0.1:${port}`,
      DEFAULT_CONSENT_CEILING: '1000',
      SAVE_TEST_CARD: 'true',
    };
  }

  /** What every process of ours gets, and what `farebox env` prints. */
  #settings(ofParts: Settings): Settings {
    const { port, dataDir, env } = this.#options;
    const given = [...PASSED_ON, ...PASSED_ON_SECRETS]
      .map((name) => [name, env[name]] as const)
      .filter((entry): entry is readonly [string, string] => Boolean(entry[1]));
    return {
      BASE_URL: env['BASE_URL'] || `http://127.0.0.1:${port}`,
      PORT: String(port),
      MASTER_SECRET: env['MASTER_SECRET'] || secretsOf(dataDir).masterSecret,
      ...Object.fromEntries(given),
      ...ofParts,
    };
  }

  async #migrate(settings: Settings): Promise<void> {
    this.#progress.say('Database', 'migrating');
    await this.#farebox(settings, 'migrate');
    this.#progress.say('Database', 'up to date', 'done');
  }

  #firstAccount(settings: Settings): Promise<FirstAccount> {
    return firstAccountOf(this.#options.dataDir, (...args) => this.#farebox(settings, ...args));
  }

  async #startOurs(name: 'api' | 'worker', settings: Settings): Promise<void> {
    const shown = { api: 'API', worker: 'Worker' }[name];
    this.#progress.say(shown, 'starting');
    await this.#keep(this.#ours, () =>
      startChild({
        name: `The ${shown}`,
        command: [process.execPath, join(ROOT, 'src/cli.ts'), name],
        env: { ...this.#options.env, ...settings },
        logFile: this.#logFile(name),
        ready: 'message',
      }),
    );
    this.#progress.say(shown, name === 'api' ? (settings['BASE_URL'] ?? '') : 'polling', 'done');
  }

  /** Runs one of our commands to its end; what it says when it fails is the error. */
  async #farebox(settings: Settings, ...args: readonly string[]): Promise<string> {
    const command = [join(ROOT, 'src/cli.ts'), ...args];
    const env = { ...this.#options.env, ...settings };
    try {
      const { stdout } = await promisify(execFile)(process.execPath, command, { env });
      return stdout;
    } catch (error) {
      const said = (error as { stderr?: string }).stderr?.trim().replace(/^farebox: /, '');
      throw new Error(said || `farebox ${args[0]} failed: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  #logFile(name: string): string {
    return join(this.#options.dataDir, 'logs', `${name}.log`);
  }
}

function refuseHalfSettings(env: Environment): void {
  if (!env['STRIPE_SECRET_KEY'] || env['STRIPE_WEBHOOK_SECRET']) return;
  throw new Error(
    'STRIPE_SECRET_KEY is set, so STRIPE_WEBHOOK_SECRET must be set too; without both, payments ' +
      'are simulated',
  );
}

async function refuseTakenPort(
  port: number,
  host: string | undefined,
  advice: string,
): Promise<void> {
  for (let waitedMs = 0; waitedMs <= LET_GO_MS; waitedMs += 100) {
    if (await isPortFree(port, host)) return;
    await delay(100);
  }
  const holder = findPortHolder(port);
  throw new Error(`port ${port} is taken${holder ? ` by ${holder}` : ''}: ${advice}`);
}

function summary(
  settings: Settings,
  dataDir: string,
  seconds: string,
  account: FirstAccount | undefined,
): string {
  const baseUrl = settings['BASE_URL'] ?? '';
  const lines = [
    `  API          ${baseUrl}  (up in ${seconds} s)`,
    `  Temporal UI  ${settings['TEMPORAL_UI_URL'] ?? `of ${settings['TEMPORAL_ADDRESS']}`}`,
    `  Payments     ${settings['STRIPE_API_BASE'] ?? 'Stripe'}`,
    `  Logs         ${join(dataDir, 'logs')}`,
    '',
  ];
  if (!account)
    return [...lines, 'Make an account: bin/farebox account create --email ...'].join('\n');
  return [
    ...lines,
    `The first account, ${FIRST_EMAIL}, has 10 dollars to spend:`,
    '',
    `  consumer key   ${account.consumerKey}`,
    `  developer key  ${account.developerKey}`,
    `  legacy key     ${account.legacyKey}`,
    '',
    'Charge it 0.05 dollars:',
    '',
    chargeCommand(baseUrl, account),
    '',
  ].join('\n');
}
