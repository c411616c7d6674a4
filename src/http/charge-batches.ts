/** Many charges in one request: each decided, answered and refused by itself, as if sent alone. */
import { ApiError } from '../domain/errors.ts';
import { BatchedCharge, type ChargeBatchBody } from '../schemas/charges.ts';
import type { KeyOwner } from '../store/api-keys.ts';
import type { ChargeDraft } from '../store/charges.ts';
import { apiErrorOf, errorBody } from './answer-errors.ts';
import type { Api } from './api.ts';
import { draftOf, makeCharge } from './charges.ts';
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
  const { caller, isAbandoned } = request;
  const asErrors = (error: unknown) => errorResult(api, request, error);
  const drafts = await Promise.all(
    request.body.charges.map((member) => draftOfMember(api, caller, member).catch(asErrors)),
  );
  // All drafts first, so that the charges are posted in the order in which they were sent.
  const results = await Promise.all(
    drafts.map(async (draft) =>
      'status' in draft ? draft : made(api, draft, isAbandoned).catch(asErrors),
    ),
  );
  return { status: 200, body: { results } };
}

async function made(
  api: Api,
  draft: ChargeDraft,
  isAbandoned: () => boolean,
): Promise<{ status: number }> {
  const { isReplay, body } = await makeCharge(api, draft, isAbandoned);
  return { status: 201, ...(isReplay ? { replayed: true } : {}), ...body };
}

async function draftOfMember(api: Api, developer: KeyOwner, member: unknown): Promise<ChargeDraft> {
  const body = validate(member);
  const { idempotencyKey } = body;
  return draftOf(api, {
    developer,
    body,
    idempotencyKey: idempotencyKey === undefined ? undefined : checkedKey(idempotencyKey),
  });
}

function errorResult(
  api: Api,
  { requestId }: Request<ChargeBatchBody>,
  error: unknown,
): { status: number } {
  const known = apiErrorOf(error);
  if (known.status === 500) api.log.error({ err: error, requestId }, `a charge: ${known.code}`);
  const docsUrl = `${api.config.baseUrl}/docs/errors`;
  return { status: known.status, ...errorBody(known, docsUrl, requestId) };
}
