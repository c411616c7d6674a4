/**
 * Takes a charge from request to outcome, alone or with others: finds the key's owner, the tool and the amount, then
 * hands it to the batcher. Refusals are data. A charge that could not be decided throws a ChargeFailure, which says
 * what is known, or a ClockError, after which nothing was charged.
 */
import { kindOfKey } from '../domain/api-keys.ts';
import { MAGIC_REFUSALS, type MagicRefusal } from '../domain/magic-amounts.ts';
import { isSameMode, isTest } from '../domain/mode.ts';
import { asMicros, isChargeable, microsOfDollars, type Micros } from '../domain/money.ts';
import type { ChargeBody } from '../schemas/charges.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { hasIdentity } from '../store/charges/identity.ts';
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import type { AccountKeyGuard } from './account-key-guard.ts';
import type { Requester } from './batcher.ts';
import type { BudgetRefusal, BudgetRulesCache } from './budget-rules.ts';
import type { ChargeBatcher } from './create-charge-batcher.ts';
import type { EarlierCharges } from './earlier-charges.ts';
import { findKeyOwner, type KeyDeps } from './find-key-owner.ts';
import { NOT_SENT } from './give-ids.ts';
import { chargeIdentity } from './idempotency.ts';
import { answerOnDemand } from './answer-on-demand.ts';
import type { LastUsedRecorder } from './last-used-recorder.ts';
import { settleInSlices, valueOf } from './map-in-slices.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';
import type { ToolPrices } from './tool-prices.ts';

export interface ChargingDeps extends KeyDeps {
  readonly batcher: ChargeBatcher;
  readonly lastUsed: LastUsedRecorder;
  readonly tools: ToolPrices;
  readonly budgets: BudgetRulesCache;
  readonly guards: AccountKeyGuard;
  readonly earlier: EarlierCharges;
}

export interface ChargeRequest {
  readonly developer: Pick<KeyOwner, 'developerId' | 'developerNumber' | 'ledger'>;
  readonly body: ChargeBody;
  readonly idempotencyKey: string | undefined;
}

/** Why a charge never reached the ledger. */
export type ChargeRefusal =
  | { readonly kind: 'invalid_amount'; readonly sent: number | string }
  | {
      readonly kind:
        | 'invalid_api_key'
        | 'account_keys_closed'
        | 'mode_mismatch'
        | 'amount_required'
        | 'unknown_tool'
        | 'tool_archived';
    }
  | OnDemand
  | BudgetRefusal;

/** A test charge whose amount asks for this refusal. */
export interface OnDemand {
  readonly kind: 'on_demand';
  readonly code: MagicRefusal;
  readonly consumerId: string;
  readonly developerId: string;
  readonly amountMicros: Micros;
}

/** Decided by the ledger: now, or earlier under the same idempotency key. */
export interface DecidedCharge {
  readonly kind: 'decided';
  readonly draft: Pick<
    ChargeDraft,
    'ledger' | 'consumerId' | 'developerId' | 'tool' | 'amountMicros'
  >;
  readonly outcome: ChargeOutcome;
}

export type ChargeResult = DecidedCharge | ChargeRefusal;

type PreparedCharge = { readonly kind: 'ready'; readonly draft: ChargeDraft } | ChargeResult;

