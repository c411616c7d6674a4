/**
 * How rows store the identity of a request, as two integers of 64 bits: the first 16 of the 22 digits of the
 * idempotency key's hash; then the other six, and the ten of the fingerprint.
 */
import { sql } from '../database.ts';
import { int8ArrayOfHex } from './binary-arrays.ts';

/** The identity of a request with an idempotency key. */
export interface Identity {
  /** 22 hexadecimal digits of a hash of the idempotency key and of what it names. */
  readonly idempotencyHash: string;
  /** 10 hexadecimal digits of a hash of the request. */
  readonly fingerprint: string;
}

/** Both are null for a request without an idempotency key. */
export type OptionalIdentity = { readonly [Member in keyof Identity]: string | null };

export function hasIdentity<Asked extends OptionalIdentity>(
  asked: Asked,
): asked is Asked & Identity {
  return asked.idempotencyHash !== null && asked.fingerprint !== null;
}

/** The two columns of these requests. */
export function identityColumns(asked: readonly OptionalIdentity[]): readonly [Buffer, Buffer] {
  return [
    int8ArrayOfHex(asked.map((each) => (hasIdentity(each) ? firstHalf(each) : null))),
    int8ArrayOfHex(asked.map((each) => (hasIdentity(each) ? secondHalf(each) : null))),
  ];
}

/** The two values of one request. */
export function identityValues(asked: Identity) {
  return [bitsOf(firstHalf(asked)), bitsOf(secondHalf(asked))] as const;
}

function firstHalf({ idempotencyHash }: Identity): string {
  return idempotencyHash.slice(0, 16);
}

function secondHalf({ idempotencyHash, fingerprint }: Identity): string {
  return idempotencyHash.slice(16) + fingerprint;
}

function bitsOf(hex: string) {
  return sql.fragment`(${`x${hex}`}::bit(64))::int8`;
}
