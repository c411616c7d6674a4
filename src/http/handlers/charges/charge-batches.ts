/**
 * Many charges, holds, captures and releases in one request. Each is decided and answered on its own, as if
 * sent alone.
 */
import { chargeAll } from '../../../charging/charge.ts';
import type { ChargeRequest } from '../../../charging/draft-charge.ts';
import { mapInSlices, valueOf } from '../../../charging/map-in-slices.ts';
import { ApiError } from '../../../domain/errors.ts';
import type {
  BatchMember,
  ChargeBatchEnvelope,
  ChargeBatchReply,
} from '../../../schemas/charge-batches.ts';
import { apiErrorOf, errorBody } from '../../answer-errors.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { chargedMember, parseMember, type AskedMember } from './batch-members.ts';
import { doAll } from './mixed-batches.ts';

/** Enough for a thousand charges with large metadata. Batches with the largest possible metadata have to be split. */
export const BATCH_BYTES_MAX = 1024 * 1024;

const BATCHES = { method: 'POST', route: '/v1/charges/batch' } as const;

/** Always 200; each member's result has the status that it would have had alone. */
export async function postChargeBatch(
  api: Api,
  request: Request<ChargeBatchEnvelope>,
): Promise<Reply<ChargeBatchReply>> {
  if (request.idempotencyKey !== undefined) {
    throw new ApiError(
      'invalid_idempotency_key',
      'A batch takes no Idempotency-Key: give each operation an idempotencyKey.',
    );
  }
  const members = await mapInSlices(request.body.charges, (member) =>
    parseMember(request.caller, member),
  );
  const wellFormed = members.filter((each): each is AskedMember => !(each instanceof ApiError));
  const resultOf = await results(api, request, wellFormed);
  let unavailable = 0;
  const answers = await mapInSlices(members, (member, index): BatchMember => {
    try {
      if (member instanceof ApiError) throw member;
      return resultOf(member);
    } catch (error) {
      const known = apiErrorOf(error);
      if (known.status === 503 && known.details.isOnDemand !== true) unavailable += 1;
      return errorResult(api, request, request.body.charges[index], known);
    }
  });
  if (unavailable > 0) {
    const { requestId } = request;
    api.log.warn({ requestId, members: unavailable }, 'members of a batch: service_unavailable');
  }
  return { status: 200, body: { results: answers } };
}

/** Throws the ApiError of a refusal. */
type ResultOf = (member: AskedMember) => BatchMember;

async function results(
  api: Api,
  request: Request<ChargeBatchEnvelope>,
  members: readonly AskedMember[],
): Promise<ResultOf> {
  const charges = members.filter((member) => member.op === 'charge');
  if (charges.length < members.length) {
    const settled = byMember(members, await doAll(api, request, members));
    return (member) => valueOf(settled.get(member));
  }
  const requests: readonly ChargeRequest[] = charges.map((member) => member.request);
  const settled = byMember(members, await chargeAll(api, requests, request));
  return (member) => chargedMember(api, valueOf(settled.get(member)));
}

function byMember<R>(
  members: readonly AskedMember[],
  results: readonly R[],
): ReadonlyMap<AskedMember, R | undefined> {
  return new Map(members.map((member, index) => [member, results[index]]));
}

/** An error with the status that the member would have had alone. */
function errorResult(
  api: Api,
  { caller, requestId }: Request<ChargeBatchEnvelope>,
  member: unknown,
  known: ApiError,
): BatchMember {
  api.responses.failedMember(caller, requestId, member, known, BATCHES);
  if (known.status === 500 && known.details.isOnDemand !== true) {
    api.log.error({ err: known.cause ?? known, requestId }, `a member of a batch: ${known.code}`);
  }
  return { status: known.status, ...errorBody(known, api.config.baseUrl, requestId) };
}
