/**
 * A charge from request to outcome, in two steps: prepared (whose key, which tool, how much), then posted
 * through the batcher. Refusals are data; what cannot be decided the batcher throws.
 */
import { hash, randomUUIDv7 } from 'node:crypto';
import { KEY_LENGTH_MAX, kindOfKey } from '../domain/api-keys.ts';
import { isChargeable, microsOfDollars, type Micros } from '../domain/money.ts';
import type { ChargeBody } from '../schemas/charges.ts';
import type { ReceiptSubject } from './receipts.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import type { FreshCache } from './fresh-cache.ts';
import type { KeyUse } from './key-use.ts';
import type { ToolPrices } from './tool-prices.ts';

export interface ChargingDeps {
  readonly keyUse: KeyUse;
  readonly keyPrefix: string;
  readonly keys: FreshCache<KeyOwner>;
  readonly tools: ToolPrices;
}

export interface ChargeRequest {
  readonly developer: Pick<KeyOwner, 'developerId' | 'developerNumber'>;
  readonly body: ChargeBody;
  readonly idempotencyKey: string | undefined;
}

export type ChargeResult =
  | {
      readonly kind: 'charged';
      readonly isReplay: boolean;
      readonly charge: ReceiptSubject & { readonly amountMicros: Micros };
      readonly balance: Micros;
    }
  | { readonly kind: 'insufficient_balance'; readonly balance: Micros; readonly required: Micros }
  | { readonly kind: 'invalid_api_key' }
  | { readonly kind: 'invalid_amount'; readonly sent: number | string }
  | { readonly kind: 'amount_required' }
  | { readonly kind: 'unknown_tool' }
  | { readonly kind: 'tool_archived' }
  | { readonly kind: 'idempotency_key_reused' };

/** A charge that can be decided, or why it cannot be. */
export type PreparedCharge =
  | { readonly kind: 'ready'; readonly draft: ChargeDraft }
  | Exclude<ChargeResult, { kind: 'charged' | 'insufficient_balance' | 'idempotency_key_reused' }>;

/**
 * Whose key, which tool, how much. Nothing has happened yet. A promise only where something is not in
 * memory: each wait is a turn of the event loop.
 */
export function prepareCharge(
  deps: ChargingDeps,
  request: ChargeRequest,
): PreparedCharge | Promise<PreparedCharge> {
  const { apiKey } = request.body;
  const consumer = typeof apiKey === 'string' ? findKeyOwner(deps, apiKey, 'consumer') : undefined;
  return consumer instanceof Promise
    ? consumer.then((found) => prepareFor(deps, request, found))
    : prepareFor(deps, request, consumer);
}

function prepareFor(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner | undefined,
): PreparedCharge | Promise<PreparedCharge> {
  const { amount, tool } = request.body;
  if (!consumer) return { kind: 'invalid_api_key' };
  deps.keyUse.note(consumer.keyId);
  const asked = amount === undefined ? undefined : chargeable(amount);
  if (amount !== undefined && asked === undefined) return { kind: 'invalid_amount', sent: amount };
  const known = deps.tools.peek(request.developer.developerId, tool);
  const price = asked ?? (known?.isArchived === true ? undefined : known?.price);
  // Nothing is refused from memory: a process beside this one may have given the tool a price just now.
  return known && price !== undefined
    ? readyCharge(request, consumer, price)
    : prepareUnknown(deps, request, consumer, asked);
}

/** What memory does not have, or would refuse. */
async function prepareUnknown(
  deps: ChargingDeps,
  request: ChargeRequest,
  consumer: KeyOwner,
  asked: Micros | undefined,
): Promise<PreparedCharge> {
  const { developerId } = request.developer;
  const name = request.body.tool;
  const tool = await deps.tools.find(developerId, name);
  if (asked !== undefined) {
    const isKnown = tool !== undefined || (await deps.tools.note(developerId, name));
    return isKnown ? readyCharge(request, consumer, asked) : { kind: 'unknown_tool' };
  }
  if (!tool) return { kind: 'unknown_tool' };
  if (tool.isArchived) return { kind: 'tool_archived' };
  if (tool.price === undefined) return { kind: 'amount_required' };
  return readyCharge(request, consumer, tool.price);
}

function readyCharge(
  request: ChargeRequest,
  { ledger, consumerId }: KeyOwner,
  amountMicros: Micros,
): PreparedCharge {
  const { developer, body } = request;
  const { idempotencyHash, fingerprint } = identityOf(request, consumerId);
  return {
    kind: 'ready',
    draft: {
      id: randomUUIDv7(),
      ledger,
      consumerId,
      developerId: developer.developerId,
      developerNumber: developer.developerNumber,
      tool: body.tool,
      amountMicros,
      idempotencyHash,
      fingerprint,
      metadata: body.metadata === undefined ? null : JSON.stringify(body.metadata),
    },
  };
}

/** What became of a draft that the batcher posted. */
export function resultOf(draft: ChargeDraft, outcome: ChargeOutcome): ChargeResult {
  switch (outcome.kind) {
    case 'posted':
    case 'replayed':
      return {
        kind: 'charged',
        isReplay: outcome.kind === 'replayed',
        charge: {
          id: outcome.id,
          consumerId: draft.consumerId,
          developerId: draft.developerId,
          tool: draft.tool,
          amountMicros: outcome.amountMicros,
          receiptKey: outcome.receiptKey,
        },
        balance: outcome.balanceMicros,
      };
    case 'insufficient':
      return {
        kind: 'insufficient_balance',
        balance: outcome.balanceMicros,
        required: draft.amountMicros,
      };
    case 'key_reused':
      return { kind: 'idempotency_key_reused' };
  }
}

/** Looked up by hash, in memory first; a key that is not well formed never reaches the database. */
export function findKeyOwner(
  deps: Pick<ChargingDeps, 'keyPrefix' | 'keys'>,
  key: string,
  kind: KeyOwner['kind'],
): KeyOwner | undefined | Promise<KeyOwner | undefined> {
  if (key.length > KEY_LENGTH_MAX) return undefined;
  const hashed = hash('sha256', key);
  const known = deps.keys.peek(hashed);
  if (known) return inForce(known, kind);
  if (kindOfKey(deps.keyPrefix, key) !== kind) return undefined;
  return deps.keys.load(hashed).then((owner) => owner && inForce(owner, kind));
}

function inForce(owner: KeyOwner, kind: KeyOwner['kind']): KeyOwner | undefined {
  const isExpired = owner.expiresAt !== null && Date.parse(owner.expiresAt) <= Date.now();
  return owner.kind === kind && !isExpired ? owner : undefined;
}

function chargeable(dollars: number | string): Micros | undefined {
  const amount = microsOfDollars(dollars);
  return amount !== undefined && isChargeable(amount) ? amount : undefined;
}

/**
 * The idempotency key names one charge of one consumer by one developer. The fingerprint is of what was
 * sent, not of what it came to: a price that changed meanwhile does not make a retry another request. But
 * an amount is the same as a number and as a string.
 */
function identityOf({ developer, body, idempotencyKey }: ChargeRequest, consumerId: string) {
  if (idempotencyKey === undefined) return { idempotencyHash: null, fingerprint: null };
  const sent = JSON.stringify([body.tool, numberOf(body.amount), body.metadata ?? null]);
  return {
    idempotencyHash: hash('sha256', consumerId + developer.developerId + idempotencyKey).slice(
      0,
      22,
    ),
    fingerprint: hash('sha256', sent).slice(0, 10),
  };
}

function numberOf(amount: number | string | undefined): number | null {
  return amount === undefined ? null : Number(amount);
}
