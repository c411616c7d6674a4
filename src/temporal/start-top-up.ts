/** Starts the workflow of a top-up and sends it messages. */
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { UpdateDefinition } from '@temporalio/common';
import { wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollars } from '../domain/money.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';
import { outcome, paymentReported, sessionUrl, type TopUpView } from '../../workflows/messages.ts';
import type { topUp as topUpWorkflow } from '../../workflows/top-up.ts';
import type { Deployed, TemporalClient } from './client.ts';
import {
  answerOf,
  double,
  idPoliciesOf,
  keyword,
  onceARun,
  runsOn,
  type Answer,
  inTime,
} from './starts.ts';

type Startable = Pick<
  TopUp,
  'id' | 'consumerId' | 'method' | 'automatic' | 'status' | 'amountMicros'
>;

export function topUpWorkflowId(temporal: Deployed, topUpId: string): string {
  return workflowIdIn(temporal, 'top-up', wireId('topUp', topUpId));
}

/** Starts or joins the workflow; resolves when the checkout can be paid. */
export function startCheckout(
  temporal: TemporalClient,
  topUp: Startable,
  options: { readonly timeoutMs: number },
): Promise<Answer<TopUpView>> {
  return startWith(temporal, topUp, sessionUrl, options.timeoutMs);
}

/** Starts or joins the workflow; resolves when the top-up has ended. */
export function startDirectTopUp(
  temporal: TemporalClient,
  topUp: Startable,
  options: { readonly timeoutMs: number },
): Promise<Answer<TopUpView>> {
  return startWith(temporal, topUp, outcome, options.timeoutMs);
}

/** Nudges the workflow, and restarts it if it has ended. Only reports may restart a closed workflow. */
export async function reportPayment(temporal: TemporalClient, topUp: Startable): Promise<void> {
  await inTime(temporal, (workflow) =>
    workflow.signalWithStart<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: paymentReported,
    }),
  );
}

/**
 * Starts the workflow of a top-up that no workflow has claimed. Resolves when Temporal has accepted it. If an
 * earlier run has ended, it was terminated before its first step, so it did nothing.
 */
export async function startTopUp(temporal: TemporalClient, topUp: Startable): Promise<void> {
  await inTime(temporal, (workflow) =>
    workflow.start<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      ...idPoliciesOf('open'),
    }),
  );
}

async function startWith(
  temporal: TemporalClient,
  topUp: Startable,
  update: UpdateDefinition<TopUpView>,
  timeoutMs: number,
): Promise<Answer<TopUpView>> {
  // Each attempt needs a new one.
  const newStart = () =>
    new WithStartWorkflowOperation<typeof topUpWorkflow>('topUp', {
      ...startOptions(temporal, topUp),
      workflowIdConflictPolicy: 'USE_EXISTING',
      // A top-up that has ended is answered from its row; the relay restarts a lost workflow.
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  try {
    const value = await inTime(
      temporal,
      (workflow) =>
        workflow.executeUpdateWithStart(update, {
          startWorkflowOperation: newStart(),
          ...onceARun(update),
        }),
      timeoutMs,
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
    workflowId: topUpWorkflowId(temporal, topUp.id),
    ...runsOn(temporal),
    args: [{ topUpId }] as [{ topUpId: string }],
    staticSummary: `Top-up of ${formatDollars(topUp.amountMicros)}, ${how}`,
    staticDetails: `Top-up \`${topUpId}\` of consumer \`${consumerId}\`, ${how}.`,
    typedSearchAttributes: [
      keyword('TopUpStatus', topUp.status),
      keyword('ConsumerId', consumerId),
      keyword('WaitingFor', 'processor'),
      double('AmountDollars', dollars),
    ],
  };
}
