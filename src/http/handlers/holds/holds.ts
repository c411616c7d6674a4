/** Holds: reserve money for a call, then capture what it cost or release it. */
import { answerOnDemand } from '../../../charging/answer-on-demand.ts';
import type { Requester } from '../../../charging/batcher.ts';
import {
  captureEntry,
  extendEntry,
  prepareCaptureOfUnits,
  preparePlacement,
  releaseEntry,
  type HoldRequest,
  type PlaceRequest,
} from '../../../charging/hold-entries.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { dollarsOf, formatDollars, isChargeable } from '../../../domain/money.ts';
import type {
  CaptureBody,
  CaptureReply,
  ExtendBody,
  HoldBody,
  HoldReply,
  PlacedHoldReply,
} from '../../../schemas/holds.ts';
import type { Hold } from '../../../store/holds/hold.ts';
import type { HoldEntry, HoldOutcome } from '../../../store/holds/hold-entry.ts';
import { amountOf, CHARGEABLE, type AmountRule } from '../../amounts.ts';
import { errorOnDemand, insufficientBalance, refusalError } from '../charges/charge-errors.ts';
import { wireCharge } from '../charges/charges.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';

const CAPTURABLE: AmountRule = {
  accepts: isChargeable,
  says: `${CHARGEABLE.says}; to charge nothing, release the hold`,
};

export type Decided = Extract<HoldOutcome, { kind: 'done' | 'replayed' }>;

/** 201; `Idempotency-Replayed: true` when this key has already placed the hold. */
export async function postHold(
  api: Api,
  request: Request<HoldBody>,
): Promise<Reply<PlacedHoldReply, 201>> {
  const { caller: developer, body, idempotencyKey } = request;
  const entry = await placementOf(api, { developer, body, idempotencyKey });
  const decided = await decide(api, request, entry);
  return replyOf(201, decided, placedHold(request, decided));
}

/** The entry that places the hold. Throws the ApiError of a refusal. */
export async function placementOf(api: Api, asked: PlaceRequest): Promise<HoldEntry> {
  const prepared = await preparePlacement(api, asked);
  if (prepared.kind === 'ready') return prepared.entry;
  if (prepared.kind === 'on_demand') throw errorOnDemand(api, prepared);
  throw refusalError(api, prepared);
}

export function placedHold({ caller }: Asking, { hold, balanceMicros }: Decided): PlacedHoldReply {
  return { ...wireHold(hold, caller.developerId), balance: dollarsOf(balanceMicros) };
}

/** 201 with the charge and the hold. */
export async function postCapture(
  api: Api,
  request: Request<CaptureBody>,
): Promise<Reply<CaptureReply, 201>> {
  const entry = await prepareCapture(api, requestOf(request), request.body);
  const decided = await decide(api, request, entry);
  return replyOf(201, decided, capturedCharge(api, request, decided));
}

/** The entry that captures the hold. Throws when the amount, or the cost of the units, cannot be charged. */
export async function prepareCapture(
  api: Api,
  asked: HoldRequest,
  body: CaptureBody,
): Promise<HoldEntry> {
  const { amount, units } = body;
  if (units !== undefined) {
    if (amount !== undefined) throw refusalError(api, { kind: 'amount_and_units' });
    const prepared = await prepareCaptureOfUnits(api, asked, { ...body, units });
    if (!prepared) throw unknownHold();
    if (prepared.kind === 'ready') return prepared.entry;
    throw refusalError(api, prepared);
  }
  const micros = amount === undefined ? null : amountOf('amount', amount, CAPTURABLE);
  return captureEntry(asked, body, micros);
}

export function capturedCharge(api: Api, { caller }: Asking, decided: Decided): CaptureReply {
  const { hold, chargeId: id, receiptKey, amountMicros, balanceMicros, cardVersion } = decided;
  const { developerId } = caller;
  const { consumerId, tool } = hold;
  const charge = {
    id,
    consumerId,
    developerId,
    tool,
    amountMicros,
    cardVersion,
    receiptKey,
    isTest: isTest(caller),
  };
  return {
    ...wireCharge(api, charge),
    consumerId: wireId('consumer', consumerId),
    balance: dollarsOf(balanceMicros),
    holdId: wireId('hold', hold.id),
    hold: wireHold(hold, developerId),
  };
}

/** 200 with the hold, even if it was already released. */
export async function postRelease(api: Api, request: Request): Promise<Reply<HoldReply>> {
  const decided = await decide(api, request, releaseEntry(requestOf(request)));
  return replyOf(200, decided, releasedHold(request, decided));
}

export function releasedHold({ caller }: Asking, { hold }: Decided): HoldReply {
  return wireHold(hold, caller.developerId);
}

/** 200 with the hold. */
export async function postExtension(
  api: Api,
  request: Request<ExtendBody>,
): Promise<Reply<HoldReply>> {
  const decided = await decide(api, request, extendEntry(requestOf(request), request.body));
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
  return { developer: caller, holdId: holdIdOf(params['id'] ?? ''), idempotencyKey };
}

/** The UUID of the hold with this id. Throws when it cannot be one. */
export function holdIdOf(id: string): string {
  const holdId = uuidOf('hold', id);
  if (holdId === undefined) throw unknownHold();
  return holdId;
}

type Asking = Pick<Request, 'caller'>;

/** Posts the entry. Throws the ApiError of a refusal. */
export async function decide(
  api: Api,
  request: Asking & Requester,
  entry: HoldEntry,
): Promise<Decided> {
  const { developerId } = request.caller;
  const outcome = await api.entries.post(entry, request);
  switch (outcome.kind) {
    case 'done':
      if (entry.kind === 'place' && isTest(entry) && !entry.cardVersion)
        await answerOnDemand(entry, request);
      return outcome;
    case 'replayed':
      return outcome;
    case 'insufficient': {
      const { consumerId, balanceMicros, requiredMicros: amountMicros } = outcome;
      const tool = entry.kind === 'place' && { tool: entry.tool };
      throw insufficientBalance(
        api,
        { consumerId, developerId, amountMicros, ...tool },
        balanceMicros,
      );
    }
    case 'limit_reached':
    case 'approval_required':
      throw refusalError(api, entry.kind === 'place' ? { ...outcome, call: entry } : outcome);
    case 'key_closed':
      throw refusalError(api, { kind: 'invalid_api_key' });
    case 'exceeds_hold': {
      const remaining = dollarsOf(outcome.remainingMicros);
      const left = `Only ${formatDollars(outcome.remainingMicros)} of the hold is left`;
      const message =
        entry.kind === 'capture' && entry.over === 'overflow'
          ? `${left}, and its key cannot be charged more. Pass over: "cap" to charge just that.`
          : `${left}. Pass over: "cap" to charge just that, or over: "overflow" to take the excess from the balance.`;
      throw new ApiError('exceeds_hold', message, { param: 'amount', facts: { remaining } });
    }
    case 'hold_closed': {
      const { status } = outcome.hold;
      throw new ApiError(
        'hold_closed',
        `The hold is closed: its status is ${status}. Place a new hold.`,
        { facts: { status } },
      );
    }
    case 'unknown_hold':
      throw unknownHold();
    case 'key_reused':
      throw keyReused();
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
