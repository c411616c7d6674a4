/**
 * How to recognize a retry of a request that makes a budget, a key or a webhook endpoint, or rolls a secret. Both are
 * SHA-256 as hex.
 */
import { sql } from './database.ts';

export interface RepeatedRequest {
  /** A hash of the caller's idempotency key, within what the caller sees. */
  readonly keyHash: string;
  /** A hash of what was asked for. */
  readonly requestHash: string;
}

export function hashOrNull(hash: string | undefined) {
  return hash === undefined ? sql.fragment`null` : sql.fragment`decode(${hash}, 'hex')`;
}
