/**
 * Turns a request into the draft of a charge or hold: finds the key's owner and the price, and what refuses the charge
 * before it reaches the ledger. Refusals are data. Whether the request was already answered is another question
 * (earlier-charges.ts).
 */
import { MAGIC_REFUSALS, type MagicRefusal } from '../domain/magic-amounts.ts';
import { isSameMode, isTest } from '../domain/mode.ts';
import { isChargeable, microsOfDollars, type Micros } from '../domain/money.ts';
import type { ChargeBody } from '../schemas/charges.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { OptionalIdentity } from '../store/charges/identity.ts';
import type { ChargeDraft } from '../store/charges/post-charges.ts';
import type { AccountKeyGuard } from './account-key-guard.ts';
import type { BudgetRefusal, BudgetRulesCache, Call } from './budget-rules.ts';
import { findKeyOwner, type KeyDeps } from './find-key-owner.ts';
import { NOT_SENT } from './ledger-batchers.ts';
import type { LastUsedRecorder } from './last-used-recorder.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';
import { chargeable, type NoCost, type NoPrice, type ToolPrices } from './tool-prices.ts';

export interface DraftDeps extends KeyDeps {
  readonly lastUsed: LastUsedRecorder;
  readonly tools: ToolPrices;
  readonly budgets: BudgetRulesCache;
  readonly guards: AccountKeyGuard;
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
        | 'amount_and_units'
        | NoPrice;
    }
  | NoCost
  | OnDemand
  | RefusedByBudget;

/** `call` is the charge or hold that was refused; none when a lease was. */
export type RefusedByBudget = BudgetRefusal & { readonly call?: Call };

/** A test charge whose amount asks for this refusal. */
export interface OnDemand {
  readonly kind: 'on_demand';
  readonly code: MagicRefusal;
  readonly consumerId: string;
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: Micros;
}

export type Drafted = { readonly kind: 'ready'; readonly draft: ChargeDraft } | ChargeRefusal;

/** Who pays how much. */
interface Payment {
  readonly kind: 'payment';
  readonly payer: KeyOwner;
  readonly price: Price;
  readonly needsApproval: boolean;
}

interface Price {
  readonly amountMicros: Micros;
  /** The version of the rate card that it is by; 0 for none. */
  readonly cardVersion: number;
}

/** `identityOf` is that of a charge or that of a hold. */
export function draftOf<Asked extends ChargeRequest>(
  deps: DraftDeps,
  request: Asked,
  identityOf: (request: Asked, consumerId: string) => OptionalIdentity,
): MaybePromise<Drafted> {
  return whenKnown(paymentOf(deps, request), (found) => {
    if (found.kind !== 'payment') return found;
    const { developer, body } = request;
    const { ledger, consumerId, spend } = found.payer;
    const { idempotencyHash, fingerprint } = identityOf(request, consumerId);
    const draft: ChargeDraft = {
      id: NOT_SENT,
      ledger,
      consumerId,
      developerId: developer.developerId,
      developerNumber: developer.developerNumber,
      tool: body.tool,
      amountMicros: found.price.amountMicros,
      cardVersion: found.price.cardVersion,
      idempotencyHash,
      fingerprint,
      metadata: metadataText(body.metadata),
      spend,
      needsApproval: found.needsApproval,
    };
    return { kind: 'ready', draft };
  });
}

function paymentOf(deps: DraftDeps, request: ChargeRequest): MaybePromise<Payment | ChargeRefusal> {
  const { apiKey } = request.body;
  if (typeof apiKey !== 'string') return { kind: 'invalid_api_key' };
  return whenKnown(findKeyOwner(deps, apiKey, 'payer'), (consumer) =>
    consumer ? paymentBy(deps, request, consumer) : { kind: 'invalid_api_key' },
  );
}

function paymentBy(
  deps: DraftDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
): MaybePromise<Payment | ChargeRefusal> {
  const { developerId } = request.developer;
  const { amount, tool, units } = request.body;
  if (!isSameMode(consumer, request.developer)) return { kind: 'mode_mismatch' };
  deps.lastUsed.add(consumer);
  const stated = amount === undefined ? undefined : parseAmount(amount);
  if (amount !== undefined && stated === undefined) return { kind: 'invalid_amount', sent: amount };
  if (units !== undefined) {
    if (amount !== undefined) return { kind: 'amount_and_units' };
    return whenKnown(deps.tools.costOf(developerId, tool, units), (found) => {
      const cost = chargeable(found);
      return cost.kind === 'cost' ? paymentOfPrice(deps, request, consumer, cost) : cost;
    });
  }
  return whenKnown(deps.tools.priceOf(developerId, tool, stated), (price) =>
    typeof price === 'number'
      ? paymentOfPrice(deps, request, consumer, { amountMicros: price, cardVersion: 0 })
      : { kind: price },
  );
}

/** A key of the account pays, unless its owner guards it; a spend key pays for what its budget allows. */
function paymentOfPrice(
  deps: DraftDeps,
  { developer, body }: ChargeRequest,
  consumer: KeyOwner,
  price: Price,
): MaybePromise<Payment | ChargeRefusal> {
  const { amountMicros } = price;
  const call = { developerId: developer.developerId, tool: body.tool, amountMicros };
  // What units cost is no amount that somebody chose.
  const mayBeMagic = isTest(consumer) && price.cardVersion === 0;
  const code = mayBeMagic ? MAGIC_REFUSALS.get(amountMicros) : undefined;
  if (code) return { kind: 'on_demand', code, consumerId: consumer.consumerId, ...call };
  return whenKnown(deps.guards.payerOf(consumer, developer), (payer) => {
    if (!payer) return { kind: 'account_keys_closed' };
    if (payer.spend === null) return payment(payer, price, false);
    return whenKnown(deps.budgets.refusalOf(payer, call), (refusal) =>
      refusal && refusal.kind !== 'needs_approval'
        ? { ...refusal, call }
        : payment(payer, price, refusal !== undefined),
    );
  });
}

function payment(payer: KeyOwner, price: Price, needsApproval: boolean): Payment {
  return { kind: 'payment', payer, price, needsApproval };
}

function parseAmount(dollars: number | string): Micros | undefined {
  const amount = microsOfDollars(dollars);
  return amount !== undefined && isChargeable(amount) ? amount : undefined;
}

/** JSON, as rows keep it. */
export function metadataText(metadata: ChargeBody['metadata'] | undefined): string | null {
  return metadata === undefined ? null : JSON.stringify(metadata);
}
