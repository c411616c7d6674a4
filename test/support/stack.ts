/**
 * The environment of tests: real processes on ephemeral ports. Each stack has its own database, simulator
 * and deployment in Temporal, so that no test sees another's data.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { Client } from 'pg';
import type { Logger } from 'pino';
import { readConfig, type Config } from '../../src/config.ts';
import { startChild } from '../../src/embedded/child.ts';
import { createLog } from '../../src/processes/log.ts';
import { endAll } from './end-all.ts';
import { noteLog } from './failure-report.ts';
import { given, unique } from './given.ts';
import { endKeptPool } from './kept-pools.ts';
import { noteSecretsOf } from './leaks.ts';
import { choosePort } from './ports.ts';
import {
  chooseSimulator,
  SETTLE_SECONDS,
  startSimulator,
  type Simulator,
  type SimulatorOptions,
} from './simulators.ts';
import { DEFAULT_TASK_QUEUE } from '../../src/domain/task-queues.ts';
import { scheduleIdOf } from '../../src/temporal/schedules.ts';
import { ensureSearchAttributes } from '../../src/temporal/search-attributes.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An API or a worker, in this process or in one of its own. */
export interface Server {
  /** Empty for a worker. */
  readonly url: string;
  /** Its output. */
  readonly logFile: string;
  /** Ends it in order, and waits for that. */
  stop(): Promise<void>;
}

