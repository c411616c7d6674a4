/**
 * The composition root of a worker process: it runs the workflows and their activities, and the relay. It may start
 * before Temporal, and survives restarts of Temporal and Postgres.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Worker, type WorkerDeploymentOptions } from '@temporalio/worker';
import { Registry } from '@prometheus-io/client';
import type { Logger } from 'pino';
import type { Stripe } from 'stripe';
import { createApprovalActivities } from '../../activities/approvals.ts';
import { createInvocationAttemptActivities } from '../../activities/invocation-attempts.ts';
import { createGrantActivities } from '../../activities/grants.ts';
import { createHoldActivities } from '../../activities/holds.ts';
import { createInvocationActivities } from '../../activities/invocations.ts';
import { createWebhookEndpointActivities } from '../../activities/webhook-endpoints.ts';
import { createTopUpActivities } from '../../activities/top-ups.ts';
import { createLogActivities } from '../../activities/logs.ts';
import { createPartitionActivities } from '../../activities/partitions.ts';
import { createTopUpPaymentActivities } from '../../activities/top-up-payments.ts';
import { createTopUpReversalActivities } from '../../activities/top-up-reversals.ts';
import { createReconciliationActivities } from '../../activities/reconciliation.ts';
import { createRollupActivities } from '../../activities/rollups.ts';
import { SharedPlaces } from '../agents/shared-places.ts';
import { ApprovalLinks } from '../charging/approval-links.ts';
import { startHoldSweeper } from '../charging/hold-sweeper.ts';
import type { Config } from '../config.ts';
import {
  agentTaskQueue,
  busyAgentTaskQueue,
  stripeTaskQueue,
  webhookTaskQueue,
} from '../domain/task-queues.ts';
import { autoTopUpMails } from '../mail/auto-top-ups-off.ts';
import { endpointMails } from '../mail/endpoint-disabled.ts';
import { securityMails } from '../mail/security-mails.ts';
import { canMail, mailSender } from '../mail/send.ts';
import { WebhookSigner } from '../events/signing.ts';
import { serveMetrics, type MetricsServer } from '../metrics/serve-metrics.ts';
import { registerWorker } from '../metrics/worker-metrics.ts';
import { createStripe } from '../stripe/calls.ts';
import { dashboardUrlOf } from '../stripe/dashboard.ts';
import { comparedPerSecond, stripeQueueLimits } from '../stripe/pace.ts';
import { readBacklog } from '../store/audit/backlog.ts';
import { createDatabase, type Database } from '../store/database.ts';
import { createTemporalClient, followApiKey, type TemporalClient } from '../temporal/client.ts';
import { connectWorker } from '../temporal/connect-worker.ts';
import { reportReversal } from '../temporal/start-reversals.ts';
import { reportPayment } from '../temporal/start-top-up.ts';
import { explainFailures } from '../../activities/explain-failures.ts';
import { beatHearts } from '../../activities/heartbeat.ts';
import { keepBuilds, UNVERSIONED } from '../temporal/builds.ts';
import { keepConnected } from '../temporal/keep-connected.ts';
import { dataConverterOf } from '../temporal/payload-codec.ts';
import { Relay } from '../temporal/relay.ts';
import { installRuntime } from '../temporal/runtime.ts';
import { keepSchedules, schedulesOf } from '../temporal/schedules.ts';
import { tracedSteps } from '../temporal/traced-steps.ts';
import { workflowBuildId, workflowBundle } from '../temporal/workflow-bundle.ts';
import { startTracing } from '../tracing/start-tracing.ts';
import { checkStart } from './check-start.ts';
import { confirmTopUpMailer } from '../mail/confirm-top-up.ts';
import { startPatience } from './patience.ts';

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
/** The most concurrent calls to agents. Each may be slow and hold an answer of 1 MB in memory. */
const AGENT_CALLS_MAX = 200;
/** The part of these that accounts leave free whose last call hung. Otherwise some hundreds of them could take all. */
const AGENT_CALLS_RESERVED = 50;
/** The same beyond the shares of their accounts. These wait for one another. */
const BUSY_AGENT_CALLS_MAX = 100;
/** The most webhook endpoints that one worker sends to at once. Each may be slow. */
const WEBHOOK_ENDPOINTS_MAX = 200;
/** How long a task waits for the worker that has the workflow cached; that worker may have been killed. */
const STICKY_TIMEOUT = '2s';
/** An activity takes up to 15 s. Another worker retries the ones that this cuts off. */
const SHUTDOWN_GRACE = '10s';

