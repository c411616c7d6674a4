/** Starts the workflow of an approval and sends it messages. */
import { wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollars } from '../domain/money.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import type { Approval } from '../store/approvals/approval.ts';
import type { approval as approvalWorkflow } from '../../workflows/approval.ts';
import { approvalDecided } from '../../workflows/messages.ts';
import type { Deployed, TemporalClient } from './client.ts';
import { double, idPoliciesOf, keyword, runsOn, unlessEnded } from './starts.ts';

export function approvalWorkflowId(temporal: Deployed, approvalId: string): string {
  return workflowIdIn(temporal, 'approval', wireId('approval', approvalId));
}

/** Starts the workflow of an approval, or signals it to read its row. A workflow that has completed needs no signal. */
export async function reportApproval(temporal: TemporalClient, approval: Approval): Promise<void> {
  const policies = idPoliciesOf(approval.status === 'pending' ? 'open' : 'ended');
  const options = { ...startOptions(temporal, approval), ...policies };
  await unlessEnded(temporal, async (workflow) => {
    if (approval.status === 'pending') {
      await workflow.start<typeof approvalWorkflow>('approval', options);
    } else {
      const signal = approvalDecided;
      await workflow.signalWithStart<typeof approvalWorkflow>('approval', { ...options, signal });
    }
  });
}

/** Without the reason and the name of the tool, which others wrote. */
function startOptions(temporal: TemporalClient, approval: Approval) {
  const approvalId = wireId('approval', approval.id);
  const developerId = wireId('developer', approval.developerId);
  const dollars = dollarsOf(approval.amountMicros);
  return {
    workflowId: approvalWorkflowId(temporal, approval.id),
    ...runsOn(temporal),
    args: [{ approvalId }] as [{ approvalId: string }],
    staticSummary: `Approval of ${formatDollars(approval.amountMicros)}, ${approval.code}`,
    staticDetails: `Approval \`${approvalId}\` of a call by \`${developerId}\`. Expires at ${approval.expiresAt}.`,
    typedSearchAttributes: [
      keyword('ApprovalStatus', approval.status),
      keyword('ConsumerId', wireId('consumer', approval.consumerId)),
      keyword('DeveloperId', developerId),
      keyword('WaitingFor', 'owner'),
      double('AmountDollars', dollars),
    ],
  };
}
