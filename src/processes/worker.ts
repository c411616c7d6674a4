/**
 * The composition root of a worker process: it runs the workflows and their activities, and the relay. It may start
 * before Temporal, and survives restarts of Temporal and Postgres.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Registry } from '@prometheus-io/client';
import type { NativeConnection, Worker } from '@temporalio/worker';
import type { Logger } from 'pino';
import { startHoldSweeper } from '../charging/hold-sweeper.ts';
import type { Config } from '../config.ts';
import { answerWithin } from '../give-up-after.ts';
import { autoTopUpMails } from '../mail/auto-top-ups-off.ts';
import { endpointMails } from '../mail/endpoint-disabled.ts';
import type { OwedMails } from '../mail/owed-mails.ts';
import { securityMails } from '../mail/security-mails.ts';
import { canMail } from '../mail/send.ts';
import { serveMetrics, type MetricsServer } from '../metrics/serve-metrics.ts';
import { registerWorker } from '../metrics/worker-metrics.ts';
import { readBacklog } from '../store/operators/backlog.ts';
import { createDatabase, readServerState, type Database } from '../store/database.ts';
import { createStripe } from '../stripe/calls.ts';
import { keepBuilds, UNVERSIONED } from '../temporal/builds.ts';
import {
  createTemporalClient,
  followApiKey,
  isUp,
  type TemporalClient,
} from '../temporal/client.ts';
import { connectWorker } from '../temporal/connect-worker.ts';
import { keepConnected } from '../temporal/keep-connected.ts';
import { checkNamespace } from '../temporal/namespace.ts';
import { Relay } from '../temporal/relay.ts';
import { installRuntime } from '../temporal/runtime.ts';
import { keepSchedules, schedulesOf } from '../temporal/schedules.ts';
import { workflowBuildId, workflowBundle } from '../temporal/workflow-bundle.ts';
import { startTracing } from '../tracing/start-tracing.ts';
import { checkStart } from './check-start.ts';
import { listeningAt } from './listening.ts';
import { startPatience } from './patience.ts';
import { AGENT_CALLS, createQueueWorkers, type AgentCalls } from './queue-workers.ts';

export interface RunningWorker {
  /** Rejects if the worker ends by itself. It cannot continue then, and its process should be restarted. */
  readonly ended: Promise<unknown>;
  /** Finishes the running activities, then stops. */
  stop(): Promise<void>;
}

const DATABASE_CONNECTIONS = 10;
/**
 * Longer than the statement timeout of 10 s. Past it the connection is dead, and the activity is retried on another.
 */
const DATABASE_SILENCE_MS_MAX = 12_000;
const RECONNECT_MS = 1_000;
/** A dependency that does not answer in this time counts as down. */
const PROBE_TIMEOUT_MS = 1_000;
/** Longer, because the deadline of a call counts the time that this process stood still. */
const CALL_TIMEOUT_MS = 10_000;

