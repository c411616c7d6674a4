/**
 * Leases from request to outcome: finds the key, the prices of the tools and what the budgets allow, then
 * asks the store. Refusals are data. An entry of a settlement is named by its number, as a charge is by its
 * idempotency key.
 */
import { randomUUID } from 'node:crypto';
import { idsAt } from '../domain/ids.ts';
import { LEASE_SECONDS_DEFAULT } from '../domain/lease.ts';
import { isSameMode } from '../domain/mode.ts';
import type { Micros } from '../domain/money.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { hasIdentity } from '../store/charges/identity.ts';
import type { Database } from '../store/database.ts';
import { isHoldKey } from '../store/holds/post-hold-entries.ts';
import { findLease, type Lease, type LeasedTool } from '../store/leases/lease.ts';
import { placeLease, type LeaseEntry, type PlacedLease } from '../store/leases/place-lease.ts';
import { findRenewed, renewLease, type RenewedLease } from '../store/leases/renew-lease.ts';
import { settleLease, type SettledLease } from '../store/leases/settle-lease.ts';
import type { BudgetRefusal } from './budget-rules.ts';
import { metadataText, type DraftDeps } from './draft-charge.ts';
import { findRetryingPayer, type EarlierDeps } from './earlier-charges.ts';
import { findKeyOwner } from './find-key-owner.ts';
import { callIdentity, leaseIdentity, renewalIdentity } from './idempotency.ts';
import { replayWindow, replayWindowOfLease } from './replay-window.ts';
import type { NoPrice } from './tool-prices.ts';

/** `leasePool` is for leases alone: a settlement is a transaction of some ten milliseconds. */
export interface LeaseDeps extends EarlierDeps, Pick<DraftDeps, 'tools' | 'budgets' | 'lastUsed'> {
  readonly leasePool: Database;
  /** The number of the signing secret. */
  readonly receiptKey: number;
}

type Developer = Pick<KeyOwner, 'developerId' | 'developerNumber' | 'ledger'>;

export interface AskedTool {
  readonly name: string;
  /** Null: the registered price. */
  readonly askedMicros: Micros | null;
}

export interface LeaseRequest {
  readonly developer: Developer;
  readonly apiKey: string | undefined;
  readonly tools: readonly AskedTool[];
  readonly amountMicros: Micros;
  readonly expiresIn: number | undefined;
  readonly idempotencyKey: string | undefined;
}

export interface RenewRequest {
  readonly developer: Developer;
  /** A UUID. */
  readonly leaseId: string;
  readonly expiresIn: number | undefined;
  readonly fence: number | undefined;
  readonly idempotencyKey: string | undefined;
}

export interface SettleRequest {
  readonly developer: Developer;
  /** A UUID. */
  readonly leaseId: string;
  readonly fence: number | undefined;
  readonly isFinal: boolean;
  readonly entries: readonly {
    readonly sequence: number;
    readonly tool: string;
    readonly amountMicros: Micros;
    readonly metadata: Readonly<Record<string, string | number | boolean | null>> | undefined;
  }[];
}

/** A tool has no price, so it cannot be leased. `index` is its place in the request. */
interface ToolRefusal {
  readonly kind: NoPrice;
  readonly index: number;
}
/** `not_spendable`: a key of the account, which has no budget that could allow it. */
export type LeaseRefusal =
  | BudgetRefusal
  | ToolRefusal
  | { readonly kind: 'mode_mismatch' }
  | { readonly kind: 'not_spendable' };

/** Refused before the ledger was asked. */
interface RefusedLease {
  readonly kind: 'refused';
  readonly refusal: LeaseRefusal;
}

/** What is allowed to be placed. */
interface Allowed {
  readonly kind: 'allowed';
  readonly consumer: KeyOwner;
  readonly tools: readonly LeasedTool[];
}

export async function requestLease(
  deps: LeaseDeps,
  request: LeaseRequest,
): Promise<PlacedLease | RefusedLease> {
  const found = await allowedLease(deps, request);
  if (found.kind !== 'allowed') {
    return (await placedBefore(deps, request)) ?? { kind: 'refused', refusal: found };
  }
  const { consumer, tools } = found;
  const nowMs = deps.clock.checkedNowMs();
  const entry = entryOf(request, consumer, nowMs);
  return placeLease(deps.leasePool, entry, tools, deps.receiptKey, replayWindow(nowMs));
}

async function allowedLease(
  deps: LeaseDeps,
  { developer, apiKey, tools: asked, amountMicros }: LeaseRequest,
): Promise<Allowed | LeaseRefusal> {
  const consumer = apiKey === undefined ? undefined : await findKeyOwner(deps, apiKey, 'payer');
  if (!consumer) return { kind: 'invalid_api_key' };
  if (!isSameMode(consumer, developer)) return { kind: 'mode_mismatch' };
  if (!consumer.spend) return { kind: 'not_spendable' };
  deps.lastUsed.add(consumer);
  const tools = await priced(deps, developer, asked);
  if ('kind' in tools) return tools;
  const refusal = await deps.budgets.leaseRefusalOf(
    consumer,
    callsOf(developer, tools),
    amountMicros,
  );
  return refusal ?? { kind: 'allowed', consumer, tools };
}

