/** Charging, and the developer's list of charges (specification sections 4.3 and 7). */
import {
  prepareCharge,
  resultOf,
  type ChargeResult,
  type PreparedCharge,
} from '../../../charging/charging.ts';
import { saidOf } from '../../../charging/receipts.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { asMicros, dollarsOf } from '../../../domain/money.ts';
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
import type { ChargeDraft, ChargeOutcome } from '../../../store/charges/post-charges.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { developerChargeFilterOf } from '../../filters.ts';
import { listPage } from '../../pagination.ts';
import { REPLAYED } from '../../respond.ts';

/** 201 with the receipt; `Idempotency-Replayed: true` when the key's charge had been made before. */
export async function postCharge(
  api: Api,
  request: Request<ChargeBody>,
): Promise<Reply<ChargeReply, 201>> {
  const { caller, body, idempotencyKey } = request;
  const prepared = prepareCharge(api, { developer: caller, body, idempotencyKey });
  const draft = draftOf(api, prepared instanceof Promise ? await prepared : prepared);
  const made = madeOf(api, draft, await api.batcher.post(draft, request));
  return {
    status: 201,
    ...(made.isReplay ? { headers: REPLAYED } : {}),
    body: made.body,
  };
}

/** Nothing has happened yet. Throws the ApiError that the request deserves when it cannot be made. */
export function draftOf(api: Api, prepared: PreparedCharge): ChargeDraft {
  if (prepared.kind !== 'ready') throw refusalOf(api, prepared);
  return prepared.draft;
}

/** The body of the 201; throws the ApiError of a refusal. */
export function madeOf(
  api: Api,
  draft: ChargeDraft,
  outcome: ChargeOutcome,
): { readonly isReplay: boolean; readonly body: ChargeReply } {
  const result = resultOf(draft, outcome);
  if (result.kind !== 'charged') throw refusalOf(api, result);
  const { charge, balance, isReplay } = result;
  const said = saidOf(charge);
  return {
    isReplay,
    // As `wireCharge` has it, and more; written out, because it is written ten thousand times a second.
    body: {
      id: said.id,
      receipt: api.receipts.signPayload(charge.receiptKey, said),
      tool: said.tool,
      amount: dollarsOf(charge.amountMicros),
      developerId: said.developerId,
      createdAt: said.createdAt,
      consumerId: said.consumerId,
      balance: dollarsOf(balance),
    },
  };
}

type Refusal = Exclude<ChargeResult, { kind: 'charged' }>;

export function refusalOf(api: Api, refusal: Refusal): ApiError {
  switch (refusal.kind) {
    case 'invalid_api_key':
      return new ApiError('invalid_api_key', 'apiKey must be a consumer key that is in force.', {
        param: 'apiKey',
      });
    case 'invalid_amount':
      return new ApiError(
        'invalid_amount',
        'amount must be more than 0 and at most 1,000,000 dollars, with at most six decimals.',
        { param: 'amount' },
      );
    case 'amount_required':
      return new ApiError('invalid_amount', 'The tool has no price, so amount must be given.', {
        param: 'amount',
      });
    case 'unknown_tool':
      return new ApiError(
        'unknown_tool',
        'No such tool is registered: give an amount or register it (POST /v1/tools). ' +
          'At most 1,000 names can be charged without being registered.',
        { param: 'tool' },
      );
    case 'tool_archived':
      return new ApiError(
        'tool_archived',
        'The tool is archived, and its price with it: give an amount, or unarchive it ' +
          '(PATCH /v1/tools/:id).',
        { param: 'tool' },
      );
    case 'idempotency_key_reused':
      return new ApiError(
        'idempotency_key_reused',
        'This Idempotency-Key made a charge with another body; a new charge needs a new key.',
      );
    case 'insufficient_balance': {
      const { balance, required } = refusal;
      return new ApiError(
        'insufficient_balance',
        `The balance of ${dollarsOf(balance)} dollars does not cover ${dollarsOf(required)}; ` +
          'the consumer has to top up.',
        {
          facts: {
            balance: dollarsOf(balance),
            required: dollarsOf(required),
            shortfall: dollarsOf(asMicros(required - balance)),
            topUpUrl: `${api.config.baseUrl}/top-up`,
          },
        },
      );
    }
  }
}

/** The fields that every view of a charge has, its answer among them (specification section 2, Charge). */
export function wireCharge(
  api: Pick<Api, 'receipts'>,
  charge: Omit<StoredCharge, 'metadata' | 'refundedMicros' | 'holdId'>,
): Omit<ListedCharge, 'refunded' | 'holdId'> {
  const said = saidOf(charge);
  return {
    id: said.id,
    receipt: api.receipts.signPayload(charge.receiptKey, said),
    tool: said.tool,
    amount: dollarsOf(asMicros(charge.amountMicros)),
    developerId: said.developerId,
    createdAt: said.createdAt,
  };
}

/** The same, and what became of it. */
export function listedCharge(api: Pick<Api, 'receipts'>, charge: StoredCharge): ListedCharge {
  const { holdId } = charge;
  return {
    ...wireCharge(api, charge),
    refunded: dollarsOf(asMicros(charge.refundedMicros)),
    ...(holdId !== null && { holdId: wireId('hold', holdId) }),
  };
}

export async function listCharges(
  api: Api,
  { caller, query }: Request<undefined, ChargesQuery>,
): Promise<Reply<ChargesReply>> {
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
  if (!found) throw new ApiError('not_found', 'There is no such charge.');
  return { status: 200, body: developerView(api, found) };
}

function developerView(api: Api, charge: StoredCharge): DeveloperChargeReply {
  return {
    ...listedCharge(api, charge),
    consumerId: wireId('consumer', charge.consumerId),
    metadata: charge.metadata,
  };
}
