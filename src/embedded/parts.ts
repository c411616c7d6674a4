/**
 * The parts of a start, and the settings by which the others find each. When a part's setting is given (DATABASE_URL,
 * TEMPORAL_ADDRESS, STRIPE_SECRET_KEY), the real service is used and nothing is started.
 */
import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../root.ts';
import { startChild, type Child, type Environment } from './child.ts';
import { secretsOf, type Ports } from './data-dir.ts';
import { claimPort, findPortHolder, isPortFree, type Claim } from './ports.ts';
import { startPostgres } from './postgres.ts';
import type { Progress } from './progress.ts';
import { findTemporal } from './temporal-binary.ts';
import { startTemporal } from './temporal.ts';

export type Settings = Readonly<Record<string, string>>;

export interface StartOptions {
  readonly port: number;
  readonly dataDir: string;
  readonly env: Environment;
  /** The database and the processor only, so that nothing charges or tops up. */
  readonly maintenance?: boolean;
}

/** The context that every part starts in. */
export interface Context extends StartOptions {
  readonly ports: Ports;
  readonly progress: Progress;
  /** Starts it and keeps it running until the end. */
  readonly keep: <T extends Child>(start: () => Promise<T>) => Promise<T>;
}

export const CLI = join(ROOT, 'src/cli.ts');
const SIMULATOR = join(ROOT, 'simulator/main.ts');

/** A start that was just killed may not have released its port yet. */
const LET_GO_MS = 2_000;

const API_PROCESSES_MAX = 64;
const PORT_MAX = 65_535;

/**
 * Keeps our processes small: a young generation with semi-spaces of 16 MiB (its objects live for one request), an old
 * generation that is collected when it has grown by three quarters, and two malloc arenas instead of eight per core.
 * The heap has no ceiling, because a burst of large batches would reach it. The young generation is collected only when
 * it is full, and no object is allocated directly in the old generation because a similar one once survived: decision
 * 0014.
 */
export const LEAN_NODE = [
  '--max-semi-space-size=16',
  '--heap-growing-percent=75',
  '--no-minor-gc-task',
  '--no-allocation-site-pretenuring',
] as const;
export const LEAN_ENVIRONMENT = { MALLOC_ARENA_MAX: '2' } as const;

/** Settings that users may give to all our processes and that a command beside the start needs too. */
const SHARED_SETTINGS = [
  'KEY_PREFIX',
  'LEDGERS',
  'HOST',
  'CONSOLE_URL',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
  'STRIPE_API_BASE',
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_TASK_QUEUE',
  'TEMPORAL_TLS',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  'TEMPORAL_TLS_SERVER_NAME',
  'TEMPORAL_API_KEY',
  'TEMPORAL_PAYLOAD_KEYS',
  'TEMPORAL_CONFIG_FILE',
  'TEMPORAL_PROFILE',
  'ROLL_UP_EVERY_SECONDS',
  'RECONCILE_EVERY_SECONDS',
];

/** Each names a real service that replaces the embedded part. */
const REAL_PARTS = ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'STRIPE_SECRET_KEY'];

export async function startDatabase(context: Context): Promise<Settings> {
  const { dataDir, env, ports, progress } = context;
  if (env['DATABASE_URL']) return { DATABASE_URL: env['DATABASE_URL'] };
  progress.say('PostgreSQL', 'starting');
  const { url, version } = await context.keep(() =>
    startPostgres({
      dataDir: join(dataDir, 'postgres'),
      logFile: logFile(dataDir, 'postgres'),
      env,
      port: ports.postgres,
      passwords: secretsOf(dataDir).postgres,
      settings: { max_connections: String(connectionsMax(apiProcesses(env))) },
    }),
  );
  progress.say('PostgreSQL', `${version} on port ${ports.postgres}`, 'done');
  return { DATABASE_URL: url };
}

export async function startTemporalServer(context: Context): Promise<Settings> {
  const { dataDir, env, ports, progress } = context;
  if (env['TEMPORAL_ADDRESS']) return { TEMPORAL_ADDRESS: env['TEMPORAL_ADDRESS'] };
  progress.say('Temporal', 'starting');
  const program = await findTemporal(env, (line) => progress.say('Temporal', line));
  const { address, uiUrl } = await context.keep(() =>
    startTemporal({
      program,
      dataDir: join(dataDir, 'temporal'),
      logFile: logFile(dataDir, 'temporal'),
      env,
      port: ports.temporal,
      uiPort: ports.temporalUi,
    }),
  );
  progress.say('Temporal', `on port ${ports.temporal}, UI on port ${ports.temporalUi}`, 'done');
  return { TEMPORAL_ADDRESS: address, TEMPORAL_UI_URL: uiUrl };
}

