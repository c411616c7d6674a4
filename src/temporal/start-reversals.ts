/** Starts the workflow of a top-up's refunds and disputes, or tells it to read them again. */
import { wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollars } from '../domain/money.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';
import { reversalReported } from '../../workflows/messages.ts';
import type { reversals } from '../../workflows/reversals.ts';
import type { Deployed, TemporalClient } from './client.ts';
import { double, keyword, runsOn, inTime } from './starts.ts';

export function reversalsWorkflowId(temporal: Deployed, topUpId: string): string {
  return workflowIdIn(temporal, 'reversals', wireId('topUp', topUpId));
}

/** The top-up must be credited. A workflow that has ended starts again, even years later. */
export async function reportReversal(
  temporal: TemporalClient,
  topUp: Pick<TopUp, 'id' | 'consumerId' | 'status' | 'amountMicros'>,
): Promise<void> {
  const topUpId = wireId('topUp', topUp.id);
  const consumerId = wireId('consumer', topUp.consumerId);
  const dollars = dollarsOf(topUp.amountMicros);
  await inTime(temporal, (workflow) =>
    workflow.signalWithStart<typeof reversals>('reversals', {
      workflowId: reversalsWorkflowId(temporal, topUp.id),
      ...runsOn(temporal),
      args: [{ topUpId }],
      signal: reversalReported,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `Refunds and disputes of a top-up of ${formatDollars(topUp.amountMicros)}`,
      staticDetails: `Refunds and disputes of top-up \`${topUpId}\` of consumer \`${consumerId}\`.`,
      typedSearchAttributes: [
        keyword('TopUpStatus', topUp.status),
        keyword('ConsumerId', consumerId),
        keyword('WaitingFor', 'processor'),
        double('AmountDollars', dollars),
      ],
    }),
  );
}
