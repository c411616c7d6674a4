/** Charging, and the developer's list of charges (specification sections 4.3 and 7). */
import { charge, type ChargeResult } from '../../../charging/charge.ts';
import { receiptPayload } from '../../../charging/receipts.ts';
import { wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type {
  ChargeBody,
  ChargeReply,
  ChargesQuery,
  ChargesReply,
  DeveloperChargeReply,
  ListedCharge,
} from '../../../schemas/charges.ts';
import {
  findDeveloperCharge,
  listDeveloperCharges,
  type StoredCharge,
} from '../../../store/charges/list-charges.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request, ScanApi } from '../../endpoint.ts';
import { developerChargeFilterOf, timeRangeOf } from '../../filters.ts';
import { idIn } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import { refuseArchivedRange, refuseUnknownCharge } from '../../refuse-archived.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import { errorOnDemand, insufficientBalance, refusalError } from './charge-errors.ts';

/** 201 with the receipt; `Idempotency-Replayed: true` when this key has already made the charge. */
export async function postCharge(
  api: Api,
  request: Request<ChargeBody>,
): Promise<Reply<ChargeReply, 201>> {
  const { caller, body, idempotencyKey } = request;
  const result = await charge(api, { developer: caller, body, idempotencyKey }, request);
  const made = chargeReply(api, result);
  return {
    status: 201,
    ...(made.isReplay ? { headers: REPLAYED } : {}),
    body: made.body,
  };
}

const OTHER_CHARGE =
  'This Idempotency-Key was used for a charge with another body; a new charge needs a new key.';

/** The body of the 201; throws the ApiError of a refusal. */
export function chargeReply(
  api: Api,
  result: ChargeResult,
): { readonly isReplay: boolean; readonly body: ChargeReply } {
  if (result.kind === 'on_demand') throw errorOnDemand(api, result);
  if (result.kind !== 'decided') throw refusalError(api, result);
  const { draft, outcome } = result;
  if (outcome.kind === 'insufficient') {
    throw insufficientBalance(api, draft, outcome.balanceMicros);
  }
  if (outcome.kind === 'key_reused') throw keyReused(OTHER_CHARGE);
  if (outcome.kind === 'key_closed') throw refusalError(api, { kind: 'invalid_api_key' });
  if (outcome.kind === 'limit_reached' || outcome.kind === 'approval_required') {
    throw refusalError(api, { ...outcome, call: draft });
  }
  const payload = receiptPayload({
    id: outcome.id,
    consumerId: draft.consumerId,
    developerId: draft.developerId,
    tool: draft.tool,
    amountMicros: outcome.amountMicros,
    cardVersion: outcome.cardVersion,
    receiptKey: outcome.receiptKey,
    isTest: isTest(draft),
  });
  return {
    isReplay: outcome.kind === 'replayed',
    // The members of `wireCharge` and two more, written out because this code runs ten thousand times a second.
    body: {
      id: payload.id,
      receipt: api.receipts.signPayload(outcome.receiptKey, payload),
      tool: payload.tool,
      amount: dollarsOf(outcome.amountMicros),
      developerId: payload.developerId,
      createdAt: payload.createdAt,
      ...(outcome.cardVersion > 0 && { cardVersion: outcome.cardVersion }),
      consumerId: payload.consumerId,
      balance: dollarsOf(outcome.balanceMicros),
    },
  };
}

/**
 * The fields of a charge that every view has, including the reply to the charge itself (specification section 2,
 * Charge).
 */
export function wireCharge(
  api: Pick<Api, 'receipts'>,
  stored: Omit<StoredCharge, 'metadata' | 'refundedMicros' | 'holdId' | 'isLeased'>,
): Omit<ListedCharge, 'refunded' | 'holdId' | 'leaseId'> {
  const payload = receiptPayload(stored);
  return {
    id: payload.id,
    receipt: api.receipts.signPayload(stored.receiptKey, payload),
    tool: payload.tool,
    amount: dollarsOf(stored.amountMicros),
    developerId: payload.developerId,
    createdAt: payload.createdAt,
    ...(stored.cardVersion > 0 && { cardVersion: stored.cardVersion }),
  };
}

/** The same, with what happened to the charge later. */
export function listedCharge(api: Pick<Api, 'receipts'>, stored: StoredCharge): ListedCharge {
  const { holdId, isLeased } = stored;
  return {
    ...wireCharge(api, stored),
    refunded: dollarsOf(stored.refundedMicros),
    ...(holdId !== null &&
      (isLeased ? { leaseId: wireId('lease', holdId) } : { holdId: wireId('hold', holdId) })),
  };
}

export async function listCharges(
  api: ScanApi,
  { caller, query }: Request<undefined, ChargesQuery>,
): Promise<Reply<ChargesReply>> {
  await refuseArchivedRange(api, timeRangeOf(query));
  const filter = developerChargeFilterOf(query);
  const { rows, hasMore, nextCursor } = await listPage(query, 'charge', (page) =>
    listDeveloperCharges(api.database, caller, filter, page),
  );
  const charges = rows.map((found) => developerView(api, found));
  return { status: 200, body: { charges, hasMore, nextCursor } };
}

export async function getCharge(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<DeveloperChargeReply>> {
  const id = idIn('charge', params);
  const found = id && (await findDeveloperCharge(api.database, caller, id));
  if (!found) return refuseUnknownCharge(api, id);
  return { status: 200, body: developerView(api, found) };
}

function developerView(api: Pick<Api, 'receipts'>, stored: StoredCharge): DeveloperChargeReply {
  return {
    ...listedCharge(api, stored),
    consumerId: wireId('consumer', stored.consumerId),
    metadata: stored.metadata,
  };
}
