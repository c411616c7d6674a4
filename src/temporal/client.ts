/**
 * Starts of and messages to our workflows, with their ids built in one place. The API starts and
 * serves while Temporal is away: the connection is made at the first call, and whatever goes wrong is
 * data, noticed within seconds.
 */
import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { SignalDefinition, UpdateDefinition } from '@temporalio/common';
import type { Config } from '../config.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf } from '../domain/money.ts';
import type { InvocationView } from '../domain/invocation.ts';
import type { SearchAttributeName } from '../domain/search-attributes.ts';
import type { Grant } from '../store/agents/grants.ts';
import type { Invocation } from '../store/agents/invocations.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';
import type { grant as grantWorkflow } from '../../workflows/grant.ts';
import type { invocation as invocationWorkflow } from '../../workflows/invocation.ts';
import {
  grantRevoked,
  grantUsed,
  invocationOutcome,
  outcome,
  paymentReported,
  reversalReported,
  sessionUrl,
  type TopUpView,
} from '../../workflows/messages.ts';
import type { topUp as topUpWorkflow } from '../../workflows/top-up.ts';

export interface TemporalClient {
  readonly client: Client;
  readonly taskQueue: string;
  /** Whether the server answers within `timeoutMs`, by default a second: enough over a connection in use. */
  isUp(timeoutMs?: number): Promise<boolean>;
  close(): Promise<void>;
}

export type Answer<T> =
  | { readonly kind: 'answered'; readonly value: T }
  /** No answer in time; what was asked for may still happen. */
  | { readonly kind: 'timed_out' }
  /** No answer, or a refusal; what was asked for may still happen. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  /** The workflow has ended; its row says how. */
  | { readonly kind: 'closed' };

type Startable = Pick<
  TopUp,
  'id' | 'consumerId' | 'method' | 'automatic' | 'status' | 'amountMicros'
>;

/** About 1.5 seconds of attempts: a server that restarts is waited for, one that is gone is not. */
const CALL_ATTEMPTS_MAX = 5;
const PROBE_TIMEOUT_MS = 1_000;

export function createTemporalClient(config: Config['temporal']): TemporalClient {
  const connection = Connection.lazy({
    address: config.address,
    ...connectionSecurity(config),
    connectTimeout: 3_000,
    channelArgs: {
      // By default a channel that could not connect waits up to two minutes before it tries again.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 2_000,
    },
    interceptors: [
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: CALL_ATTEMPTS_MAX })),
    ],
  });
  const client = new Client({ connection, namespace: config.namespace });
  return {
    client,
    taskQueue: config.taskQueue,
    isUp: (timeoutMs = PROBE_TIMEOUT_MS) =>
      connection
        .withDeadline(Date.now() + timeoutMs, () => client.workflowService.getSystemInfo({}))
        .then(
          () => true,
          () => false,
        ),
    close: () => connection.close(),
  };
}

/** For clients and workers alike. */
export function connectionSecurity(config: Config['temporal']) {
  return {
    tls: config.tls,
    ...(config.apiKey !== undefined && { apiKey: config.apiKey }),
  };
}

export function topUpWorkflowId(topUpId: string): string {
  return `top-up/${wireId('topUp', topUpId)}`;
}

/** Starts or joins the workflow; answers when the checkout can be paid. */
export function startCheckout(
  temporal: TemporalClient,
  topUp: Startable,
  options: { readonly timeoutMs: number },
): Promise<Answer<TopUpView>> {
  return startWith(temporal, topUp, sessionUrl, options.timeoutMs);
}

/** Starts or joins the workflow; answers when the top-up has ended. */
export function startDirectTopUp(
  temporal: TemporalClient,
  topUp: Startable,
  options: { readonly timeoutMs: number },
): Promise<Answer<TopUpView>> {
  return startWith(temporal, topUp, outcome, options.timeoutMs);
}

/** Nudges the workflow, and starts it again when it is gone: only this may restart a closed one. */
export function reportPayment(temporal: TemporalClient, topUp: Startable): Promise<void> {
  return report(temporal, topUp, paymentReported);
}

