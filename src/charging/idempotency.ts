/**
 * What an idempotency key names, and what makes two requests with one key the same, for everything that the ledger
 * recognizes by a hash. The fingerprint covers the request as sent, not what follows from it: a price that changed
 * meanwhile does not turn a retry into another request. Rows keep these hashes, so none of them may ever change.
 * Refunds and top-ups are not here: their rows keep the idempotency key itself, and what was asked for. Neither are
 * requests that make keys, budgets and the like (../http/repeated-requests.ts).
 */
import { hash } from 'node:crypto';
import type { OverMode } from '../domain/hold.ts';
import { microsOfDollars, type Micros } from '../domain/money.ts';
import type { ChargeBody } from '../schemas/charges.ts';
import type { Identity, OptionalIdentity } from '../store/charges/identity.ts';

/** The identity of a request without an idempotency key. */
export const NO_IDENTITY: OptionalIdentity = { idempotencyHash: null, fingerprint: null };

interface Keyed {
  readonly developer: { readonly developerId: string };
  readonly idempotencyKey: string | undefined;
}

interface KeyedCharge extends Keyed {
  readonly body: Pick<ChargeBody, 'tool' | 'amount' | 'units' | 'metadata'>;
}

/** A charge, alone or a member of a batch. Its key names one charge of the consumer by the developer. */
export function chargeIdentity(
  { developer, body, idempotencyKey }: KeyedCharge,
  consumerId: string,
): OptionalIdentity {
  if (idempotencyKey === undefined) return NO_IDENTITY;
  const { tool, amount, units, metadata } = body;
  const sent = [tool, amountOf(amount), membersOf(metadata)];
  return {
    idempotencyHash: hashKey(consumerId + developer.developerId, idempotencyKey),
    fingerprint: fingerprintOf(units ? [...sent, membersOf(units)] : sent),
  };
}

interface KeyedHold extends KeyedCharge {
  readonly body: KeyedCharge['body'] & { readonly expiresIn?: number };
}

/** A hold. Its key names one hold of the consumer by the developer; a charge may have the same key. */
export function holdIdentity(request: KeyedHold, consumerId: string): OptionalIdentity {
  const { idempotencyHash, fingerprint } = chargeIdentity(request, consumerId);
  if (fingerprint === null) return NO_IDENTITY;
  const { expiresIn = null } = request.body;
  return { idempotencyHash, fingerprint: fingerprintOf([fingerprint, expiresIn]) };
}

interface OfHold extends Keyed {
  /** A UUID. */
  readonly holdId: string;
}

interface Capture {
  readonly amount: ChargeBody['amount'] | undefined;
  readonly units?: ChargeBody['units'] | undefined;
  readonly metadata: ChargeBody['metadata'] | undefined;
  readonly isFinal: boolean;
  readonly over: OverMode;
}

/** A capture. Its key names one capture of the hold. */
export function captureIdentity(
  { developer, holdId, idempotencyKey }: OfHold,
  { amount, units, metadata, isFinal, over }: Capture,
): OptionalIdentity {
  const sent = [amountOf(amount), membersOf(metadata), isFinal, over];
  const named = units ? [...sent, membersOf(units)] : sent;
  return identityOf(`capture${holdId}${developer.developerId}`, idempotencyKey, named);
}

/** An extension of a hold. Its key names one extension of the hold. */
export function extensionIdentity(
  { developer, holdId, idempotencyKey }: OfHold,
  seconds: number,
): OptionalIdentity {
  return identityOf(`extend${holdId}${developer.developerId}`, idempotencyKey, [seconds]);
}

interface KeyedLease extends Keyed {
  readonly tools: readonly { readonly name: string; readonly askedMicros: Micros | null }[];
  readonly amountMicros: Micros;
}

/** A lease. Its key names one lease of the consumer by the developer. */
export function leaseIdentity(
  { developer, tools, amountMicros, idempotencyKey }: KeyedLease,
  consumerId: string,
  seconds: number,
): OptionalIdentity {
  const asked = tools.map(({ name, askedMicros }) => ({ name, askedMicros }));
  const sent = [asked, amountMicros, seconds];
  return identityOf(`lease${consumerId}${developer.developerId}`, idempotencyKey, sent);
}

interface OfLease extends Keyed {
  /** A UUID. */
  readonly leaseId: string;
}

/** A renewal. Its key names one renewal of the lease. */
export function renewalIdentity(
  { developer, leaseId, idempotencyKey }: OfLease,
  seconds: number,
  fence: number | null,
): OptionalIdentity {
  return identityOf(`renew${leaseId}${developer.developerId}`, idempotencyKey, [seconds, fence]);
}

interface Call {
  readonly sequence: number;
  readonly tool: string;
  readonly amountMicros: Micros;
  readonly metadata: ChargeBody['metadata'] | undefined;
}

/** A call of a lease. Its number names it, as an idempotency key does. */
export function callIdentity(
  { developer, leaseId }: Omit<OfLease, 'idempotencyKey'>,
  { sequence, tool, amountMicros, metadata }: Call,
): Identity {
  return {
    idempotencyHash: hashKey(`settle${leaseId}${developer.developerId}`, String(sequence)),
    fingerprint: fingerprintOf([tool, amountMicros, membersOf(metadata)]),
  };
}

function identityOf(
  space: string,
  idempotencyKey: string | undefined,
  sent: readonly unknown[],
): OptionalIdentity {
  if (idempotencyKey === undefined) return NO_IDENTITY;
  return { idempotencyHash: hashKey(space, idempotencyKey), fingerprint: fingerprintOf(sent) };
}

/** The same key names something else in another `space`. */
function hashKey(space: string, idempotencyKey: string): string {
  return hash('sha256', space + idempotencyKey).slice(0, 22);
}

function fingerprintOf(sent: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(sent)).slice(0, 10);
}

/**
 * An amount sent as a number equals the same amount sent as a string. One that is no amount stays as it was sent: no
 * row has it, and it equals neither an amount nor the absence of one.
 */
function amountOf(amount: number | string | undefined): number | string | null {
  if (amount === undefined) return null;
  if (typeof amount === 'number') return Number.isFinite(amount) ? amount : String(amount);
  return microsOfDollars(amount) === undefined ? amount : Number(amount);
}

/** The members by name: the order in which they were sent does not count. */
function membersOf(members: ChargeBody['metadata'] | ChargeBody['units'] | undefined) {
  return members ? Object.entries(members).toSorted(byName) : null;
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}
