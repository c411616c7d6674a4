/**
 * Finds the charge or hold that an idempotency key made earlier. Used before refusing a request with a key: a
 * refusal says that nothing happened, which would be false for a retry of a successful request.
 */
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { findFormerKeyOwner, hashOfKey } from '../store/accounts/api-keys.ts';
import type { Identity } from '../store/charges/identity.ts';
import { findChargeByKey, type ChargeOutcome } from '../store/charges/post-charges.ts';
import { isHoldKey } from '../store/holds/post-hold-entries.ts';
import type { Database } from '../store/database.ts';
import type { DatabaseClock } from './database-clock.ts';
import { canPay } from './find-key-owner.ts';
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
