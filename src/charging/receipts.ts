/**
 * Receipts (specification section 2): `hmac_sha256.<key id>.<payload>.<signature>`, payload and signature
 * in base64url. The payload is the charge as JSON; the signature is HMAC-SHA-256 over everything before
 * the last dot. Each developer has a key of its own, derived from the master secret of that key id, so
 * that a developer can verify offline and no developer can sign for another.
 */
import { hash, hkdfSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { uuidTimeMs, wireId } from '../domain/ids.ts';

/** A charge as its row has it; ids are UUIDs. */
export interface ReceiptSubject {
  readonly id: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: number;
  /** Number of the master secret that signs. */
  readonly receiptKey: number;
}

const BLOCK = 64;
const DIGEST = 32;
const KEYS_MAX = 10_000;

export class ReceiptSigner {
  /** The newest secret's number: it signs what is new. */
  readonly activeKey: number;
  readonly #secrets: ReadonlyMap<number, string>;
  readonly #macs = new LRUCache<string, Hmac>({ max: KEYS_MAX });

  constructor(masterSecrets: ReadonlyMap<number, string>) {
    this.#secrets = masterSecrets;
    this.activeKey = Math.max(...masterSecrets.keys());
  }

  /** The same charge gives the same receipt, to the byte, for as long as its secret is kept. */
  sign(charge: ReceiptSubject): string {
    const payload = Buffer.from(
      JSON.stringify({
        id: wireId('charge', charge.id),
        consumerId: wireId('consumer', charge.consumerId),
        developerId: wireId('developer', charge.developerId),
        tool: charge.tool,
        micros: charge.amountMicros,
        createdAt: new Date(uuidTimeMs(charge.id)).toISOString(),
      }),
    ).toString('base64url');
    const signed = `hmac_sha256.${charge.receiptKey}.${payload}`;
    return `${signed}.${this.#macOf(charge.receiptKey, charge.developerId).digest(signed)}`;
  }

  /** The key that a developer verifies with, as base64url; undefined for a secret that is not known. */
  developerKey(receiptKey: number, developerId: string): string | undefined {
    const secret = this.#secrets.get(receiptKey);
    return secret && deriveKey(secret, developerId).toString('base64url');
  }

  #macOf(receiptKey: number, developerId: string): Hmac {
    const name = `${receiptKey}:${developerId}`;
    const cached = this.#macs.get(name);
    if (cached) return cached;
    const secret = this.#secrets.get(receiptKey);
    if (!secret) {
      throw new Error(`MASTER_SECRET has no secret number ${receiptKey}, which signed a charge`);
    }
    const mac = new Hmac(deriveKey(secret, developerId));
    this.#macs.set(name, mac);
    return mac;
  }
}

function deriveKey(secret: string, developerId: string): Buffer {
  const info = `farebox receipt ${wireId('developer', developerId)}`;
  return Buffer.from(hkdfSync('sha256', secret, '', info, DIGEST));
}

/**
 * HMAC (RFC 2104) from two one-shot hashes. `createHmac` leaves a native object to the garbage collector
 * with each call, which in a busy server costs many times the hashing itself.
 */
class Hmac {
  readonly #inner: Buffer;
  readonly #outer: Buffer;

  constructor(key: Buffer) {
    const padded = Buffer.alloc(BLOCK);
    key.copy(padded);
    this.#inner = padded.map((byte) => byte ^ 0x36) as Buffer;
    this.#outer = Buffer.alloc(BLOCK + DIGEST);
    padded.map((byte) => byte ^ 0x5c).forEach((byte, index) => (this.#outer[index] = byte));
  }

  /** Of an ASCII text, as base64url. */
  digest(text: string): string {
    const message = Buffer.allocUnsafe(BLOCK + text.length);
    this.#inner.copy(message);
    message.write(text, BLOCK, 'latin1');
    hash('sha256', message, 'buffer').copy(this.#outer, BLOCK);
    return hash('sha256', this.#outer, 'base64url');
  }
}
