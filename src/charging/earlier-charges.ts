/**
 * Finds the charge or hold that an idempotency key made earlier. Used before refusing a request with a key: a
 * refusal says that nothing happened, which would be false for a retry of a successful request.
 */
import { kindOfKey } from '../domain/api-keys.ts';
import { asMicros } from '../domain/money.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { findFormerKeyOwner, hashOfKey } from '../store/accounts/api-keys.ts';
import { hasIdentity, type Identity } from '../store/charges/identity.ts';
import {
  findChargeByKey,
  type ChargeDraft,
  type ChargeOutcome,
} from '../store/charges/post-charges.ts';
import { isHoldKey } from '../store/holds/post-hold-entries.ts';
import type { Database } from '../store/database.ts';
import type { DatabaseClock } from './database-clock.ts';
import type { ChargeRefusal, ChargeRequest } from './draft-charge.ts';
import { canPay, findKeyOwner, type KeyDeps } from './find-key-owner.ts';
import { chargeIdentity } from './idempotency.ts';
import { replayWindow } from './replay-window.ts';
import { REPLAY_DELAY_MS_MAX } from './limits.ts';

export class EarlierCharges {
  readonly #database: Database;
  readonly #clock: DatabaseClock;

  constructor(database: Database, clock: DatabaseClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** The outcome for a retry: `replayed`, or `key_reused` for another body. */
  async find(identity: Identity): Promise<ChargeOutcome | undefined> {
    const window = replayWindow(this.#clock.checkedNowMs());
    return (await findChargeByKey(this.#database, identity, window)) ?? undefined;
  }

  /**
   * Whether a hold was placed, for this body or another, that the ledger will still find when it is asked within
   * `REPLAY_DELAY_MS_MAX`. If it found nothing then, it would place a new hold.
   */
  hasHold(identity: Identity): Promise<boolean> {
    const nowMs = this.#clock.checkedNowMs();
    const { toId } = replayWindow(nowMs);
    const { fromId } = replayWindow(nowMs + REPLAY_DELAY_MS_MAX);
    return isHoldKey(this.#database, identity, { fromId, toId });
  }

  /** The owner of a consumer key that has since been revoked, rolled or expired. */
  async findFormerOwner(key: string): Promise<KeyOwner | undefined> {
    const owner = await findFormerKeyOwner(this.#database, hashOfKey(key));
    return owner && canPay(owner) ? owner : undefined;
  }
}

export interface EarlierDeps extends KeyDeps {
  readonly earlier: EarlierCharges;
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

/**
 * Whether a request with this refusal may have succeeded earlier. No charge ever succeeds across modes, and a test
 * amount that asks for a refusal always gets it.
 */
export function mayBeRetry({ kind }: ChargeRefusal): boolean {
  return kind !== 'mode_mismatch' && kind !== 'on_demand';
}

/** The charge that the request made when it was sent earlier, or that its idempotency key made for another body. */
export async function findEarlierCharge(
  deps: EarlierDeps,
  request: ChargeRequest,
): Promise<DecidedCharge | undefined> {
  const { developer, body, idempotencyKey } = request;
  const payer = await findRetryingPayer(deps, body.apiKey, idempotencyKey);
  if (!payer) return undefined;
  const { ledger, consumerId } = payer;
  const identity = chargeIdentity(request, consumerId);
  const outcome = hasIdentity(identity) && (await deps.earlier.find(identity));
  if (!outcome) return undefined;
  const { developerId } = developer;
  const amountMicros = 'amountMicros' in outcome ? outcome.amountMicros : asMicros(0);
  const draft = { ledger, consumerId, developerId, tool: body.tool, amountMicros };
  return { kind: 'decided', draft, outcome };
}

/** The owner of the key in a request that may be a retry, even if the key has ended since. */
export async function findRetryingPayer(
  deps: EarlierDeps,
  apiKey: unknown,
  idempotencyKey: string | undefined,
): Promise<KeyOwner | undefined> {
  if (idempotencyKey === undefined || typeof apiKey !== 'string') return undefined;
  if (kindOfKey(deps.keyPrefix, apiKey) !== 'consumer') return undefined;
  return (
    (await findKeyOwner(deps, apiKey, 'payer')) ?? (await deps.earlier.findFormerOwner(apiKey))
  );
}