/** Resolves when the worker polls for work. Waits for Temporal as long as needed, or until `signal` aborts. */
export async function runWorker(
  config: Config,
  log: Logger,
  signal?: AbortSignal,
  agentCalls: AgentCalls = AGENT_CALLS,
): Promise<RunningWorker> {
  const patiently = startPatience(log, signal && { signal });
  await patiently(() => checkStart(config, log));
  // Keeps a process alive, so it comes after what may refuse to start.
  installRuntime(log);
  // Closed in reverse order, at the stop or when the start fails.
  await using opened = new AsyncDisposableStack();
  const tracing = await startTracing(config.traces, 'farebox-worker', log);
  opened.defer(() => tracing?.stop());
  const database = await patiently(() =>
    createDatabase(config.databaseUrl, {
      tracing,
      maxPoolSize: DATABASE_CONNECTIONS,
      silenceMsMax: DATABASE_SILENCE_MS_MAX,
      onError: (error) => log.warn({ err: error }, 'a connection to Postgres broke'),
    }),
  );
  opened.defer(() => database.end());
  const temporal = createTemporalClient(config.temporal, tracing);
  opened.defer(() => temporal.close());
  const sweeper = startHoldSweeper(database, (error) =>
    log.warn({ err: error }, 'could not release expired holds; will retry'),
  );
  opened.defer(() => sweeper.stop());
  let abandonedRuns: number | undefined;
  /** Undefined until the worker polls. */
  let isReady: (() => Promise<boolean>) | undefined;
  // Before Temporal is up, because a worker that waits for it needs metrics too.
  const metrics = await startMetrics(config, log, database, {
    abandonedRuns: () => abandonedRuns,
    isReady: async () => (await isReady?.()) ?? false,
  });
  opened.defer(() => metrics?.close());

  const { isVersioned, payloadKeys } = config.temporal;
  const [bundle, native] = await Promise.all([
    workflowBundle({ isVersioned, encryptsFailures: payloadKeys !== undefined }),
    whenTemporalIsThere(() => connectWorker(config.temporal), log, signal),
  ]);
  const { connection, tunnel } = native;
  await checkNamespace(connection, config.temporal);
  const buildId = isVersioned ? workflowBuildId() : UNVERSIONED;
  const mailDeps = { config, database, log };
  const mailsOfEndpoints = endpointMails(mailDeps);
  const workers = await createQueueWorkers({
    config,
    database,
    stripe: createStripe(config.stripe, { tracing }),
    temporal,
    log,
    tracing,
    connection,
    buildId,
    agentCalls,
    workflowBundle: bundle,
    mailOwnersOfEndpoints: mailsOfEndpoints.sendOverdue,
  });
  // Deferred only now: workers that were created and never ran would keep the connection from being closed.
  opened.defer(() => tunnel?.close());
  opened.defer(() => connection.close());
  opened.defer(followApiKey(connection, config.temporal));

  const runs = workers.map((each) => each.run());
  isReady = () => canWork(workers, connection, database);
  const relay = startRelay(config, log, database, temporal, [
    securityMails(mailDeps),
    autoTopUpMails(mailDeps),
    mailsOfEndpoints,
  ]);
  opened.defer(() => relay.stop());
  const stopping = new AbortController();
  void keepConnected(temporal, log, stopping.signal, native);
  // In parallel with the work: payments must not wait for schedules.
  const keeping = Promise.all([
    keepSchedules(temporal, schedulesOf(config), log, stopping.signal),
    keepBuilds(temporal, buildId, log, {
      signal: stopping.signal,
      report: (waiting) => (abandonedRuns = waiting),
    }),
  ]);
  opened.defer(async () => {
    stopping.abort();
    await keeping;
  });
  opened.defer(async () => {
    for (const each of workers) if (each.getState() === 'RUNNING') each.shutdown();
    await Promise.allSettled(runs);
  });
  const running = opened.move();
  return { ended: Promise.all(runs), stop: () => running.disposeAsync() };
}

function startRelay(
  config: Config,
  log: Logger,
  database: Database,
  temporal: TemporalClient,
  owed: readonly Pick<OwedMails<unknown>, 'sendOverdue'>[],
): Relay {
  const relay = new Relay({
    database,
    temporal,
    log,
    leaseMs: config.relayLeaseMs,
    canMail: canMail(config.mail),
    sendOwedMails: async () => {
      await Promise.all(owed.map(({ sendOverdue }) => sendOverdue()));
    },
  });
  relay.start();
  return relay;
}

/** Undefined without METRICS_PORT. */
async function startMetrics(
  { host, metricsPort: port }: Config,
  log: Logger,
  database: Database,
  {
    abandonedRuns,
    isReady,
  }: {
    readonly abandonedRuns: () => number | undefined;
    readonly isReady: () => Promise<boolean>;
  },
): Promise<MetricsServer | undefined> {
  if (port === undefined) return undefined;
  const registry = new Registry();
  registerWorker(registry, {
    pools: { activities: database },
    readBacklog: () => readBacklog(database),
    abandonedRuns,
  });
  return listeningAt(
    { host, setting: 'METRICS_PORT', port },
    serveMetrics({ host, port, log }, registry, isReady),
  );
}

/** Whether the worker can take work, and do it: it polls Temporal, and Postgres takes writes. */
async function canWork(
  workers: readonly Worker[],
  connection: NativeConnection,
  database: Database,
): Promise<boolean> {
  const [postgres, isTemporalUp] = await Promise.all([
    answerWithin(PROBE_TIMEOUT_MS, readServerState(database)),
    answerWithin(PROBE_TIMEOUT_MS, isUp(connection, CALL_TIMEOUT_MS)),
  ]);
  const isPolling = workers.every((each) => each.getState() === 'RUNNING');
  return isPolling && isTemporalUp === true && postgres === 'up';
}

async function whenTemporalIsThere<T>(
  attempt: () => Promise<T>,
  log: Logger,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      log.info({ err: error }, 'waiting for Temporal');
      await delay(RECONNECT_MS, undefined, { signal });
    }
  }
}
