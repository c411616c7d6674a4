/** The receipt of an invocation (legacy, specification section 4.4): signed when it has ended, not before. */
import { signInvocation, type InvocationSubject } from '../../../charging/invocation-receipts.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import type { InvocationReceiptReply } from '../../../schemas/invocations.ts';
import { findGrant } from '../../../store/agents/grants.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { ownInvocation } from './invocations.ts';

export async function getInvocationReceipt(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<InvocationReceiptReply>> {
  const invocation = await ownInvocation(api, caller, params);
  const { status, endedAt } = invocation;
  if (endedAt === null || (status !== 'succeeded' && status !== 'failed')) {
    throw new ApiError('not_found', 'The invocation goes on; it has a receipt when it has ended.');
  }
  const grant = await findGrant(api.database, invocation.grantId);
  const id = wireId('invocation', invocation.id);
  const said: Omit<InvocationSubject, 'id'> = {
    developerId: wireId('developer', caller.developerId),
    callerId: grant?.callerId ?? '',
    targetAgentId: invocation.targetAgentId,
    grantId: wireId('grant', invocation.grantId),
    capability: invocation.capability,
    status,
    requestSha256: invocation.requestHash,
    resultSha256: invocation.resultHash,
    createdAt: invocation.createdAt,
    completedAt: endedAt,
  };
  const receipt = signInvocation(api.receipts, invocation.receiptKey, { id, ...said });
  return { status: 200, body: { invocationId: id, receipt, ...said } };
}
