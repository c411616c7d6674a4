/** Starts the workflow of a grant and sends it messages. */
import { wireId } from '../domain/ids.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import type { Grant } from '../store/agents/grants.ts';
import type { grant as grantWorkflow } from '../../workflows/grant.ts';
import { grantRevoked, grantUsed } from '../../workflows/messages.ts';
import type { Deployed, TemporalClient } from './client.ts';
import { idPoliciesOf, keyword, runsOn, unlessEnded } from './starts.ts';

export function grantWorkflowId(temporal: Deployed, grantId: string): string {
  return workflowIdIn(temporal, 'grant', wireId('grant', grantId));
}

/** Starts the workflow of a grant, or signals it to read its row. A workflow that has completed needs no signal. */
export async function reportGrant(temporal: TemporalClient, grant: Grant): Promise<void> {
  const policies = idPoliciesOf(grant.status === 'active' ? 'open' : 'ended');
  const options = { ...startOptions(temporal, grant), ...policies };
  const signal = SIGNAL_OF[grant.status];
  await unlessEnded(temporal, async (workflow) => {
    if (!signal) await workflow.start<typeof grantWorkflow>('grant', options);
    else await workflow.signalWithStart<typeof grantWorkflow>('grant', { ...options, signal });
  });
}

const SIGNAL_OF = { used: grantUsed, revoked: grantRevoked, active: undefined, expired: undefined };

function startOptions(temporal: TemporalClient, grant: Grant) {
  const grantId = wireId('grant', grant.id);
  const accountId = wireId('account', grant.accountId);
  return {
    workflowId: grantWorkflowId(temporal, grant.id),
    ...runsOn(temporal),
    args: [{ grantId }] as [{ grantId: string }],
    staticSummary: `Grant, ${grant.type}, for ${grant.targetAgentId}`,
    staticDetails:
      `Grant \`${grantId}\` for the agent \`${grant.targetAgentId}\`, of type \`${grant.type}\`, ` +
      `created by account \`${accountId}\`. Expires at ${grant.expiresAt}.`,
    typedSearchAttributes: [
      keyword('GrantStatus', grant.status),
      keyword('AgentId', grant.targetAgentId),
      keyword('AccountId', accountId),
    ],
  };
}
