/** The receipt of an invocation (legacy, specification section 4.4), available once the invocation has ended. */
import { signInvocation, type InvocationSubject } from '../../../charging/invocation-receipts.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import type { InvocationReceiptReply } from '../../../schemas/invocations.ts';
import { findAccount } from '../../../store/accounts/accounts.ts';
import type { Invocation } from '../../../store/agents/invocations.ts';
import { findGrant } from '../../../store/agents/grants.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { ownInvocation } from './invocations.ts';

export async function getInvocationReceipt(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<InvocationReceiptReply>> {
  const invocation = await ownInvocation(api, caller, params);
  if (invocation.endedAt === null) {
    throw new ApiError(
      'not_found',
      'The invocation is still running; its receipt is available once it ends.',
    );
  }
  const { receipt, said } = await signedInvocationOf(api, invocation);
  const { id: invocationId, ...rest } = said;
  return { status: 200, body: { invocationId, receipt, ...rest } };
}

/** The receipt of an ended invocation, with its payload. */
export async function signedInvocationOf(
  api: Api,
  invocation: Invocation,
): Promise<{ readonly receipt: string; readonly said: InvocationSubject }> {
  const { status, endedAt } = invocation;
  if (endedAt === null || (status !== 'succeeded' && status !== 'failed')) {
    throw new Error('an invocation in progress has no receipt');
  }
  const grant = await findGrant(api.database, invocation.grantId);
  const account = await findAccount(api.database, { uuid: invocation.accountId });
  const said: InvocationSubject = {
    id: wireId('invocation', invocation.id),
    developerId: account ? wireId('developer', account.developerId) : '',
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
  return { receipt: signInvocation(api.receipts, invocation.receiptKey, said), said };
}
