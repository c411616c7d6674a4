/** Many charges in one request. Each is decided and answered on its own, as if sent alone. */
import { chargeAll, type ChargeRequest } from '../../../charging/charge.ts';
import { ApiError } from '../../../domain/errors.ts';
import {
  BatchedCharge,
  type BatchMember,
  type ChargeBatchEnvelope,
  type ChargeBatchReply,
} from '../../../schemas/charges.ts';
import { apiErrorOf, errorBody } from '../../answer-errors.ts';
import type { Api } from '../../services.ts';
import { chargeReply } from './charges.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { checkedKey } from '../../idempotency-key-header.ts';
import { bodyValidator } from '../../validation.ts';

/** Enough for a thousand charges with large metadata. Batches with the largest possible metadata have to be split. */
export const BATCH_BYTES_MAX = 1024 * 1024;

const validate = bodyValidator(BatchedCharge);

/** Always 200; each member's result has the status that it would have had alone. */
export async function postChargeBatch(
  api: Api,
  request: Request<ChargeBatchEnvelope>,
): Promise<Reply<ChargeBatchReply>> {
  if (request.idempotencyKey !== undefined) {
    throw new ApiError(
      'invalid_idempotency_key',
      'A batch has no key of its own: give each charge an idempotencyKey.',
    );
  }
  const members = request.body.charges.map((member) => parseMember(request.caller, member));
  const wellFormed = members.filter((each): each is ChargeRequest => !(each instanceof ApiError));
  const settled = (await chargeAll(api, wellFormed, request)).values();
  const results = members.map((member, index): BatchMember => {
    const outcome = member instanceof ApiError ? undefined : settled.next().value;
    try {
      if (member instanceof ApiError) throw member;
      if (outcome?.status !== 'fulfilled') throw outcome?.reason;
      const { isReplay, body } = chargeReply(api, outcome.value);
      return isReplay ? { status: 201, replayed: true, ...body } : { status: 201, ...body };
    } catch (error) {
      return errorResult(api, request, request.body.charges[index], error);
    }
  });
  return { status: 200, body: { results } };
}

/** A malformed member fails on its own. */
function parseMember(
  developer: ChargeRequest['developer'],
  member: unknown,
): ChargeRequest | ApiError {
  try {
    const body = validate(member);
    const { idempotencyKey: key } = body;
    return { developer, body, idempotencyKey: key === undefined ? undefined : checkedKey(key) };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** An error with the status that the charge would have had alone. */
function errorResult(
  api: Api,
  { caller, requestId }: Request<ChargeBatchEnvelope>,
  member: unknown,
  error: unknown,
): BatchMember {
  const known = apiErrorOf(error);
  api.traffic.failedMember(caller, requestId, member, known);
  if (known.status === 500) api.log.error({ err: error, requestId }, `a charge: ${known.code}`);
  const docsUrl = `${api.config.baseUrl}/docs/errors`;
  return { status: known.status, ...errorBody(known, docsUrl, requestId) };
}
