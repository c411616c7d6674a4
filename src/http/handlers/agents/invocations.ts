/** Invocations of agents (legacy, specification section 4.4). */
import { AGENT_PROTOCOLS, callableProtocol } from '../../../domain/agent-protocol.ts';
import { ApiError } from '../../../domain/errors.ts';
import { OPEN_INVOCATIONS_MAX } from '../../../domain/invocation.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import type { InvocationBody, InvocationReply } from '../../../schemas/invocations.ts';
import { findAgent } from '../../../store/agents/agents.ts';
import {
  findInvocationOf,
  type Invocation,
  type NewInvocation,
} from '../../../store/agents/invocations.ts';
import { requestInvocation } from '../../../invocations/request-invocation.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { keyReused, requestHashOf } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import { RETRY_SECONDS } from './grants.ts';

/** A payload may be larger than the bodies of other requests. */
export const INVOCATION_BYTES_MAX = 256 * 1024;
/** The part of the caller's two seconds that the service and the agent may use. */
const ANSWER_TIMEOUT_MS = 1_500;

const CALLABLE = new Intl.ListFormat('en-US').format(AGENT_PROTOCOLS);

/** Answers within two seconds: 200 when the invocation has ended, 202 while it continues. */
export async function postInvocation(
  api: Api,
  { caller, body, idempotencyKey }: Request<InvocationBody>,
): Promise<Reply<InvocationReply, 200 | 202>> {
  const byMs = performance.now() + ANSWER_TIMEOUT_MS;
  const { targetAgentId, grantId, capability, payload } = body;
  const agent = await findAgent(api.invocations.database, targetAgentId);
  if (!agent) throw noSuch('agent', 'targetAgentId');
  const grantRowId = uuidOf('grant', grantId);
  if (grantRowId === undefined) throw noSuch('grant', 'grantId');
  const asked = { targetAgentId, grantId, capability, payload };
  const request: NewInvocation = {
    accountId: caller.accountId,
    grantId: grantRowId,
    targetAgentId,
    capability,
    payloadText: JSON.stringify(payload),
    idempotencyKey,
    requestHash: requestHashOf(asked),
    receiptKey: api.receipts.activeKey,
    isCallable: callableProtocol(agent.protocol) !== undefined,
  };
  const result = await requestInvocation(api.invocations, request, byMs);
  switch (result.kind) {
    case 'no_grant':
      throw noSuch('grant', 'grantId');
    case 'too_many_open':
      throw new ApiError(
        'rate_limited',
        `An account can have at most ${OPEN_INVOCATIONS_MAX} invocations in progress.`,
        { retryAfterSeconds: RETRY_SECONDS },
      );
    case 'grant_not_active':
      throw new ApiError(
        'grant_not_active',
        'The grant is used, revoked, expired or for another agent; nothing was invoked.',
        { param: 'grantId' },
      );
    case 'not_callable':
      throw invalidField(
        'targetAgentId',
        `Agents of "${agent.protocol}" cannot be invoked, only those of ${CALLABLE}; the grant was not used.`,
      );
    case 'key_reused':
      throw keyReused('This Idempotency-Key belongs to an invocation with another request.');
    case 'admitted':
    case 'known':
      return {
        status: result.invocation.endedAt === null ? 202 : 200,
        body: wireInvocation(result.invocation),
        ...(result.kind === 'known' && { headers: REPLAYED }),
      };
  }
}

export async function getInvocation(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<InvocationReply>> {
  return { status: 200, body: wireInvocation(await ownInvocation(api, caller, params)) };
}

/** The invocation in the path, if it belongs to the caller's account; otherwise not found. */
export async function ownInvocation(
  api: Api,
  { accountId }: Request['caller'],
  params: Request['params'],
): Promise<Invocation> {
  const id = idIn('invocation', params);
  const invocation = id && (await findInvocationOf(api.database, accountId, id));
  if (!invocation) throw noSuch('invocation');
  return invocation;
}

function wireInvocation(invocation: Invocation): InvocationReply {
  return {
    id: wireId('invocation', invocation.id),
    status: invocation.status,
    targetAgentId: invocation.targetAgentId,
    grantId: wireId('grant', invocation.grantId),
    capability: invocation.capability,
    attempts: invocation.attempts,
    ...outcomeOf(invocation),
    createdAt: invocation.createdAt,
    completedAt: invocation.endedAt,
  };
}

function outcomeOf({
  status,
  resultText,
  errorCode,
  errorMessage,
}: Invocation): Pick<InvocationReply, 'result' | 'error' | 'lastError'> {
  if (resultText !== null) return { result: JSON.parse(resultText) };
  if (errorCode === null) return {};
  const error = { code: errorCode, message: errorMessage ?? '' };
  return status === 'failed' ? { error } : { lastError: error };
}
