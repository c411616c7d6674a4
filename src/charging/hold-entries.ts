/** Turns a request about a hold into an entry for the ledger. */
import { HOLD_SECONDS_DEFAULT } from '../domain/hold.ts';
import { asMicros, type Micros } from '../domain/money.ts';
import type { Units } from '../domain/rate-card.ts';
import type { CaptureBody, ExtendBody, HoldBody } from '../schemas/holds.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { hasIdentity } from '../store/charges/identity.ts';
import type { ChargeDraft } from '../store/charges/post-charges.ts';
import {
  draftOf,
  metadataText,
  type ChargeRefusal,
  type ChargeRequest,
  type DraftDeps,
} from './draft-charge.ts';
import { findRetryingPayer, mayBeRetry, type EarlierDeps } from './earlier-charges.ts';
import type { HoldCards } from './hold-cards.ts';
import { chargeable, costBy, type NoCost } from './tool-prices.ts';
import { NOT_SENT } from './ledger-batchers.ts';
import { captureIdentity, extensionIdentity, holdIdentity, NO_IDENTITY } from './idempotency.ts';
import type { HoldEntry } from '../store/holds/hold-entry.ts';

/** The hold that a request names, and the developer that sent it. */
export interface HoldRequest {
  readonly developer: Pick<KeyOwner, 'developerId' | 'developerNumber'>;
  /** A UUID. */
  readonly holdId: string;
  readonly idempotencyKey: string | undefined;
}

export type PlaceRequest = ChargeRequest & { readonly body: HoldBody };

/** The entry that places the hold or, for a retry that would be refused now, repeats the answer; or the refusal. */
export async function preparePlacement(
  deps: DraftDeps & EarlierDeps,
  request: PlaceRequest,
): Promise<{ readonly kind: 'ready'; readonly entry: HoldEntry } | ChargeRefusal> {
  const drafted = await draftOf(deps, request, holdIdentity);
  if (drafted.kind === 'ready') {
    return { kind: 'ready', entry: placeEntry(drafted.draft, request) };
  }
  const entry = mayBeRetry(drafted) ? await replayEntry(deps, request) : undefined;
  return entry ? { kind: 'ready', entry } : drafted;
}

/** The draft is the charge that the hold reserves for. */
function placeEntry(draft: ChargeDraft, { body }: PlaceRequest): HoldEntry {
  return { ...draft, kind: 'place', seconds: body.expiresIn ?? HOLD_SECONDS_DEFAULT };
}

/**
 * The entry of a request whose idempotency key has placed a hold. The ledger looks the key up before anything else,
 * so it looks at neither the amount nor the budget.
 */
async function replayEntry(
  deps: EarlierDeps,
  request: PlaceRequest,
): Promise<HoldEntry | undefined> {
  const { developer, body, idempotencyKey } = request;
  const owner = await findRetryingPayer(deps, body.apiKey, idempotencyKey);
  if (!owner) return undefined;
  const { ledger, consumerId } = owner;
  const identity = holdIdentity(request, consumerId);
  if (!hasIdentity(identity) || !(await deps.earlier.hasHold(identity))) return undefined;
  const { developerId, developerNumber } = developer;
  const payer = { ledger, consumerId, spend: null, developerId, developerNumber };
  const asked = { id: NOT_SENT, tool: body.tool, amountMicros: asMicros(1), metadata: null };
  return placeEntry({ ...payer, ...asked, ...identity }, request);
}

/** `amountMicros` is the body's amount, or the cost of its units; null captures everything that is left. */
export function captureEntry(
  request: HoldRequest,
  { amount, units, final = true, over = 'reject', metadata }: CaptureBody,
  amountMicros: Micros | null,
  cardVersion = 0,
): Extract<HoldEntry, { kind: 'capture' }> {
  return {
    ...ofHold(request),
    ...captureIdentity(request, { amount, units, metadata, isFinal: final, over }),
    kind: 'capture',
    id: NOT_SENT,
    amountMicros,
    cardVersion,
    isFinal: final,
    over,
    metadata: metadataText(metadata),
  };
}

/**
 * The entry that captures what the units cost: by the card that priced the hold or, if it was placed by an amount, by
 * the current card of its tool. Null when there is no such hold. A retry of a capture that was made needs no card,
 * because the ledger first looks its key up.
 */
export async function prepareCaptureOfUnits(
  deps: Pick<DraftDeps, 'tools'> & EarlierDeps & { readonly holdCards: HoldCards },
  request: HoldRequest,
  body: CaptureBody & { readonly units: Units },
): Promise<{ readonly kind: 'ready'; readonly entry: HoldEntry } | NoCost | null> {
  const { developerId, developerNumber } = request.developer;
  const hold = await deps.holdCards.find({ developerNumber, holdId: request.holdId });
  if (!hold) return null;
  const cost = chargeable(
    hold.card
      ? costBy(hold.card, body.units)
      : await deps.tools.costOf(developerId, hold.tool, body.units),
  );
  if (cost.kind === 'cost') {
    const entry = captureEntry(request, body, cost.amountMicros, cost.cardVersion);
    return { kind: 'ready', entry };
  }
  const entry = captureEntry(request, body, asMicros(1));
  return hasIdentity(entry) && (await deps.earlier.find(entry)) ? { kind: 'ready', entry } : cost;
}

/** Needs no key: releasing a hold twice has the effect of releasing it once. */
export function releaseEntry(request: HoldRequest): HoldEntry {
  return { ...ofHold(request), ...NO_IDENTITY, kind: 'release' };
}

export function extendEntry(request: HoldRequest, { expiresIn }: ExtendBody): HoldEntry {
  return {
    ...ofHold(request),
    ...extensionIdentity(request, expiresIn),
    kind: 'extend',
    seconds: expiresIn,
  };
}

function ofHold({ developer, holdId }: HoldRequest) {
  const { developerId, developerNumber } = developer;
  return { developerId, developerNumber, holdId };
}