const EVERY_WORKER = {
  shutdownGraceTime: SHUTDOWN_GRACE,
  // By default, heartbeats are sent only every 0.8 heartbeat timeouts, so a delay of a second would start a second
  // attempt.
  maxHeartbeatThrottleInterval: '1s',
};

/** Resolves when the worker polls for work. Waits for Temporal as long as needed, or until `signal` aborts. */
export async function runWorker(
  config: Config,
  log: Logger,
  signal?: AbortSignal,
): Promise<RunningWorker> {
  const patiently = startPatience(log, signal && { signal });
  await patiently(() => checkStart(config, log));
  // Keeps a process alive, so it comes after what may refuse to start.
  installRuntime(log);
  const tracing = await startTracing(config.traces, 'farebox-worker', log);
  const database = await patiently(() =>
    createDatabase(config.databaseUrl, {
      tracing,
      maxPoolSize: DATABASE_CONNECTIONS,
      silenceMsMax: DATABASE_SILENCE_MS_MAX,
      onError: (error) => log.warn({ err: error }, 'a connection to Postgres broke'),
    }),
  );
  const temporal = createTemporalClient(config.temporal, tracing);
  const mailDeps = { config, database, log };
  const mailsOfEndpoints = endpointMails(mailDeps);
  const overdue = [securityMails(mailDeps), autoTopUpMails(mailDeps), mailsOfEndpoints];
  const relay = new Relay({
    database,
    temporal,
    log,
    leaseMs: config.relayLeaseMs,
    canMail: canMail(config.mail),
    sendOwedMails: async () => {
      await Promise.all(overdue.map(({ sendOverdue }) => sendOverdue()));
    },
  });
  const sweeper = startHoldSweeper(database, (error) =>
    log.warn({ err: error }, 'could not release expired holds; will retry'),
  );
  const stopping = new AbortController();
  let metrics: MetricsServer | undefined;
  let keeping: Promise<unknown> | undefined;
  let abandonedRuns: number | undefined;
  const release = async () => {
    stopping.abort();
    await sweeper.stop();
    await keeping;
    await metrics?.close();
    await relay.stop();
    await temporal.close();
    await database.end();
    await tracing?.stop();
  };
  try {
    if (config.metricsPort !== undefined) {
      const registry = new Registry();
      registerWorker(registry, {
        pools: { activities: database },
        readBacklog: () => readBacklog(database),
        abandonedRuns: () => abandonedRuns,
      });
      // Before Temporal is there: a worker that waits for it is worth watching.
      const { host, metricsPort: port } = config;
      metrics = await serveMetrics({ host, port, log }, registry);
    }
    const { namespace, taskQueue, isVersioned, payloadKeys } = config.temporal;
    const buildId = isVersioned ? workflowBuildId() : UNVERSIONED;
    const dataConverter = dataConverterOf(payloadKeys);
    const [workflows, native] = await Promise.all([
      workflowBundle({ isVersioned, encryptsFailures: dataConverter !== undefined }),
      whenTemporalIsThere(() => connectWorker(config.temporal), log, signal),
    ]);
    const { connection, tunnel } = native;
    const unfollow = followApiKey(connection, config.temporal);
    const everyWorker = {
      ...EVERY_WORKER,
      connection,
      namespace,
      ...(isVersioned && { workerDeploymentOptions: versionOf(taskQueue, buildId) }),
      ...(dataConverter && { dataConverter }),
      interceptors: {
        activity: [
          beatHearts,
          explainFailures(config.stepRetryMs),
          ...(tracing ? [tracedSteps(tracing)] : []),
        ],
      },
    };
    const deps = {
      config,
      database,
      stripe: createStripe(config.stripe, { tracing }),
      temporal,
      log,
    };
    const stripeActivities = createStripeActivities(deps);
    const toAgents = {
      ...everyWorker,
      activities: createInvocationAttemptActivities({
        database,
        allowPrivate: config.allowPrivateEndpoints,
        timeoutMs: config.agentTimeoutMs,
        places: new SharedPlaces(AGENT_CALLS_MAX, AGENT_CALLS_RESERVED),
      }),
      shutdownGraceTime: config.agentGraceMs,
    };
    const workers = await Promise.all([
      Worker.create({
        ...everyWorker,
        taskQueue,
        workflowBundle: workflows,
        // Runs of earlier releases have scheduled their calls of Stripe here.
        activities: { ...createLedgerActivities(deps), ...stripeActivities },
        stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT,
      }),
      Worker.create({
        ...everyWorker,
        taskQueue: stripeTaskQueue(taskQueue),
        activities: stripeActivities,
        ...stripeQueueLimits(config.stripe.stepsPerSecond),
      }),
      Worker.create({
        ...toAgents,
        taskQueue: agentTaskQueue(taskQueue),
        maxConcurrentActivityTaskExecutions: AGENT_CALLS_MAX,
      }),
      Worker.create({
        ...toAgents,
        taskQueue: busyAgentTaskQueue(taskQueue),
        maxConcurrentActivityTaskExecutions: BUSY_AGENT_CALLS_MAX,
      }),
      Worker.create({
        ...everyWorker,
        taskQueue: webhookTaskQueue(taskQueue),
        activities: createWebhookEndpointActivities({
          database,
          signer: new WebhookSigner(config.masterSecrets),
          allowPrivate: config.allowPrivateEndpoints,
          retryMs: config.webhookRetryMs,
          mailOwners: mailsOfEndpoints.sendOverdue,
        }),
        maxConcurrentActivityTaskExecutions: WEBHOOK_ENDPOINTS_MAX,
      }),
    ]);
    const runs = workers.map((each) => each.run());
    relay.start();
    void keepConnected(temporal, log, stopping.signal, native);
    // In parallel with the work: payments must not wait for schedules.
    keeping = Promise.all([
      keepSchedules(temporal, schedulesOf(config), log, stopping.signal),
      keepBuilds(temporal, buildId, log, {
        signal: stopping.signal,
        report: (waiting) => (abandonedRuns = waiting),
      }),
    ]);
    return {
      ended: Promise.all(runs),
      stop: async () => {
        for (const each of workers) if (each.getState() === 'RUNNING') each.shutdown();
        await Promise.allSettled(runs);
        await release();
        unfollow();
        await connection.close();
        await tunnel?.close();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Of every queue's worker, so that the steps of a pinned run also stay on its build. */
function versionOf(deploymentName: string, buildId: string): WorkerDeploymentOptions {
  return {
    version: { deploymentName, buildId },
    useWorkerVersioning: true,
    // workflows/versioned.ts names the behavior of every type.
    defaultVersioningBehavior: 'AUTO_UPGRADE',
  };
}

interface ActivityDeps {
  readonly config: Config;
  readonly database: Database;
  readonly stripe: Stripe;
  readonly temporal: TemporalClient;
  readonly log: Logger;
}

/** Steps that normally need only Postgres. */
function createLedgerActivities({ config, database, stripe, log }: ActivityDeps) {
  const approvalLinks = new ApprovalLinks(config.masterSecrets, config.consoleUrl);
  return {
    ...createTopUpActivities({
      database,
      stripe,
      dashboardUrl: dashboardUrlOf(config.stripe),
      firstAskMs: config.firstAskMs,
      autoTopUpRetryMs: config.autoTopUpRetryMs,
    }),
    ...createRollupActivities({ database }),
    ...createHoldActivities({ database }),
    ...createLogActivities({ database, retentionDays: config.logRetentionDays }),
    ...createPartitionActivities({ databaseUrl: config.databaseUrl }),
    ...createGrantActivities({ database }),
    ...createApprovalActivities({
      database,
      linkTo: (approval) => approvalLinks.urlFor(approval),
      send: mailSender({ config: config.mail, database, log }),
    }),
    ...createInvocationActivities({
      database,
      deadlineMs: config.invocationDeadlineMs,
      attemptTimeoutMs: config.agentTimeoutMs,
    }),
  };
}

/** Steps that call Stripe. */
function createStripeActivities({ config, database, stripe, temporal, log }: ActivityDeps) {
  return {
    ...createTopUpPaymentActivities({
      database,
      stripe,
      consoleUrl: config.consoleUrl,
      checkoutMinutes: config.checkoutMinutes,
      savesTestCard: config.savesTestCard,
      tax: config.stripe.tax,
      tellOwner: confirmTopUpMailer({ config, database, log }),
    }),
    ...createTopUpReversalActivities({ database, stripe }),
    ...createReconciliationActivities({
      database,
      stripe,
      comparedPerSecond: comparedPerSecond(config.stripe.stepsPerSecond),
      reviewAfterMs: config.reconcileReviewMs,
      nudges: {
        payment: (topUp) => reportPayment(temporal, topUp),
        reversal: (topUp) => reportReversal(temporal, topUp),
      },
    }),
  };
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
