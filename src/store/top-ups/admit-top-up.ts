/** Admits a requested top-up or refuses it: the owner's consent, its ceiling, and how many may be open or declined. */
import type { Micros } from '../../domain/money.ts';
import { openTopUpsMax } from '../../domain/top-up.ts';
import { findDeclinedWait } from './declines.ts';
import { insertTopUp } from './insert-top-up.ts';
import { leftOfMonth, lockConsent } from './monthly-ceiling.ts';
import { findByKey, type NewTopUp, type TopUp } from './top-ups.ts';
import { lockName } from '../named-lock.ts';
import { postNotice } from '../outbox.ts';
import { type Connection, countRow, sql, type Transaction } from '../database.ts';
import { idFloorOf } from '../database-ids.ts';

export type AdmitResult =
  | { readonly kind: 'admitted'; readonly topUp: TopUp }
  /** A replay: an earlier request with this idempotency key created the top-up. */
  | { readonly kind: 'known'; readonly topUp: TopUp }
  /** The idempotency key was used for a top-up with a different amount, method, payer or wish to save the card. */
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'consent_required' }
  /** The consumer already has the maximum number of open top-ups. */
  | { readonly kind: 'too_many_open' }
  /** The card was declined too often; how long until it may be charged again. */
  | { readonly kind: 'declined_too_often'; readonly retryAfterMs: number }
  | { readonly kind: 'consent_ceiling_reached'; readonly leftMicros: Micros };

/** How long the relays leave a new top-up to the request that wrote it, which starts the workflow itself. */
const IN_HAND_MS = 5_000;

/**
 * Writes the row of a new top-up, `pending` and unclaimed, and the notice that starts its workflow even if the request
 * dies; or refuses. A direct top-up needs the owner's consent, whose ceiling per UTC month holds across all processes.
 */
export async function admitTopUp(database: Connection, request: NewTopUp): Promise<AdmitResult> {
  return database.transaction(async (tx) => {
    // First: the look-up of the key and the count are then exact, and a request that waits here has locked
    // nothing else.
    await lockName(tx, `farebox.top_ups ${request.consumerId}`);
    const isDirect = request.method === 'direct';
    const consent =
      isDirect || request.savesCard ? await lockConsent(tx, request.consumerId) : null;
    const known = await findByKey(tx, request);
    if (known) return sameRequest(known, request) ? { kind: 'known', topUp: known } : REUSED;
    if (consent?.ceilingMicros === null) return { kind: 'consent_required' };
    if (consent && isDirect) {
      const leftMicros = leftOfMonth(consent);
      if (request.amountMicros > leftMicros) return { kind: 'consent_ceiling_reached', leftMicros };
      const retryAfterMs = await findDeclinedWait(tx, request.consumerId);
      if (retryAfterMs > 0) return { kind: 'declined_too_often', retryAfterMs };
    }
    if (await hasTooManyOpen(tx, request)) return { kind: 'too_many_open' };
    const topUp = await insertTopUp(tx, {
      ...request,
      consentCeilingMicros: isDirect ? (consent?.ceilingMicros ?? null) : null,
    });
    await postNotice(tx, 'top_up', topUp.id, { ledger: request.ledger, delayMs: IN_HAND_MS });
    return { kind: 'admitted', topUp };
  });
}

/** A checkout stays open for a day at most; what is older waits for an operator, and is not counted. */
const COUNTED_FROM = idFloorOf(sql.fragment`now() - interval '2 days'`);

/** What links or keys have opened does not keep the owner from topping up. */
async function hasTooManyOpen(
  tx: Transaction,
  { consumerId, byLink = false, byKey = false }: NewTopUp,
): Promise<boolean> {
  const open = await tx.oneFirst(sql.type(countRow)`
    select count(*) as count from farebox.top_ups
    where consumer_id = ${consumerId} and status = 'pending' and by_link = ${byLink}
      and id > ${COUNTED_FROM}
  `);
  return open >= openTopUpsMax({ byLink, byKey });
}

const REUSED: AdmitResult = { kind: 'key_reused' };

function sameRequest(topUp: TopUp, request: NewTopUp): boolean {
  return (
    topUp.amountMicros === request.amountMicros &&
    topUp.method === request.method &&
    topUp.savesCard === (request.savesCard ?? false) &&
    topUp.byLink === (request.byLink ?? false)
  );
}
