/** Starts the workflow of an invocation and sends it messages. */
import { wireId } from '../domain/ids.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import type { Invocation } from '../store/agents/invocations.ts';
import type { invocation as invocationWorkflow } from '../../workflows/invocation.ts';
import { invocationOutcome } from '../../workflows/messages.ts';
import type { Deployed, TemporalClient } from './client.ts';
import { idPoliciesOf, keyword, onceARun, runsOn, inTime } from './starts.ts';

export function invocationWorkflowId(temporal: Deployed, invocationId: string): string {
  return workflowIdIn(temporal, 'invocation', wireId('invocation', invocationId));
}

/**
 * Starts the workflow of an invocation that has not ended. Resolves when Temporal has accepted it; it then
 * calls the agent.
 */
export async function startInvocation(
  temporal: TemporalClient,
  invocation: Invocation,
  { timeoutMs }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  const options = { ...startOptions(temporal, invocation), ...idPoliciesOf('open') };
  await inTime(
    temporal,
    (workflow) => workflow.start<typeof invocationWorkflow>('invocation', options),
    timeoutMs,
  );
}

/**
 * Resolves when the invocation has ended, or will not end soon; also at the timeout, and when Temporal cannot
 * be asked. The row of the invocation says what happened.
 */
export async function awaitInvocation(
  temporal: TemporalClient,
  invocationId: string,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<void> {
  const id = invocationWorkflowId(temporal, invocationId);
  await inTime(
    temporal,
    (workflow) =>
      workflow.getHandle(id).executeUpdate(invocationOutcome, onceARun(invocationOutcome)),
    timeoutMs,
  ).catch(() => {});
}

function startOptions(temporal: TemporalClient, invocation: Invocation) {
  const invocationId = wireId('invocation', invocation.id);
  const accountId = wireId('account', invocation.accountId);
  const { targetAgentId } = invocation;
  return {
    workflowId: invocationWorkflowId(temporal, invocation.id),
    ...runsOn(temporal),
    args: [{ invocationId }] as [{ invocationId: string }],
    staticSummary: `Invocation of ${targetAgentId}`,
    staticDetails:
      `Invocation \`${invocationId}\` of the agent \`${targetAgentId}\` by account ` +
      `\`${accountId}\`, with grant \`${wireId('grant', invocation.grantId)}\`.`,
    typedSearchAttributes: [
      keyword('InvocationStatus', invocation.status),
      keyword('AgentId', targetAgentId),
      keyword('AccountId', accountId),
      keyword('WaitingFor', 'database'),
    ],
  };
}
