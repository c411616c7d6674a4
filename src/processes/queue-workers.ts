/**
 * The workers of Temporal's SDK in a worker process: one for each task queue, with the steps of that queue,
 * so that a slow agent, endpoint, mail server or Stripe delays only its own steps.
 */
import { Worker, type WorkerDeploymentOptions, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Stripe } from 'stripe';
import { createApprovalActivities } from '../../activities/approvals.ts';
import { createEnsurePartitionsActivities } from '../../activities/ensure-partitions.ts';
import { createExpireHoldsActivities } from '../../activities/expire-holds.ts';
import { explainFailures } from '../../activities/explain-failures.ts';
import { createGrantActivities } from '../../activities/grants.ts';
import { beatHearts } from '../../activities/heartbeat.ts';
import { createInvocationAttemptActivities } from '../../activities/invocation-attempts.ts';
import { createInvocationActivities } from '../../activities/invocations.ts';
import { createPruneLogsActivities } from '../../activities/prune-logs.ts';
import { createReconcileTopUpsActivities } from '../../activities/reconcile-top-ups.ts';
import { createReversalActivities } from '../../activities/reversals.ts';
import { createRollUpEarningsActivities } from '../../activities/roll-up-earnings.ts';
import { createTopUpPaymentActivities } from '../../activities/top-up-payments.ts';
import { createTopUpActivities } from '../../activities/top-ups.ts';
import { createWebhookEndpointActivities } from '../../activities/webhook-endpoints.ts';
import { SharedPlaces } from '../domain/shared-places.ts';
import { ApprovalLinks } from '../signing/approval-links.ts';
import type { Config } from '../config.ts';
import {
  agentTaskQueue,
  busyAgentTaskQueue,
  mailTaskQueue,
  stripeTaskQueue,
  webhookTaskQueue,
} from '../domain/task-queues.ts';
import { wireId } from '../domain/ids.ts';
import { WebhookSigner } from '../events/signing.ts';
import { confirmTopUpMailer } from '../mail/confirm-top-up.ts';
import { mailSender } from '../mail/send.ts';
import type { Database } from '../store/database.ts';
import { dashboardUrlOf } from '../stripe/dashboard.ts';
import { comparedPerSecond, stripeQueueLimits } from '../stripe/pace.ts';
import type { TemporalClient } from '../temporal/client.ts';
import { dataConverterOf } from '../temporal/payload-codec.ts';
import { reportReversal } from '../temporal/start-reversals.ts';
import { reportPayment } from '../temporal/start-top-up.ts';
import { tracedSteps } from '../temporal/traced-steps.ts';
import type { Tracing } from '../tracing/tracing.ts';

interface ActivityDeps {
  readonly config: Config;
  readonly database: Database;
  readonly stripe: Stripe;
  readonly temporal: TemporalClient;
  readonly log: Logger;
}

export interface QueueWorkerDeps
  extends ActivityDeps, Required<Pick<WorkerOptions, 'connection' | 'workflowBundle'>> {
  readonly tracing: Tracing | undefined;
  readonly buildId: string;
  readonly agentCalls: AgentCalls;
  /** Sends the mails about disabled webhook endpoints that are owed. */
  readonly mailOwnersOfEndpoints: () => Promise<void>;
}

/** How many calls to agents one worker process makes at once. */
export interface AgentCalls {
  /** Within the shares of their accounts. Each may be slow and hold an answer of 1 MB in memory. */
  readonly max: number;
  /**
   * How many of these stay free for other accounts than those whose last call hung. A few hundred of those
   * could take them all.
   */
  readonly reserved: number;
  /** Beyond the shares of their accounts. These wait for one another. */
  readonly busyMax: number;
}

/** The usual numbers. A test gives others, because hundreds of calls take much CPU time. */
export const AGENT_CALLS = { max: 200, reserved: 50, busyMax: 100 } as const;
/** The most webhook endpoints that one worker sends to at once. Each may be slow. */
const WEBHOOK_ENDPOINTS_MAX = 200;
/** How many of these stay free for other accounts than those whose last sending hung. */
const WEBHOOK_ENDPOINTS_RESERVED = 50;
/** The most mails that one worker sends at once. A mail server that hangs holds each for half a minute. */
const MAILS_MAX = 20;
/** How long a task waits for the worker that has the workflow cached; that worker may have been killed. */
const STICKY_TIMEOUT = '2s';
/** Most activities end within this time. Another worker retries the ones that this cuts off. */
const SHUTDOWN_GRACE = '10s';

