/** Many charges in one request: each decided, answered and refused by itself, as if sent alone. */
import { ApiError } from '../domain/errors.ts';
import { BatchedCharge, type ChargeBatchBody } from '../schemas/charges.ts';
import { apiErrorOf, errorBody } from './answer-errors.ts';
import type { Api } from './api.ts';
import { makeCharge } from './charges.ts';
import type { Answer, Request } from './endpoint.ts';
import { checkedKey } from './idempotency-key.ts';
import { bodyValidator } from './validation.ts';

/** A thousand charges with the largest metadata that is usual; the largest possible have to be split. */
export const BATCH_BYTES_MAX = 1024 * 1024;

const validate = bodyValidator(BatchedCharge);

/** 200 whatever the members' outcomes are; each has the status that it would have had alone. */
export async function postChargeBatch(
  api: Api,
  request: Request<ChargeBatchBody>,
): Promise<Answer> {
  if (request.idempotencyKey !== undefined) {
    throw new ApiError(
      'invalid_idempotency_key',
      'A batch has no key of its own: give each charge an idempotencyKey.',
    );
  }
  const results = await Promise.all(
    request.body.charges.map((member) => resultOf(api, request, member)),
  );
  return { status: 200, body: { results } };
}

async function resultOf(
  api: Api,
  request: Request<ChargeBatchBody>,
  member: unknown,
): Promise<object> {
  try {
    const body = validate(member);
    const { idempotencyKey } = body;
    const { isReplay, body: made } = await makeCharge(api, {
      caller: request.caller,
      body,
      idempotencyKey: idempotencyKey === undefined ? undefined : checkedKey(idempotencyKey),
      isAbandoned: request.isAbandoned,
    });
    return { status: 201, ...(isReplay ? { replayed: true } : {}), ...made };
  } catch (error) {
    const known = apiErrorOf(error);
    if (known.code === 'internal_error') {
      api.log.error({ err: error, requestId: request.requestId }, 'a charge of a batch failed');
    }
    const docsUrl = `${api.config.baseUrl}/docs/errors`;
    return { status: known.status, ...errorBody(known, docsUrl, request.requestId) };
  }
}