/** Resolves once the charge is refused, or decided and durable. */
export async function charge(
  deps: ChargingDeps,
  request: ChargeRequest,
  requester: Requester,
): Promise<ChargeResult> {
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

function post(
  { batcher }: ChargingDeps,
  prepared: PreparedCharge,
  requester: Requester,
): MaybePromise<ChargeResult> {
  if (prepared.kind !== 'ready') return prepared;
  const { draft } = prepared;
  return batcher.post(draft, requester).then((outcome) => {
    const result = { kind: 'decided', draft, outcome } as const;
    if (outcome.kind !== 'posted' || !isTest(draft)) return result;
    return answerOnDemand(draft, requester).then(() => result);
  });
}

/** Finds the key's owner, the tool and the amount. Nothing is charged yet. */
export function prepareCharge(
  deps: ChargingDeps,
  request: ChargeRequest,
): MaybePromise<PreparedCharge> {
  const { apiKey } = request.body;
  if (typeof apiKey !== 'string') return { kind: 'invalid_api_key' };
  return whenKnown(findKeyOwner(deps, apiKey, 'payer'), (consumer) =>
    consumer ? prepareFor(deps, request, consumer) : refuseKeyUnlessRetry(deps, request, apiKey),
  );
}

function prepareFor(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
): MaybePromise<PreparedCharge> {
  const { amount, tool } = request.body;
  // Nothing was ever charged across modes, so this cannot be a retry of a charge.
  if (!isSameMode(consumer, request.developer)) return { kind: 'mode_mismatch' };
  deps.lastUsed.add(consumer);
  const named = amount === undefined ? undefined : parseAmount(amount);
  if (amount !== undefined && named === undefined) {
    return refuseUnlessRetry(deps, request, consumer, { kind: 'invalid_amount', sent: amount });
  }
  const known = deps.tools.peek(request.developer.developerId, tool);
  const amountMicros = named ?? (known?.isArchived === true ? undefined : known?.price);
  // Memory never causes a refusal: another process may have just set the tool's price.
  return known && amountMicros !== undefined
    ? draftAllowed(deps, request, consumer, amountMicros)
    : prepareFromDatabase(deps, request, consumer, named);
}

/** For tools that are not in memory, or whose charge would be refused by what is in memory. */
async function prepareFromDatabase(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
  named: Micros | undefined,
): Promise<PreparedCharge> {
  const { developerId } = request.developer;
  const name = request.body.tool;
  const tool = await deps.tools.find(developerId, name);
  if (named !== undefined) {
    const isKnown = tool !== undefined || (await deps.tools.note(developerId, name));
    return isKnown
      ? draftAllowed(deps, request, consumer, named)
      : refuseUnlessRetry(deps, request, consumer, { kind: 'unknown_tool' });
  }
  if (!tool) return refuseUnlessRetry(deps, request, consumer, { kind: 'unknown_tool' });
  if (tool.isArchived) return refuseUnlessRetry(deps, request, consumer, { kind: 'tool_archived' });
  if (tool.price === undefined)
    return refuseUnlessRetry(deps, request, consumer, { kind: 'amount_required' });
  return draftAllowed(deps, request, consumer, tool.price);
}

/** A key of the account pays, unless its owner guards it; a spend key pays for what its budget allows. */
function draftAllowed(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
  amountMicros: Micros,
): MaybePromise<PreparedCharge> {
  const code = isTest(consumer) ? MAGIC_REFUSALS.get(amountMicros) : undefined;
  if (code) {
    const { consumerId } = consumer;
    const { developerId } = request.developer;
    return { kind: 'on_demand', code, consumerId, developerId, amountMicros };
  }
  if (consumer.guard === null) return draftPaidBy(deps, request, consumer, amountMicros);
  return whenKnown(deps.guards.payerOf(consumer, request.developer), (payer) =>
    payer
      ? draftPaidBy(deps, request, payer, amountMicros)
      : refuseUnlessRetry(deps, request, consumer, { kind: 'account_keys_closed' }),
  );
}

function draftPaidBy(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
  amountMicros: Micros,
): MaybePromise<PreparedCharge> {
  if (consumer.spend === null) return draftCharge(request, consumer, amountMicros);
  const { developerId } = request.developer;
  const call = { developerId, tool: request.body.tool, amountMicros };
  return whenKnown(deps.budgets.refusalOf(consumer, call), (refusal) => {
    if (!refusal) return draftCharge(request, consumer, amountMicros);
    return refusal.kind === 'needs_approval'
      ? draftCharge(request, consumer, amountMicros, true)
      : refuseUnlessRetry(deps, request, consumer, refusal);
  });
}

/** A retry of a successful charge gets that charge's outcome, even if the same charge would be refused today. */
async function refuseUnlessRetry(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
  refusal: ChargeRefusal,
): Promise<ChargeResult> {
  const identity = chargeIdentity(request, consumer.consumerId);
  const outcome = hasIdentity(identity) && (await deps.earlier.find(identity));
  if (!outcome) return refusal;
  const { developerId } = request.developer;
  const amountMicros = 'amountMicros' in outcome ? outcome.amountMicros : asMicros(0);
  const { ledger, consumerId } = consumer;
  const draft = {
    ledger,
    consumerId,
    developerId,
    tool: request.body.tool,
    amountMicros,
  };
  return { kind: 'decided', draft, outcome };
}

/** The same for a consumer key that is no longer active. */
async function refuseKeyUnlessRetry(
  deps: ChargingDeps,
  request: ChargeRequest,
  apiKey: string,
): Promise<ChargeResult> {
  const mayBeRetry =
    request.idempotencyKey !== undefined && kindOfKey(deps.keyPrefix, apiKey) === 'consumer';
  const former = mayBeRetry ? await deps.earlier.findFormerOwner(apiKey) : undefined;
  if (!former) return { kind: 'invalid_api_key' };
  return refuseUnlessRetry(deps, request, former, { kind: 'invalid_api_key' });
}

function draftCharge(
  request: ChargeRequest,
  { ledger, consumerId, spend }: KeyOwner,
  amountMicros: Micros,
  needsApproval = false,
): PreparedCharge {
  const { developer, body } = request;
  const { idempotencyHash, fingerprint } = chargeIdentity(request, consumerId);
  const draft: ChargeDraft = {
    id: NOT_SENT,
    ledger,
    consumerId,
    developerId: developer.developerId,
    developerNumber: developer.developerNumber,
    tool: body.tool,
    amountMicros,
    idempotencyHash,
    fingerprint,
    metadata: body.metadata === undefined ? null : JSON.stringify(body.metadata),
    spend,
    needsApproval,
  };
  return { kind: 'ready', draft };
}

function parseAmount(dollars: number | string): Micros | undefined {
  const amount = microsOfDollars(dollars);
  return amount !== undefined && isChargeable(amount) ? amount : undefined;
}
