/** Turns a request about a hold into an entry for the ledger. */
import { kindOfKey } from '../domain/api-keys.ts';
import { HOLD_SECONDS_DEFAULT } from '../domain/hold.ts';
import { asMicros, type Micros } from '../domain/money.ts';
import type { CaptureBody, ExtendBody, HoldBody } from '../schemas/holds.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { hasIdentity } from '../store/charges/identity.ts';
import type { ChargeDraft } from '../store/charges/post-charges.ts';
import type { ChargeRequest, ChargingDeps } from './charge.ts';
import { findKeyOwner, type KeyDeps } from './find-key-owner.ts';
import { NOT_SENT } from './give-ids.ts';
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

/** The draft is the charge that the hold reserves for. */
export function placeEntry(draft: ChargeDraft, request: PlaceRequest): HoldEntry {
  const { expiresIn } = request.body;
  return {
    ...draft,
    kind: 'place',
    ...holdIdentity(request, draft.consumerId),
    seconds: expiresIn ?? HOLD_SECONDS_DEFAULT,
  };
}

/**
 * For a request that would now be refused: the entry that repeats its answer, if it has placed a hold. The
 * ledger looks the key up before anything else, so it looks at neither the amount nor the budget.
 */
export async function replayEntry(
  deps: ChargingDeps,
  request: PlaceRequest,
): Promise<HoldEntry | undefined> {
  const { developer, body, idempotencyKey } = request;
  const { apiKey, tool } = body;
  const owner = await findRetryingPayer(deps, apiKey, idempotencyKey);
  if (!owner) return undefined;
  const { ledger, consumerId } = owner;
  const { developerId, developerNumber } = developer;
  const payer = { ledger, consumerId, spend: null, developerId, developerNumber };
  const asked = { id: NOT_SENT, tool, amountMicros: asMicros(1), metadata: null };
  const entry = placeEntry({ ...payer, ...asked, ...NO_IDENTITY }, request);
  return hasIdentity(entry) && (await deps.earlier.hasHold(entry)) ? entry : undefined;
}

/** The owner of the key in a request that may be a retry, even if the key has ended since. */
export async function findRetryingPayer(
  deps: Pick<ChargingDeps, keyof KeyDeps | 'earlier'>,
  apiKey: unknown,
  idempotencyKey: string | undefined,
): Promise<KeyOwner | undefined> {
  if (idempotencyKey === undefined || typeof apiKey !== 'string') return undefined;
  if (kindOfKey(deps.keyPrefix, apiKey) !== 'consumer') return undefined;
  return (
    (await findKeyOwner(deps, apiKey, 'payer')) ?? (await deps.earlier.findFormerOwner(apiKey))
  );
}

/** `amountMicros` is the body's amount; null captures everything that is left. */
export function captureEntry(
  request: HoldRequest,
  { amount, final = true, over = 'reject', metadata }: CaptureBody,
  amountMicros: Micros | null,
): HoldEntry {
  return {
    ...ofHold(request),
    ...captureIdentity(request, { amount, metadata, isFinal: final, over }),
    kind: 'capture',
    id: NOT_SENT,
    amountMicros,
    isFinal: final,
    over,
    metadata: metadata === undefined ? null : JSON.stringify(metadata),
  };
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