export async function createQueueWorkers(deps: QueueWorkerDeps): Promise<Worker[]> {
  const { config, database, agentCalls } = deps;
  const { taskQueue } = config.temporal;
  const options = optionsOfAll(deps);
  const stripeActivities = createStripeActivities(deps);
  const approvalActivities = createOwnApprovalActivities(deps);
  const toAgents = {
    ...options,
    activities: createInvocationAttemptActivities({
      database,
      allowPrivate: config.allowPrivateEndpoints,
      timeoutMs: config.agentTimeoutMs,
      places: new SharedPlaces(agentCalls.max, agentCalls.reserved),
    }),
    shutdownGraceTime: config.agentGraceMs,
  };
  return Promise.all([
    Worker.create({
      ...options,
      taskQueue,
      workflowBundle: deps.workflowBundle,
      // Runs of earlier releases have scheduled their calls to Stripe and their mails here.
      activities: { ...createLedgerActivities(deps), ...approvalActivities, ...stripeActivities },
      stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT,
    }),
    Worker.create({
      ...options,
      taskQueue: stripeTaskQueue(taskQueue),
      activities: stripeActivities,
      ...stripeQueueLimits(config.stripe.stepsPerSecond),
    }),
    Worker.create({
      ...toAgents,
      taskQueue: agentTaskQueue(taskQueue),
      maxConcurrentActivityTaskExecutions: agentCalls.max,
    }),
    Worker.create({
      ...toAgents,
      taskQueue: busyAgentTaskQueue(taskQueue),
      maxConcurrentActivityTaskExecutions: agentCalls.busyMax,
    }),
    Worker.create({
      ...options,
      taskQueue: webhookTaskQueue(taskQueue),
      activities: createWebhookEndpointActivities({
        database,
        signer: new WebhookSigner(config.masterSecrets),
        allowPrivate: config.allowPrivateEndpoints,
        retryMs: config.webhookRetryMs,
        onMissingMaster: (endpointId, master) =>
          deps.log.error(
            { endpoint: wireId('webhookEndpoint', endpointId), master },
            'events wait because MASTER_SECRET lacks the secret that signs them',
          ),
        mailOwners: deps.mailOwnersOfEndpoints,
        places: new SharedPlaces(WEBHOOK_ENDPOINTS_MAX, WEBHOOK_ENDPOINTS_RESERVED),
      }),
      maxConcurrentActivityTaskExecutions: WEBHOOK_ENDPOINTS_MAX,
    }),
    Worker.create({
      ...options,
      taskQueue: mailTaskQueue(taskQueue),
      activities: approvalActivities,
      maxConcurrentActivityTaskExecutions: MAILS_MAX,
    }),
  ]);
}

/** They include the worker's version, so that the steps of a pinned run also stay on its build. */
function optionsOfAll({ config, connection, buildId, tracing }: QueueWorkerDeps) {
  const { namespace, taskQueue, isVersioned, payloadKeys } = config.temporal;
  const dataConverter = dataConverterOf(payloadKeys);
  return {
    connection,
    namespace,
    shutdownGraceTime: SHUTDOWN_GRACE,
    // By default, heartbeats are sent only every 0.8 heartbeat timeouts, so a delay of a second would start a second
    // attempt.
    maxHeartbeatThrottleInterval: '1s' as const,
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
}

function versionOf(deploymentName: string, buildId: string): WorkerDeploymentOptions {
  return {
    version: { deploymentName, buildId },
    useWorkerVersioning: true,
    // workflows/versioned.ts names the behavior of every type.
    defaultVersioningBehavior: 'AUTO_UPGRADE',
  };
}

/** Steps that normally need only Postgres. */
function createLedgerActivities({ config, database, stripe }: ActivityDeps) {
  return {
    ...createTopUpActivities({
      database,
      stripe,
      dashboardUrl: dashboardUrlOf(config.stripe),
      firstAskMs: config.firstAskMs,
      autoTopUpRetryMs: config.autoTopUpRetryMs,
    }),
    ...createRollUpEarningsActivities({ database }),
    ...createExpireHoldsActivities({ database }),
    ...createPruneLogsActivities({ database, retentionDays: config.logRetentionDays }),
    ...createEnsurePartitionsActivities({ databaseUrl: config.databaseUrl }),
    ...createGrantActivities({ database }),
    ...createInvocationActivities({
      database,
      deadlineMs: config.invocationDeadlineMs,
      attemptTimeoutMs: config.agentTimeoutMs,
    }),
  };
}

function createOwnApprovalActivities({ config, database, log }: ActivityDeps) {
  const links = new ApprovalLinks(config.masterSecrets, config.consoleUrl);
  return createApprovalActivities({
    database,
    linkTo: (approval) => links.urlFor(approval),
    send: mailSender({ config: config.mail, database, log }),
  });
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
    ...createReversalActivities({
      database,
      stripe,
      warn: (message) => log.warn(message),
    }),
    ...createReconcileTopUpsActivities({
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
