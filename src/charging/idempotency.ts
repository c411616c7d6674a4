/**
 * What an idempotency key names, and what makes two requests with one key the same. A key names one charge or
 * hold of one consumer by one developer, or one capture or extension of one hold. The fingerprint covers the
 * request as sent, not what follows from it: a price that changed meanwhile does not turn a retry into
 * another request.
 */
import { hash } from 'node:crypto';
import { HOLD_SECONDS_MAX } from '../domain/hold.ts';
import { TIME_MS_MAX, uuidFloor, uuidTimeMs } from '../domain/ids.ts';
import type { ChargeBody } from '../schemas/charges.ts';
import type { Identity } from '../store/charges/identity.ts';
import type { ReplayWindow } from '../store/charges/post-charges.ts';
import { CLOCK_AHEAD_MS_MAX, IDEMPOTENCY_RETENTION_MS } from './limits.ts';

interface KeyedCharge {
  readonly developer: { readonly developerId: string };
  readonly body: Pick<ChargeBody, 'tool' | 'amount' | 'metadata'>;
  readonly idempotencyKey: string | undefined;
}

/** For a charge or a hold. Undefined without an idempotency key. */
export function hashIdentity(
  { developer, body, idempotencyKey }: KeyedCharge,
  consumerId: string,
): Identity | undefined {
  if (idempotencyKey === undefined) return undefined;
  const { tool, amount, metadata } = body;
  return {
    idempotencyHash: hashKey(consumerId + developer.developerId, idempotencyKey),
    fingerprint: fingerprintOf([tool, ...comparable({ amount, metadata })]),
  };
}

/** The same key names something else in another `space`. */
export function hashKey(space: string, idempotencyKey: string): string {
  return hash('sha256', space + idempotencyKey).slice(0, 22);
}

export function fingerprintOf(sent: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(sent)).slice(0, 10);
}

/**
 * Amount and metadata in a canonical form, equal for equal meaning: the order of the metadata's members does not count,
 * and an amount sent as a number equals the same amount sent as a string.
 */
export function comparable({
  amount,
  metadata,
}: {
  readonly amount: ChargeBody['amount'] | undefined;
  readonly metadata: ChargeBody['metadata'] | undefined;
}) {
  return [numberOf(amount), metadata ? Object.entries(metadata).toSorted(byName) : null] as const;
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

function numberOf(amount: number | string | undefined): number | null {
  return amount === undefined ? null : Number(amount);
}

/**
 * The range of charges searched for an idempotency key, as ids, which begin with a timestamp. `nowMs` is the time of
 * Postgres' clock.
 */
export function replayWindow(nowMs: number): ReplayWindow {
  return {
    fromId: uuidFloor(Math.floor(nowMs - IDEMPOTENCY_RETENTION_MS)),
    toId: uuidFloor(Math.floor(nowMs + CLOCK_AHEAD_MS_MAX)),
  };
}

/**
 * The same for the calls of a lease. They are known as long as the lease itself, because a journal may send
 * them again at any time. They have later times than the lease, unless the clock was set back, and none is
 * charged after its longest time: so an old lease is not looked up in all the months since.
 */
export function replayWindowOfLease(leaseId: string, nowMs: number): ReplayWindow {
  const { fromId, toId } = replayWindow(nowMs);
  const placedMs = uuidTimeMs(leaseId);
  const placedId = uuidFloor(Math.max(placedMs - CLOCK_AHEAD_MS_MAX, 0));
  const endedMs = placedMs + HOLD_SECONDS_MAX * 1_000 + CLOCK_AHEAD_MS_MAX;
  const endedId = uuidFloor(Math.min(endedMs, TIME_MS_MAX));
  return {
    fromId: placedId < fromId ? placedId : fromId,
    toId: endedId < toId ? endedId : toId,
  };
}