export async function startProcessor(context: Context): Promise<Settings> {
  const { dataDir, env, ports, progress } = context;
  if (env['STRIPE_SECRET_KEY']) return {}; // the environment has everything
  progress.say('Simulator', 'starting');
  const port = ports.simulator;
  await refuseTakenPort(
    port,
    undefined,
    'the payment simulator needs the same port as before, because its session URLs contain it. Free the port, ' +
      `or delete ${join(dataDir, 'ports.json')} to use another one`,
  );
  const { simulatorKey, simulatorToken, webhookSecret } = secretsOf(dataDir);
  await mkdir(join(dataDir, 'simulator'), { recursive: true, mode: 0o700 });
  await context.keep(() =>
    startChild({
      name: 'The payment simulator',
      command: [process.execPath, SIMULATOR],
      env: {
        ...env,
        SIMULATOR_PORT: String(port),
        SIMULATOR_DB: join(dataDir, 'simulator', 'simulator.db'),
        SIMULATOR_SECRET_KEY: simulatorKey,
        SIMULATOR_WEBHOOK_URL: `http://127.0.0.1:${context.port}/webhooks/stripe`,
        SIMULATOR_WEBHOOK_SECRET: webhookSecret,
        SIMULATOR_TOKEN: simulatorToken,
      },
      logFile: logFile(dataDir, 'simulator'),
      ready: 'message',
    }),
  );
  progress.say('Simulator', `on port ${port}`, 'done');
  return {
    STRIPE_SECRET_KEY: simulatorKey,
    STRIPE_WEBHOOK_SECRET: webhookSecret,
    STRIPE_API_BASE: `http://127.0.0.1:${port}`,
    SIMULATOR_TOKEN: simulatorToken,
    DEFAULT_CONSENT_CEILING: '1000',
    DEV_MAIL: 'true',
    SAVE_TEST_CARD: 'true',
  };
}

/**
 * Half of the settings for real payments would mean simulated payments, or webhooks that fail verification. Simulated
 * cards that credit a real ledger must be requested explicitly.
 */
export function refuseHalfSettings(env: Environment): void {
  if (env['DATABASE_URL'] && !env['STRIPE_SECRET_KEY'] && env['SIMULATE_PAYMENTS'] !== 'true') {
    throw new Error(
      'DATABASE_URL is set and STRIPE_SECRET_KEY is not: simulated payments would credit that ' +
        'database. Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or SIMULATE_PAYMENTS=true if you want that',
    );
  }
  if (!env['STRIPE_SECRET_KEY'] || env['STRIPE_WEBHOOK_SECRET']) return;
  throw new Error(
    'STRIPE_SECRET_KEY is set, so STRIPE_WEBHOOK_SECRET must be set too; without both, payments ' +
      'are simulated',
  );
}

/** Settings for every process of ours, regardless of the parts. */
export function sharedSettings({ port, dataDir, env }: StartOptions): Settings {
  const isUnset = (name: string) => !env[name];
  const given = SHARED_SETTINGS.flatMap((name) => (env[name] ? [[name, env[name]] as const] : []));
  return {
    ...Object.fromEntries(given),
    PORT: String(port),
    BASE_URL: env['BASE_URL'] ?? `http://127.0.0.1:${port}`,
    MASTER_SECRET: env['MASTER_SECRET'] ?? secretsOf(dataDir).masterSecret,
    // Users who try everything on one machine run agents on it too. With a real service, this would open its network to
    // callers.
    ALLOW_PRIVATE_ENDPOINTS: env['ALLOW_PRIVATE_ENDPOINTS'] ?? String(REAL_PARTS.every(isUnset)),
  };
}

export async function startWorker(context: Context, settings: Settings): Promise<void> {
  context.progress.say('Worker', 'starting');
  await startOurs(context, 'worker', {
    name: 'The Worker',
    log: 'worker',
    settings: { ...settings, ...metricsSettings(context.env, apiProcesses(context.env)) },
  });
  context.progress.say('Worker', 'polls for work', 'done');
}

