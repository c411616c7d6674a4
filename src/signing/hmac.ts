/** HMAC-SHA-256, which signs receipts and links, and a comparison in constant time. */
import { hash, timingSafeEqual } from 'node:crypto';

const BLOCK = 64;
const DIGEST = 32;

/**
 * HMAC (RFC 2104) from two one-shot hashes. `createHmac` leaves a native object to the garbage collector
 * with each call, which in a busy server costs many times the hashing itself.
 */
export class Hmac {
  readonly #inner: Buffer;
  readonly #outer: Buffer;

  constructor(key: Buffer) {
    const padded = Buffer.alloc(BLOCK);
    key.copy(padded);
    this.#inner = padded.map((byte) => byte ^ 0x36) as Buffer;
    this.#outer = Buffer.alloc(BLOCK + DIGEST);
    padded.map((byte) => byte ^ 0x5c).forEach((byte, index) => (this.#outer[index] = byte));
  }

  /** The digest of an ASCII text, as base64url. */
  digest(text: string): string {
    const message = Buffer.allocUnsafe(BLOCK + text.length);
    this.#inner.copy(message);
    message.write(text, BLOCK, 'latin1');
    // As text, which costs a third as much as a Buffer.
    this.#outer.write(hash('sha256', message, 'binary'), BLOCK, 'binary');
    return hash('sha256', this.#outer, 'base64url');
  }
}

/** Compares receipts, or tokens of links, in constant time; hashing first makes the lengths equal. */
export function isSameText(a: string, b: string): boolean {
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));
}