export interface ServerProcess extends Server {
  readonly pid: number;
  /** Resolves when it has ended, with how it ended. */
  readonly exited: Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

export interface Stack<A extends Server = Server, W extends Server = A> {
  readonly database: TestDatabase;
  readonly simulator: Simulator;
  readonly api: A;
  readonly worker: W;
  /** The environment of this stack's api and worker, for more of them. */
  readonly env: Environment;
  stop(): Promise<void>;
}

export interface StackOptions {
  /** In addition to the usual environment of the stack's api and worker. */
  readonly env?: Environment;
  /** For one of them alone. */
  readonly apiEnv?: Environment;
  readonly workerEnv?: Environment;
}

const SIMULATOR_MAIN = join(import.meta.dirname, '../../simulator/main.ts');
const run = promisify(execFile);
/** `npm run test:program`: every API and worker is the program that the image runs. */
const AS_PROCESSES = process.env['TEST_AS_PROCESSES'] === 'true';

/** `farebox` as the image runs it, built from src/cli.ts. */
export function ourProgram(): string {
  return given('TEST_PROGRAM');
}

/** Long enough for a busy machine; a condition that is true sooner is noticed sooner. */
export const UNTIL_TIMEOUT_MS = 300_000;
/** For `startChild`: a busy machine may take long to start a process, and to end one in order. */
export const PATIENTLY = { readyTimeoutMs: UNTIL_TIMEOUT_MS, stopTimeoutMs: UNTIL_TIMEOUT_MS };
const INTERVAL_MS_MIN = 25;
const INTERVAL_MS_MAX = 250;

/**
 * Waits until the condition returns something truthy, and returns it; throws after the timeout. Without `intervalMs`,
 * it asks less and less often: asking costs CPU time, and a wait that is long may end a tenth later.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  {
    timeoutMs = UNTIL_TIMEOUT_MS,
    intervalMs,
  }: { readonly timeoutMs?: number | undefined; readonly intervalMs?: number | undefined } = {},
): Promise<Exclude<Awaited<T>, null | undefined | false | 0 | ''>> {
  const beganAt = Date.now();
  for (;;) {
    const value = await condition();
    if (value) return value as Exclude<Awaited<T>, null | undefined | false | 0 | ''>;
    const waitedMs = Date.now() - beganAt;
    if (waitedMs > timeoutMs)
      throw new Error(`not so within ${timeoutMs} ms: ${String(condition)}`);
    await delay(intervalMs ?? Math.min(Math.max(waitedMs / 10, INTERVAL_MS_MIN), INTERVAL_MS_MAX));
  }
}

/** A database at the newest schema, as a start leaves it: a copy of the template, which takes 60 ms. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createFrom(given('TEST_POSTGRES_TEMPLATE'));
}

/** A database as migrations leave it: without the partitions of this month and the next, which a start creates. */
export function createMigratedDatabase(): Promise<TestDatabase> {
  return createFrom(new URL(given('TEST_POSTGRES_URL')).pathname.slice(1));
}

/** A copy of a database that nobody is connected to. */
export async function copyTestDatabase(databaseUrl: string): Promise<TestDatabase> {
  await endKeptPool(databaseUrl);
  return createFrom(new URL(databaseUrl).pathname.slice(1));
}

/** A database without our schema, for tests of its creation. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom('template0');
}

async function createFrom(templateName: string): Promise<TestDatabase> {
  const name = `test_${unique()}`;
  await administer(
    `create database ${name} owner farebox template ${templateName} strategy wal_log`,
  );
  const url = new URL(given('TEST_POSTGRES_URL'));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      await endKeptPool(url.href);
      await administer(`drop database ${name} with (force)`);
    },
  };
}

/** The same database as superuser, which Farebox never is: to look at it in ways that the application cannot. */
export function asSuperuser(databaseUrl: string): string {
  const url = new URL(given('TEST_POSTGRES_SUPERUSER_URL'));
  url.pathname = new URL(databaseUrl).pathname;
  return url.href;
}

async function administer(statement: string): Promise<void> {
  const client = new Client({ connectionString: given('TEST_POSTGRES_SUPERUSER_URL') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A Temporal namespace with our search attributes. Namespaces end with the run's server. */
export function createTestNamespace(): Promise<string> {
  return createNamespace(ensureSearchAttributes);
}

/** As in a new cluster: without search attributes. */
export function createBareNamespace(): Promise<string> {
  return createNamespace(async () => {});
}

async function createNamespace(
  prepare: (connection: Connection, namespace: string) => Promise<unknown>,
): Promise<string> {
  const namespace = `test-${unique()}`;
  const connection = await connectTemporal();
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
    await prepare(connection, namespace);
  } finally {
    await connection.close();
  }
  return namespace;
}

let sharedNamespace: Promise<string> | undefined;

/** A deployment as in production, alone in a namespace: for tests that list what is in it, or that name its ids. */
export async function aloneInNamespace(): Promise<Environment> {
  return deploymentIn(await createTestNamespace(), DEFAULT_TASK_QUEUE);
}

/**
 * A deployment beside the others of this process: its task queue scopes all ids. One namespace serves them all, because
 * Temporal keeps metrics for each that it has ever had and visits all of them each second.
 */
async function besideOthers(): Promise<Environment> {
  sharedNamespace ??= createTestNamespace();
  return deploymentIn(await sharedNamespace, `test-${unique()}`);
}

/** Made for the present file. */
const deployments: { readonly namespace: string; readonly taskQueue: string }[] = [];

function deploymentIn(namespace: string, taskQueue: string): Environment {
  deployments.push({ namespace, taskQueue });
  return { TEMPORAL_NAMESPACE: namespace, TEMPORAL_TASK_QUEUE: taskQueue };
}

/** Longer than the default of ten seconds, which a busy machine exceeds. */
export function connectTemporal(): Promise<Connection> {
  const address = given('TEST_TEMPORAL_ADDRESS');
  return Connection.connect({ address, connectTimeout: UNTIL_TIMEOUT_MS });
}

/**
 * Deletes the schedules of this file's deployments that are due during a run: Temporal would be busy with those of all
 * the stacks that have ended.
 */
export async function deleteSchedules(): Promise<void> {
  const own = deployments.splice(0);
  if (own.length === 0) return;
  const connection = await connectTemporal();
  try {
    // One that does not exist is not found.
    await Promise.allSettled(
      own.flatMap(({ namespace, taskQueue }) =>
        ['expireHolds', 'rollUpEarnings'].map((workflow) =>
          connection.workflowService.deleteSchedule({
            namespace,
            scheduleId: scheduleIdOf({ taskQueue }, workflow),
          }),
        ),
      ),
    );
  } finally {
    await connection.close();
  }
}

/** The defaults. */
export const WITH_RATE_LIMITS = {
  READS_PER_SECOND: '100',
  CHANGES_PER_SECOND: '500',
  REFUNDS_PER_SECOND: '50',
  FAILED_KEYS_PER_SECOND: '100',
};

/** Tests send requests faster than any client. */
export const WITHOUT_RATE_LIMITS = {
  READS_PER_SECOND: '1000000',
  CHANGES_PER_SECOND: '1000000',
  REFUNDS_PER_SECOND: '1000000',
  FAILED_KEYS_PER_SECOND: '0',
  CONNECTIONS_PER_ADDRESS: '0',
};

/** The environment of an api or a worker, without the processor's part, which startSimulator returns. */
export async function testEnvironment(database: Pick<TestDatabase, 'url'>): Promise<Environment> {
  return {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: given('TEST_TEMPORAL_ADDRESS'),
    ...(await besideOthers()),
    MASTER_SECRET: randomBytes(32).toString('base64url'),
    DEFAULT_CONSENT_CEILING: '1000',
    SAVE_TEST_CARD: 'true',
    // A schedule outlives its stack, and Temporal would be busy with the schedules of all stacks.
    ROLL_UP_EVERY_SECONDS: '3600',
    // The simulator has no rate limits.
    STRIPE_STEPS_PER_SECOND: '1000',
    // At midnight: otherwise only the tests of reconciliation run it.
    RECONCILE_EVERY_SECONDS: '86400',
    ...WITHOUT_RATE_LIMITS,
    LOG_LEVEL: 'info',
  };
}

/**
 * `env` from testEnvironment and a simulator's `env`. On a free port unless PORT is given. It runs in this
 * process, which takes a fifth of the CPU time of starting a process, and ends with it.
 */
export async function startApi({ env }: { readonly env: Environment }): Promise<Server> {
  if (AS_PROCESSES) return startApiProcess({ env });
  const { url, ...ours } = await addressed(env);
  const { runApi } = await import('../../src/processes/api.ts');
  return { ...(await startHere('api', ours.env, runApi)), url };
}

/** In this process, as startApi. */
export async function startWorker({ env }: { readonly env: Environment }): Promise<Server> {
  if (AS_PROCESSES) return startWorkerProcess({ env });
  const { runWorker } = await import('../../src/processes/worker.ts');
  return { ...(await startHere('worker', env, runWorker)), url: '' };
}

/** The same, in a process of its own, which a test may kill. */
export async function startApiProcess({
  env,
  nodeFlags = [],
  program = ourProgram(),
}: {
  readonly env: Environment;
  readonly nodeFlags?: readonly string[] | undefined;
  /** The source, for a test that changes it. */
  readonly program?: string;
}): Promise<ServerProcess> {
  const { url, ...ours } = await addressed(env);
  return { ...(await startOurs('api', [program, 'api'], ours.env, nodeFlags)), url };
}

export async function startWorkerProcess({
  env,
}: {
  readonly env: Environment;
}): Promise<ServerProcess> {
  return { ...(await startOurs('worker', [ourProgram(), 'worker'], env)), url: '' };
}

/** As startSimulator, in a process of its own, which a test may kill. */
export async function startSimulatorProcess(
  options: SimulatorOptions = {},
): Promise<Simulator & ServerProcess> {
  const { port, webhookUrl, ...simulator } = await chooseSimulator(options);
  const child = await startOurs('simulator', [SIMULATOR_MAIN], {
    SIMULATOR_PORT: String(port),
    SIMULATOR_DB: simulator.database,
    SIMULATOR_SECRET_KEY: simulator.env.STRIPE_SECRET_KEY,
    SIMULATOR_WEBHOOK_URL: webhookUrl,
    SIMULATOR_WEBHOOK_SECRET: simulator.env.STRIPE_WEBHOOK_SECRET,
    SIMULATOR_TOKEN: simulator.token,
    SIMULATOR_SETTLE_SECONDS: String(SETTLE_SECONDS),
  });
  return { ...child, ...simulator };
}

async function addressed(env: Environment): Promise<{ url: string; env: Environment }> {
  const port = Number(env['PORT'] ?? (await choosePort()));
  const url = `http://127.0.0.1:${port}`;
  return { url, env: { ...env, PORT: String(port), BASE_URL: env['BASE_URL'] ?? url } };
}

/**
 * The only variables that our processes get from the run. The compile cache halves the time of a start. No
 * module is behind a link, and a start that does not look for links takes a seventh less CPU time.
 */
function inherited(): Environment {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return {
    PATH,
    HOME,
    NODE_PRESERVE_SYMLINKS: '1',
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
  };
}

export async function startHere(
  name: 'api' | 'worker',
  env: Environment,
  run: (config: Config, log: Logger) => Promise<{ stop(): Promise<void> }>,
) {
  noteSecretsOf(env);
  const logFile = newLog(name);
  const url = new URL(env['DATABASE_URL'] ?? '');
  // As PGAPPNAME names it in a process of its own.
  url.searchParams.set('application_name', `farebox ${name}`);
  const config = readConfig({ ...env, DATABASE_URL: url.href });
  // Never closed: the next file would get its number, and with it the lines that come late.
  const log = createLog(name, config.logLevel, { fd: openSync(logFile, 'a') });
  const running = await run(config, log);
  let stopped: Promise<void> | undefined;
  return { logFile, stop: () => (stopped ??= running.stop()) };
}

function newLog(name: string): string {
  const file = join(given('TEST_FOLDER'), `${name}-${unique()}.log`);
  noteLog(file);
  return file;
}

async function startOurs(
  name: string,
  args: readonly string[],
  env: Environment,
  nodeFlags: readonly string[] = [],
) {
  const logFile = newLog(name);
  noteSecretsOf(env);
  const child = await startChild({
    name,
    command: [process.execPath, ...nodeFlags, ...args],
    env: { ...inherited(), ...env },
    logFile,
    ready: 'message',
    ...PATIENTLY,
  });
  void child.exited.then((how) => appendFileSync(logFile, `${name} has ended: ${how}\n`));
  return { ...child, logFile };
}

/** A database, a simulator, a worker and an api, separate from any other stack. */
export function startStack(options: StackOptions = {}): Promise<Stack> {
  return startStackOf({ startApi, startWorker }, options);
}

/** The same, with the worker in a process of its own, which a test may kill. */
export function startStackAndWorkerProcess(
  options: StackOptions = {},
): Promise<Stack<Server, ServerProcess>> {
  return startStackOf({ startApi, startWorker: startWorkerProcess }, options);
}

/** The same, with the worker and the api in processes of their own. */
export function startProcesses(options: StackOptions = {}): Promise<Stack<ServerProcess>> {
  return startStackOf({ startApi: startApiProcess, startWorker: startWorkerProcess }, options);
}

export type Start<S> = (options: { readonly env: Environment }) => Promise<S>;

export async function startStackOf<A extends Server, W extends Server>(
  start: { readonly startApi: Start<A>; readonly startWorker: Start<W> },
  options: StackOptions,
): Promise<Stack<A, W>> {
  const undo: (() => Promise<void>)[] = [];
  const stop = () => endAll(...undo.splice(0).toReversed());
  const started = async <S extends Server>(server: Promise<S>): Promise<S> => {
    const running = await server;
    undo.push(() => running.stop());
    return running;
  };
  try {
    const database = await createTestDatabase();
    undo.push(() => database.drop());
    const apiPort = await choosePort();
    const simulator = await startSimulator({ apiPort });
    undo.push(() => simulator.stop());
    const env = {
      ...(await testEnvironment(database)),
      ...simulator.env,
      PORT: String(apiPort),
      BASE_URL: `http://127.0.0.1:${apiPort}`,
      // Tests ask for a top-up once, and expect it done. A busy machine takes longer than the default of 10 s.
      // Less than a page waits, so that a page that failed says so.
      TOP_UP_ANSWER_MS: '45000',
      ...options.env,
    };
    const [api, worker] = await Promise.all([
      started(start.startApi({ env: { ...env, ...options.apiEnv } })),
      started(start.startWorker({ env: { ...env, ...options.workerEnv } })),
    ]);
    return { database, simulator, api, worker, env, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs `farebox <args>` to its end and returns its output; throws when it fails. */
export async function farebox(
  args: readonly string[],
  { env }: { readonly env: Environment },
): Promise<string> {
  const { stdout } = await run(process.execPath, [ourProgram(), ...args], {
    env: { ...inherited(), ...env },
  });
  return stdout;
}