/**
 * For a request that would now be refused: the lease that its idempotency key placed earlier. The ledger
 * looks the key up before anything else, and within the same range of time as the check, so nothing new is
 * placed.
 */
async function placedBefore(
  deps: LeaseDeps,
  request: LeaseRequest,
): Promise<PlacedLease | undefined> {
  const owner = await findRetryingPayer(deps, request.apiKey, request.idempotencyKey);
  if (!owner) return undefined;
  const nowMs = deps.clock.checkedNowMs();
  const replay = replayWindow(nowMs);
  const entry = entryOf(request, owner, nowMs);
  const isKnown = hasIdentity(entry) && (await isHoldKey(deps.leasePool, entry, replay));
  return isKnown ? placeLease(deps.leasePool, entry, [], deps.receiptKey, replay) : undefined;
}

/** The hold that reserves the money. */
function entryOf(
  request: LeaseRequest,
  { ledger, consumerId, spend }: KeyOwner,
  nowMs: number,
): LeaseEntry {
  const { developer, amountMicros, expiresIn: seconds = LEASE_SECONDS_DEFAULT } = request;
  const { developerId, developerNumber } = developer;
  return {
    kind: 'place',
    id: idsAt(nowMs)(0, consumerId, randomUUID()),
    ledger,
    consumerId,
    developerId,
    developerNumber,
    tool: '',
    amountMicros,
    ...leaseIdentity(request, consumerId, seconds),
    metadata: null,
    spend,
    seconds,
  };
}

/** A renewal is refused for the same reasons as a new lease, except when it repeats one that was made. */
export async function requestRenewal(
  deps: LeaseDeps,
  request: RenewRequest,
): Promise<RenewedLease | RefusedLease> {
  const { developer, leaseId, expiresIn: seconds = LEASE_SECONDS_DEFAULT, fence = null } = request;
  const { developerNumber } = developer;
  const lease = await findLease(deps.leasePool, { kind: 'developer', developerNumber }, leaseId);
  if (!lease) return { kind: 'unknown_lease' };
  const identity = renewalIdentity(request, seconds, fence);
  const tools = await renewableTools(deps, developer, lease);
  if ('kind' in tools) {
    const renewed = await findRenewed(deps.leasePool, lease, identity);
    return renewed ?? { kind: 'refused', refusal: tools };
  }
  return renewLease(deps.leasePool, {
    developerNumber,
    leaseId,
    fence,
    seconds,
    pricesMicros: tools.map(({ priceMicros }) => priceMicros),
    ...identity,
  });
}

/** The lease's tools at current prices, or why it cannot be renewed. */
async function renewableTools(
  deps: LeaseDeps,
  developer: Developer,
  { consumerId, spendKey, path, remainingMicros, tools: leased }: Lease,
): Promise<readonly LeasedTool[] | LeaseRefusal> {
  const tools = await priced(deps, developer, leased);
  if ('kind' in tools) return tools;
  const payer = { consumerId, spend: { number: spendKey, path: [...path] } };
  const calls = callsOf(developer, tools);
  return (await deps.budgets.leaseRefusalOf(payer, calls, remainingMicros)) ?? tools;
}

export async function requestSettlement(
  deps: LeaseDeps,
  request: SettleRequest,
): Promise<SettledLease> {
  const { developer, leaseId, fence = null, isFinal, entries } = request;
  const nowMs = deps.clock.checkedNowMs();
  const idOf = idsAt(nowMs);
  const settled = entries.map((entry, index) => {
    const { tool, amountMicros, metadata } = entry;
    return {
      id: idOf(index, leaseId, randomUUID()),
      tool,
      amountMicros,
      ...callIdentity(request, entry),
      metadata: metadataText(metadata),
    };
  });
  const { developerNumber } = developer;
  const settlement = { developerNumber, leaseId, fence, entries: settled, isFinal };
  const replay = replayWindowOfLease(leaseId, nowMs);
  return settleLease(deps.leasePool, settlement, deps.receiptKey, replay);
}

/** The tools with their current prices, or the first that has none. */
async function priced(
  { tools }: LeaseDeps,
  { developerId }: Developer,
  asked: readonly AskedTool[],
): Promise<readonly LeasedTool[] | ToolRefusal> {
  const prices = await Promise.all(
    asked.map(({ name, askedMicros }) =>
      tools.currentPriceOf(developerId, name, askedMicros ?? undefined),
    ),
  );
  const leased: LeasedTool[] = [];
  for (const [index, { name, askedMicros }] of asked.entries()) {
    const priceMicros = prices[index] ?? 'unknown_tool';
    if (typeof priceMicros === 'string') return { kind: priceMicros, index };
    leased.push({ name, priceMicros, askedMicros });
  }
  return leased;
}

function callsOf({ developerId }: Developer, tools: readonly LeasedTool[]) {
  return tools.map(({ name, priceMicros }) => ({
    developerId,
    tool: name,
    amountMicros: priceMicros,
  }));
}
