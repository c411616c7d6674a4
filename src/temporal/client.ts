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
import type { UpdateDefinition } from '@temporalio/common';
import type { Config } from '../config.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf } from '../domain/money.ts';
import type { TopUp } from '../store/top-ups.ts';
import { outcome, paymentReported, sessionUrl, type TopUpView } from '../../workflows/messages.ts';
import type { topUp as topUpWorkflow } from '../../workflows/top-up.ts';
import type { SearchAttributeName } from './search-attributes.ts';

export interface TemporalClient {
  readonly client: Client;
  readonly taskQueue: string;
  /** Whether the server answers now. */
  isUp(): Promise<boolean>;
  close(): Promise<void>;
}

export type Answer<T> =
  | { readonly kind: 'answered'; readonly value: T }
  /** No answer in time; what was asked for may still happen. */
  | { readonly kind: 'timed_out' }
  /** No answer, or a refusal; what was asked for may still happen. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  /** The workflow has ended; its top-up's row says how. */
  | { readonly kind: 'closed' };

type Startable = Pick<TopUp, 'id' | 'consumerId' | 'method' | 'status' | 'amountMicros'>;

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
    isUp: () =>
      connection
        .withDeadline(Date.now() + PROBE_TIMEOUT_MS, () => client.workflowService.getSystemInfo({}))
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
export async function reportPayment(temporal: TemporalClient, topUp: Startable): Promise<void> {
  await temporal.client.withDeadline(Date.now() + REPORT_TIMEOUT_MS, () =>
    temporal.client.workflow.signalWithStart<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: paymentReported,
    }),
  );
}

const REPORT_TIMEOUT_MS = 5_000;

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
  return {
    workflowId: topUpWorkflowId(topUp.id),
    taskQueue: temporal.taskQueue,
    args: [{ topUpId }] as [{ topUpId: string }],
    staticSummary: `Top-up of ${dollars} dollars, ${topUp.method}`,
    staticDetails: `Top-up \`${topUpId}\` of consumer \`${consumerId}\`, made by ${topUp.method}.`,
    typedSearchAttributes: [
      keyword('TopUpStatus', topUp.status),
      keyword('ConsumerId', consumerId),
      keyword('WaitingFor', 'processor'),
      double('AmountDollars', dollars),
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
