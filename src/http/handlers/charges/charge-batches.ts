/** Many charges in one request: each decided, answered and refused by itself, as if sent alone. */
import { prepareCharge } from '../../../charging/charging.ts';
import { ApiError } from '../../../domain/errors.ts';
import {
  BatchedCharge,
  type BatchMember,
  type ChargeBatchEnvelope,
  type ChargeBatchReply,
} from '../../../schemas/charges.ts';
import type { ChargeDraft } from '../../../store/charges/post-charges.ts';
import { apiErrorOf, errorBody } from '../../answer-errors.ts';
import type { Api } from '../../services.ts';
import { draftOf, madeOf } from './charges.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { checkedKey } from '../../idempotency-key.ts';
import { bodyValidator } from '../../validation.ts';

/** A thousand charges with the largest metadata that is usual; the largest possible have to be split. */
export const BATCH_BYTES_MAX = 1024 * 1024;

const validate = bodyValidator(BatchedCharge);

/** 200 whatever the members' outcomes are; each has the status that it would have had alone. */
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
  // All drafts first, so that the charges are posted in the order in which they were sent.
  const drafts = await Promise.all(
    request.body.charges.map((member) => draftOfMember(api, request, member)),
  );
  const results = await Promise.all(drafts.map((draft) => postMember(api, request, draft)));
  return { status: 200, body: { results } };
}

async function draftOfMember(
  api: Api,
  request: Request<ChargeBatchEnvelope>,
  member: unknown,
): Promise<ChargeDraft | BatchMember> {
  try {
    const body = validate(member);
    const { idempotencyKey } = body;
    const prepared = prepareCharge(api, {
      developer: request.caller,
      body,
      idempotencyKey: idempotencyKey === undefined ? undefined : checkedKey(idempotencyKey),
    });
    return draftOf(api, prepared instanceof Promise ? await prepared : prepared);
  } catch (error) {
    return errorResult(api, request, error);
  }
}

async function postMember(
  api: Api,
  request: Request<ChargeBatchEnvelope>,
  draft: ChargeDraft | BatchMember,
): Promise<BatchMember> {
  if ('status' in draft) return draft;
  try {
    const outcome = await api.batcher.post(draft, request);
    const { isReplay, body } = madeOf(api, draft, outcome);
    return isReplay ? { status: 201, replayed: true, ...body } : { status: 201, ...body };
  } catch (error) {
    return errorResult(api, request, error);
  }
}

function errorResult(
  api: Api,
  { requestId }: Request<ChargeBatchEnvelope>,
  error: unknown,
): BatchMember {
  const known = apiErrorOf(error);
  if (known.status === 500) api.log.error({ err: error, requestId }, `a charge: ${known.code}`);
  const docsUrl = `${api.config.baseUrl}/docs/errors`;
  return { status: known.status, ...errorBody(known, docsUrl, requestId) };
}
