/**
 * Takes a charge from request to outcome, alone or with others: makes its draft, then hands it to the batcher. Refusals
 * are data. A charge that could not be decided throws a ChargeFailure, which says what is known, or a ClockError, after
 * which nothing was charged.
 */
import { isTest } from '../domain/mode.ts';
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import { answerOnDemand } from './answer-on-demand.ts';
import type { Requester } from './batcher.ts';
import type { ChargeBatcher } from './ledger-batchers.ts';
import {
  draftOf,
  type ChargeRefusal,
  type ChargeRequest,
  type DraftDeps,
  type Drafted,
} from './draft-charge.ts';
import {
  findEarlierCharge,
  mayBeRetry,
  type DecidedCharge,
  type EarlierDeps,
} from './earlier-charges.ts';
import { chargeIdentity } from './idempotency.ts';
import { settleInSlices, valueOf } from './map-in-slices.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';

export interface ChargingDeps extends DraftDeps, EarlierDeps {
  readonly batcher: ChargeBatcher;
}

export type ChargeResult = DecidedCharge | ChargeRefusal;

type PreparedCharge = Drafted | DecidedCharge;

/** Known once the charge is refused, or decided and durable. */
export function charge(
  deps: ChargingDeps,
  request: ChargeRequest,
  requester: Requester,
): MaybePromise<ChargeResult> {
  return whenKnown(prepareCharge(deps, request), (prepared) => post(deps, prepared, requester));
}

/**
 * Treats each charge as if it had been sent alone, in the order given. All are prepared before the first is posted:
 * otherwise a charge whose tool is not in memory would fall behind the others.
 */
export async function chargeAll(
  deps: ChargingDeps,
  requests: readonly ChargeRequest[],
  requester: Requester,
): Promise<PromiseSettledResult<ChargeResult>[]> {
  const prepared = await settleInSlices(requests, (request) => prepareCharge(deps, request));
  return settleInSlices(prepared, (each) => post(deps, valueOf(each), requester));
}

/**
 * The draft of the charge. Or, if it would be refused now, the result of the earlier charge that it repeats, or else
 * the refusal.
 */
export function prepareCharge(
  deps: DraftDeps & EarlierDeps,
  request: ChargeRequest,
): MaybePromise<PreparedCharge> {
  return whenKnown(draftOf(deps, request, chargeIdentity), (drafted) =>
    drafted.kind !== 'ready' && mayBeRetry(drafted)
      ? findEarlierCharge(deps, request).then((earlier) => earlier ?? drafted)
      : drafted,
  );
}

function post(
  { batcher }: ChargingDeps,
  prepared: PreparedCharge,
  requester: Requester,
): MaybePromise<ChargeResult> {
  if (prepared.kind !== 'ready') return prepared;
  const { draft } = prepared;
  return batcher.post(draft, requester).then((outcome) => answerDecided(draft, outcome, requester));
}

/** The result of a charge that the ledger has decided. In test mode, it may come late or not at all. */
export function answerDecided(
  draft: ChargeDraft,
  outcome: ChargeOutcome,
  requester: Requester,
): MaybePromise<DecidedCharge> {
  const result = { kind: 'decided', draft, outcome } as const;
  if (outcome.kind !== 'posted' || !isTest(draft) || draft.cardVersion) return result;
  return answerOnDemand(draft, requester).then(() => result);
}