/** The same about a refund or dispute, which mostly comes when the workflow has long ended. */
export function reportReversal(temporal: TemporalClient, topUp: Startable): Promise<void> {
  return report(temporal, topUp, reversalReported);
}

async function report(
  temporal: TemporalClient,
  topUp: Startable,
  signal: SignalDefinition,
): Promise<void> {
  await temporal.client.withDeadline(Date.now() + REPORT_TIMEOUT_MS, () =>
    temporal.client.workflow.signalWithStart<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal,
    }),
  );
}

/** Whether Temporal says, within a second, that it has the workflow. */
export async function hasTopUp(temporal: TemporalClient, topUpId: string): Promise<boolean> {
  const handle = temporal.client.workflow.getHandle(topUpWorkflowId(topUpId));
  return temporal.client
    .withDeadline(Date.now() + PROBE_TIMEOUT_MS, () => handle.describe())
    .then(
      () => true,
      () => false,
    );
}

/** Returns when Temporal has the workflow of an automatic top-up, for which nobody waits. */
export async function startTopUp(temporal: TemporalClient, topUp: Startable): Promise<void> {
  await unlessEnded(temporal, REPORT_TIMEOUT_MS, async () => {
    await temporal.client.workflow.start<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      ...ONE_RUN,
    });
  });
}

export function grantWorkflowId(grantId: string): string {
  return `grant/${wireId('grant', grantId)}`;
}

/** Starts the workflow of a grant, or has it look at its row; one that came to its end has nothing to learn. */
export async function reportGrant(temporal: TemporalClient, grant: Grant): Promise<void> {
  const { workflow } = temporal.client;
  const options = { ...grantStartOptions(temporal, grant), ...ONE_END };
  const signal = SIGNAL_OF[grant.status];
  await unlessEnded(temporal, REPORT_TIMEOUT_MS, async () => {
    if (!signal) await workflow.start<typeof grantWorkflow>('grant', options);
    else await workflow.signalWithStart<typeof grantWorkflow>('grant', { ...options, signal });
  });
}

const SIGNAL_OF = { used: grantUsed, revoked: grantRevoked, active: undefined, expired: undefined };

export function invocationWorkflowId(invocationId: string): string {
  return `invocation/${wireId('invocation', invocationId)}`;
}

/** Returns when Temporal has the workflow: it will call the agent. */
export async function startInvocation(
  temporal: TemporalClient,
  invocation: Invocation,
  { timeoutMs = REPORT_TIMEOUT_MS } = {},
): Promise<void> {
  await unlessEnded(temporal, timeoutMs, async () => {
    await temporal.client.workflow.start<typeof invocationWorkflow>('invocation', {
      ...invocationStartOptions(temporal, invocation),
      ...ONE_END,
    });
  });
}

