/** Holds: reserve money for a call, then capture what it cost or release it. */
import { prepareCharge } from '../../../charging/charging.ts';
import {
  captureEntry,
  extendEntry,
  placeEntry,
  releaseEntry,
  type HoldRequest,
} from '../../../charging/hold-entries.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import {
  CHARGE_MICROS_MAX,
  dollarsOf,
  microsOfDollars,
  type Micros,
} from '../../../domain/money.ts';
import type {
  CaptureBody,
  CaptureReply,
  ExtendBody,
  HoldBody,
  HoldReply,
  PlacedHoldReply,
} from '../../../schemas/holds.ts';
import type { Hold } from '../../../store/holds/hold.ts';
import type { HoldEntry, HoldOutcome } from '../../../store/holds/post-hold-entries.ts';
import { draftOf, refusalOf, wireCharge } from '../charges/charges.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { REPLAYED } from '../../respond.ts';

type Decided = Extract<HoldOutcome, { kind: 'done' | 'replayed' }>;

/** 201; `Idempotency-Replayed: true` when the key's hold had been placed before. */
export async function postHold(
  api: Api,
  request: Request<HoldBody>,
): Promise<Reply<PlacedHoldReply, 201>> {
  const { caller, body, idempotencyKey } = request;
  const prepared = await prepareCharge(api, { developer: caller, body, idempotencyKey });
  const decided = await decide(api, placeEntry(draftOf(api, prepared), body));
  const balance = dollarsOf(decided.balanceMicros);
  return replyOf(201, decided, { ...wireHold(decided.hold, caller.developerId), balance });
}

/** 201 with the charge and the hold. */
export async function postCapture(
  api: Api,
  request: Request<CaptureBody>,
): Promise<Reply<CaptureReply, 201>> {
  const { caller, body } = request;
  const { amount } = body;
  const micros = amount === undefined ? null : amountOf(amount);
  const decided = await decide(api, captureEntry(requestOf(request), body, micros));
  const { hold, chargeId: id, receiptKey, amountMicros, balanceMicros } = decided;
  const { developerId } = caller;
  const { consumerId, tool } = hold;
  const charge = { id, consumerId, developerId, tool, amountMicros, receiptKey };
  return replyOf(201, decided, {
    ...wireCharge(api, charge),
    consumerId: wireId('consumer', consumerId),
    balance: dollarsOf(balanceMicros),
    holdId: wireId('hold', hold.id),
    hold: wireHold(hold, developerId),
  });
}

/** 200 with the hold; the same when it was released before. */
export async function postRelease(api: Api, request: Request): Promise<Reply<HoldReply>> {
  const decided = await decide(api, releaseEntry(requestOf(request)));
  return replyOf(200, decided, wireHold(decided.hold, request.caller.developerId));
}

/** 200 with the hold. */
export async function postExtension(
  api: Api,
  request: Request<ExtendBody>,
): Promise<Reply<HoldReply>> {
  const decided = await decide(api, extendEntry(requestOf(request), request.body));
  return replyOf(200, decided, wireHold(decided.hold, request.caller.developerId));
}

function replyOf<Body, Status extends number>(
  status: Status,
  { kind }: Decided,
  body: Body,
): Reply<Body, Status> {
  return { status, body, ...(kind === 'replayed' && { headers: REPLAYED }) };
}

function requestOf({ caller, params, idempotencyKey }: Request): HoldRequest {
  const holdId = uuidOf('hold', params['id'] ?? '');
  if (holdId === undefined) throw unknownHold();
  return { developer: caller, holdId, idempotencyKey };
}

function amountOf(dollars: number): Micros {
  const amount = microsOfDollars(dollars);
  if (amount !== undefined && amount > 0 && amount <= CHARGE_MICROS_MAX) return amount;
  throw new ApiError(
    'invalid_amount',
    'amount must be more than 0 and at most 1,000,000 dollars, with at most six decimals. ' +
      'To charge nothing, release the hold.',
    { param: 'amount' },
  );
}

async function decide(api: Api, entry: HoldEntry): Promise<Decided> {
  const outcome = await api.holds.post(entry);
  switch (outcome.kind) {
    case 'done':
    case 'replayed':
      return outcome;
    case 'insufficient': {
      const { balanceMicros: balance, requiredMicros: required } = outcome;
      throw refusalOf(api, { kind: 'insufficient_balance', balance, required });
    }
    case 'exceeds_hold': {
      const remaining = dollarsOf(outcome.remainingMicros);
      throw new ApiError(
        'exceeds_hold',
        `Only ${remaining} dollars of the hold are left. Pass over: "cap" to charge just that, or ` +
          'over: "overflow" to take the excess from the balance.',
        { param: 'amount', facts: { remaining } },
      );
    }
    case 'hold_closed': {
      const { status } = outcome.hold;
      throw new ApiError('hold_closed', `The hold is ${status}, so nothing of it is left.`, {
        facts: { status },
      });
    }
    case 'unknown_hold':
      throw unknownHold();
    case 'key_reused':
      throw new ApiError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for a request with another body; a new request needs a new key.',
      );
  }
}

export function unknownHold(): ApiError {
  return new ApiError('hold_not_found', 'There is no such hold.');
}

export function wireHold(hold: Hold, developerId: string): HoldReply {
  return {
    id: wireId('hold', hold.id),
    tool: hold.tool,
    amount: dollarsOf(hold.amountMicros),
    captured: dollarsOf(hold.capturedMicros),
    remaining: dollarsOf(hold.remainingMicros),
    status: hold.status,
    expiresAt: hold.expiresAt,
    createdAt: hold.placedAt,
    consumerId: wireId('consumer', hold.consumerId),
    developerId: wireId('developer', developerId),
  };
}
