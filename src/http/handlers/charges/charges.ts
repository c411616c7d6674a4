/** Charging, and the developer's list of charges (specification sections 4.3 and 7). */
import {
  charge,
  type ChargeRefusal,
  type ChargeResult,
  type DecidedCharge,
  type OnDemand,
} from '../../../charging/charge.ts';
import { receiptPayload } from '../../../charging/receipts.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { asMicros, dollarsOf, formatDollars, type Micros } from '../../../domain/money.ts';
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
import { CHARGEABLE, invalidAmount } from '../../amounts.ts';
import { budgetError } from '../budgets/budget-errors.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request, ScanApi } from '../../endpoint.ts';
import { developerChargeFilterOf, timeRangeOf } from '../../filters.ts';
import { listPage } from '../../pagination.ts';
import { refuseArchivedCharge, refuseArchivedRange } from '../../refuse-archived.ts';
import { REPLAYED } from '../../respond.ts';

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
  if (outcome.kind === 'key_reused') throw refusalError(api, { kind: 'idempotency_key_reused' });
  if (outcome.kind === 'key_closed') throw refusalError(api, { kind: 'invalid_api_key' });
  if (outcome.kind === 'limit_reached' || outcome.kind === 'approval_required') {
    throw refusalError(api, outcome);
  }
  const payload = receiptPayload({
    id: outcome.id,
    consumerId: draft.consumerId,
    developerId: draft.developerId,
    tool: draft.tool,
    amountMicros: outcome.amountMicros,
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
      consumerId: payload.consumerId,
      balance: dollarsOf(outcome.balanceMicros),
    },
  };
}

export function refusalError(
  { config }: Pick<Api, 'config'>,
  refusal: Exclude<ChargeRefusal, OnDemand> | { readonly kind: 'idempotency_key_reused' },
): ApiError {
  switch (refusal.kind) {
    case 'invalid_api_key':
      return new ApiError('invalid_api_key', 'apiKey must be an active consumer key.', {
        param: 'apiKey',
      });
    case 'account_keys_closed':
      return new ApiError(
        'account_keys_closed',
        'The consumer closed the keys of its account for charging. Ask for a spend key.',
        { param: 'apiKey' },
      );
    case 'mode_mismatch':
      return new ApiError(
        'mode_mismatch',
        'apiKey and the secret key are of different modes: one is a test key, the other a live key.',
        { param: 'apiKey' },
      );
    case 'invalid_amount':
      return invalidAmount('amount', refusal.sent, CHARGEABLE.says);
    case 'amount_required':
      return new ApiError('invalid_amount', 'The tool has no price, so amount is required.', {
        param: 'amount',
      });
    case 'unknown_tool':
      return new ApiError(
        'unknown_tool',
        'The tool is not registered: pass an amount or register it (POST /v1/tools). ' +
          'At most 1,000 unregistered names can be charged.',
        { param: 'tool' },
      );
    case 'tool_archived':
      return new ApiError(
        'tool_archived',
        'The tool is archived, so its price no longer applies: pass an amount, or unarchive it ' +
          '(PATCH /v1/tools/:id).',
        { param: 'tool' },
      );
    case 'limit_reached':
    case 'tool_not_allowed':
    case 'developer_not_allowed':
    case 'lease_not_allowed':
    case 'approval_required':
      return budgetError(refusal, config.consoleUrl);
    case 'idempotency_key_reused':
      return new ApiError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for a charge with another body; a new charge needs a new key.',
      );
  }
}

/** What the amount of a test charge asks for: the error that the real cause would give. */
export function errorOnDemand(
  api: Pick<Api, 'topUpLinks' | 'config'>,
  onDemand: OnDemand,
): ApiError {
  const { code, amountMicros } = onDemand;
  switch (code) {
    case 'invalid_api_key':
      return refusalError(api, { kind: code });
    case 'insufficient_balance':
      return insufficientBalance(api, onDemand, asMicros(0));
    case 'spend_limit_reached':
      return refusalError(api, {
        kind: 'limit_reached',
        budgetId: NO_BUDGET,
        scope: 'total',
        limitMicros: amountMicros,
        remainingMicros: asMicros(0),
        resetsAt: null,
      });
    case 'rate_limited':
      return new ApiError(code, 'Too many requests; try again shortly.', { retryAfterSeconds: 1 });
    case 'service_unavailable':
      return new ApiError(code, 'Nothing was charged; try again shortly.', {
        retryAfterSeconds: 1,
      });
  }
}

/** The key may have no budget. */
const NO_BUDGET = '00000000-0000-0000-0000-000000000000';

/** For a charge or hold: a 402 with a link to pay the shortfall. */
export function insufficientBalance(
  api: Pick<Api, 'topUpLinks'>,
  { consumerId, developerId, amountMicros: required }: DecidedDraft,
  balance: Micros,
): ApiError {
  const shortfall = asMicros(required - balance);
  return new ApiError(
    'insufficient_balance',
    `The balance of ${formatDollars(balance)} does not cover ${formatDollars(required)}; ` +
      'the consumer has to top up.',
    {
      facts: {
        balance: dollarsOf(balance),
        required: dollarsOf(required),
        shortfall: dollarsOf(shortfall),
        topUpUrl: api.topUpLinks.urlFor(consumerId, developerId, shortfall),
      },
    },
  );
}

type DecidedDraft = Pick<DecidedCharge['draft'], 'consumerId' | 'developerId' | 'amountMicros'>;

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
  const id = uuidOf('charge', params['id'] ?? '');
  const found = id && (await findDeveloperCharge(api.database, caller, id));
  if (!found) {
    if (id) await refuseArchivedCharge(api, id);
    throw new ApiError('not_found', 'There is no such charge.');
  }
  return { status: 200, body: developerView(api, found) };
}

function developerView(api: Pick<Api, 'receipts'>, stored: StoredCharge): DeveloperChargeReply {
  return {
    ...listedCharge(api, stored),
    consumerId: wireId('consumer', stored.consumerId),
    metadata: stored.metadata,
  };
}