/** Answers when the invocation has ended, or will not soon. */
export async function awaitInvocation(
  temporal: TemporalClient,
  invocationId: string,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<Answer<InvocationView>> {
  const handle = temporal.client.workflow.getHandle(invocationWorkflowId(invocationId));
  try {
    const value = await temporal.client.withDeadline(Date.now() + timeoutMs, () =>
      handle.executeUpdate(invocationOutcome),
    );
    return { kind: 'answered', value };
  } catch (error) {
    return answerOf(error);
  }
}

const REPORT_TIMEOUT_MS = 5_000;

/** A start joins the workflow that runs, and never makes another one of one that has ended. */
const ONE_RUN = {
  workflowIdConflictPolicy: 'USE_EXISTING',
  workflowIdReusePolicy: 'REJECT_DUPLICATE',
} as const;

/** The same, but begins anew one that was terminated: its row says that it has not come to its end. */
const ONE_END = {
  workflowIdConflictPolicy: 'USE_EXISTING',
  workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
} as const;

async function unlessEnded(
  { client }: TemporalClient,
  timeoutMs: number,
  start: () => Promise<void>,
): Promise<void> {
  try {
    await client.withDeadline(Date.now() + timeoutMs, start);
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

async function startWith(
  temporal: TemporalClient,
  topUp: Startable,
  update: UpdateDefinition<TopUpView>,
  timeoutMs: number,
): Promise<Answer<TopUpView>> {
  const start = new WithStartWorkflowOperation<typeof topUpWorkflow>('topUp', {
    ...startOptions(temporal, topUp),
    workflowIdConflictPolicy: 'USE_EXISTING',
    // A second run would be a second attempt at the payment.
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  try {
    const value = await temporal.client.withDeadline(Date.now() + timeoutMs, () =>
      temporal.client.workflow.executeUpdateWithStart(update, { startWorkflowOperation: start }),
    );
    return { kind: 'answered', value };
  } catch (error) {
    return answerOf(error);
  }
}

function startOptions(temporal: TemporalClient, topUp: Startable) {
  const topUpId = wireId('topUp', topUp.id);
  const consumerId = wireId('consumer', topUp.consumerId);
  const dollars = dollarsOf(topUp.amountMicros);
  const how = topUp.automatic ? 'automatic' : topUp.method;
  return {
    workflowId: topUpWorkflowId(topUp.id),
    taskQueue: temporal.taskQueue,
    args: [{ topUpId }] as [{ topUpId: string }],
    staticSummary: `Top-up of ${dollars} dollars, ${how}`,
    staticDetails: `Top-up \`${topUpId}\` of consumer \`${consumerId}\`, made by ${how}.`,
    typedSearchAttributes: [
      keyword('TopUpStatus', topUp.status),
      keyword('ConsumerId', consumerId),
      keyword('WaitingFor', 'processor'),
      double('AmountDollars', dollars),
    ],
  };
}

function grantStartOptions(temporal: TemporalClient, grant: Grant) {
  const grantId = wireId('grant', grant.id);
  const accountId = wireId('account', grant.accountId);
  return {
    workflowId: grantWorkflowId(grant.id),
    taskQueue: temporal.taskQueue,
    args: [{ grantId }] as [{ grantId: string }],
    staticSummary: `Grant, ${grant.type}, for ${grant.targetAgentId}`,
    staticDetails:
      `Grant \`${grantId}\` for the agent \`${grant.targetAgentId}\`, of type \`${grant.type}\`, ` +
      `made by account \`${accountId}\`. It expires at ${grant.expiresAt}.`,
    typedSearchAttributes: [
      keyword('GrantStatus', grant.status),
      keyword('AgentId', grant.targetAgentId),
      keyword('AccountId', accountId),
    ],
  };
}

function invocationStartOptions(temporal: TemporalClient, invocation: Invocation) {
  const invocationId = wireId('invocation', invocation.id);
  const accountId = wireId('account', invocation.accountId);
  const { targetAgentId, capability } = invocation;
  return {
    workflowId: invocationWorkflowId(invocation.id),
    taskQueue: temporal.taskQueue,
    args: [{ invocationId }] as [{ invocationId: string }],
    staticSummary: `Invocation of ${targetAgentId}`,
    staticDetails:
      `Invocation \`${invocationId}\` of the agent \`${targetAgentId}\` by account ` +
      `\`${accountId}\`, with grant \`${wireId('grant', invocation.grantId)}\`.`,
    typedSearchAttributes: [
      keyword('InvocationStatus', invocation.status),
      keyword('AgentId', targetAgentId),
      keyword('AccountId', accountId),
      keyword('Capability', capability),
      keyword('WaitingFor', 'database'),
    ],
  };
}

function keyword(name: SearchAttributeName, value: string) {
  return { key: { name, type: 'KEYWORD' as const }, value };
}

function double(name: SearchAttributeName, value: number) {
  return { key: { name, type: 'DOUBLE' as const }, value };
}

function answerOf(error: unknown): Answer<never> {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'timed_out' };
  if (
    error instanceof WorkflowExecutionAlreadyStartedError ||
    error instanceof WorkflowNotFoundError ||
    error instanceof WorkflowUpdateFailedError
  ) {
    return { kind: 'closed' };
  }
  return { kind: 'unavailable', error };
}