/** `API_PROCESSES` processes on one port. */
export async function startApi(context: Context, settings: Settings): Promise<void> {
  const { env, port, progress } = context;
  const count = apiProcesses(env);
  progress.say('API', 'starting');
  const shared = count > 1 ? { ...settings, SHARE_PORT: 'true' } : settings;
  await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const [name, log] =
        index === 0 ? ['The API', 'api'] : [`The API (${index + 1})`, `api-${index + 1}`];
      const own = { ...shared, ...metricsSettings(env, index) };
      return startOurs(context, 'api', { name, log, settings: own });
    }),
  );
  progress.say('API', `on port ${port}${count > 1 ? `, ${count} processes` : ''}`, 'done');
}

/** Before anything is started. Each process would refuse only its own. */
export function refuseMetricsPort({ port, env }: Pick<StartOptions, 'port' | 'env'>): void {
  const given = env['METRICS_PORT'];
  const workers = apiProcesses(env);
  if (!given) return;
  const first = /^\d+$/.test(given) ? Number(given) : 0;
  const last = first + workers;
  if (first >= 1 && last <= PORT_MAX && (port < first || port > last)) return;
  throw new Error(
    `METRICS_PORT must be the first of ${workers + 1} free ports, one for each process and none of them the ` +
      `port of the API, ${port}; it is "${given}"`,
  );
}

/** Processes of one machine cannot share a port for metrics, or each scrape would meet another one. */
function metricsSettings({ METRICS_PORT: first }: Environment, index: number): Settings {
  return first ? { METRICS_PORT: String(Number(first) + index) } : {};
}

async function startOurs(
  { dataDir, env, keep }: Context,
  command: 'api' | 'worker',
  { name, log, settings }: { name: string; log: string; settings: Settings },
): Promise<void> {
  await keep(() =>
    startChild({
      name,
      command: [process.execPath, ...LEAN_NODE, CLI, command],
      env: { ...LEAN_ENVIRONMENT, ...env, ...settings },
      logFile: logFile(dataDir, log),
      ready: 'message',
    }),
  );
}

/**
 * Two processes where the kernel spreads connections and enough cores exist: one process keeps a core busy with HTTP,
 * while Postgres leaves part of the other idle.
 */
export function apiProcesses(env: Environment): number {
  const given = env['API_PROCESSES'];
  if (!given) return process.platform === 'linux' && availableParallelism() > 1 ? 2 : 1;
  const count = Number(given);
  if (!Number.isInteger(count) || count < 1 || count > API_PROCESSES_MAX) {
    throw new Error(`API_PROCESSES must be a whole number from 1 to ${API_PROCESSES_MAX}`);
  }
  if (count > 1 && process.platform !== 'linux') {
    throw new Error('API_PROCESSES must be 1: only Linux spreads connections over processes');
  }
  return count;
}

/** For the API processes and the worker (docs/scale.md), and 20 for commands, people and PostgreSQL itself. */
export function connectionsMax(processes: number): number {
  return Math.max(100, 29 * processes + 12 + 20);
}

export async function refuseTakenPort(
  port: number,
  host: string | undefined,
  advice: string,
): Promise<void> {
  const isFree = () => isPortFree(port, host).catch(explainPort(port, host));
  if (!(await onceLetGo(isFree))) throw takenError(port, findPortHolder(port), advice);
}

/**
 * Throws when the port is taken, or when another start has claimed it and does not listen yet. The claim comes first:
 * to ask whether a port is free takes it for a moment, in which the other start could not listen.
 */
export async function takePort(
  port: number,
  host: string | undefined,
  advice: string,
): Promise<Claim> {
  const claim = await onceLetGo(() => claimPort(port));
  if (!claim) {
    const holder = findPortHolder(port) ?? 'another Farebox that is starting or stopping';
    throw takenError(port, holder, advice);
  }
  await refuseTakenPort(port, host, advice);
  return claim;
}

function takenError(port: number, holder: string | undefined, advice: string): Error {
  return new Error(`port ${port} is taken${holder ? ` by ${holder}` : ''}: ${advice}`);
}

/** Asks until the answer is positive or a killed start has had its time. */
async function onceLetGo<T>(ask: () => Promise<T>): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += 100) {
    const answer = await ask();
    if (answer || waitedMs >= LET_GO_MS) return answer;
    await delay(100);
  }
}

/** For what the system says about a port that it does not let us open at all. */
function explainPort(port: number, host: string | undefined): (error: unknown) => never {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'EACCES'
        ? `this user may not open port ${port}: choose another one with --port`
        : `HOST must be an address of this machine, not "${host}"`;
    throw new Error(why, { cause: error });
  };
}

function logFile(dataDir: string, name: string): string {
  return join(dataDir, 'logs', `${name}.log`);
}
