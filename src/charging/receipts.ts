/**
 * Receipts (specification section 2): `hmac_sha256.<key id>.<payload>.<signature>`, payload and signature
 * in base64url. The payload is the charge as JSON; the signature is HMAC-SHA-256 over everything before
 * the last dot. Each developer has a key of its own, derived from the master secret of that key id, so
 * that a developer can verify offline and no developer can sign for another.
 */
import { hkdfSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Hmac, isSameText } from '../signing/hmac.ts';
import { uuidOf, uuidTimeMs, wireId } from '../domain/ids.ts';
import type { MasterSecrets } from '../domain/master-secrets.ts';

/** A charge with the values of its row; ids are UUIDs. */
export interface ReceiptSubject {
  readonly id: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: number;
  /** The version of the rate card that priced it; 0 for none. */
  readonly cardVersion: number;
  /** Number of the master secret that signs. */
  readonly receiptKey: number;
  /** A charge of play money. */
  readonly isTest: boolean;
}

/**
 * What a receipt states about a charge, in this order; ids as on the wire. Only receipts of charges by a rate card have
 * `cardVersion`, and only test receipts `livemode`.
 */
export interface ReceiptPayload {
  readonly id: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly tool: string;
  readonly micros: number;
  readonly createdAt: string;
  readonly cardVersion?: number;
  readonly livemode?: false;
}

export interface VerifiedCharge extends ReceiptSubject {
  readonly createdAt: string;
}

export interface ReceiptClaim {
  readonly receiptKey: number;
  readonly payload: Readonly<Record<string, unknown>>;
}

const KEY_BYTES = 32;
const KEYS_MAX = 10_000;

export class ReceiptSigner {
  /** The number of the secret that signs new receipts. */
  readonly activeKey: number;
  readonly #secrets: MasterSecrets;
  readonly #macs = new LRUCache<string, Hmac>({ max: KEYS_MAX });

  constructor(masterSecrets: MasterSecrets) {
    this.#secrets = masterSecrets;
    this.activeKey = masterSecrets.active;
  }

  /** The same charge gives the same receipt, to the byte, for as long as its secret is kept. */
  sign(charge: ReceiptSubject): string {
    return this.signPayload(charge.receiptKey, receiptPayload(charge));
  }

  /** Signs a charge, or anything else that a developer's key signs: see invocation-receipts.ts. */
  signPayload(receiptKey: number, payload: { readonly developerId: string }): string {
    const encoded = Buffer.from(JSON.stringify(payload)).toString('base64url');
    const signed = `hmac_sha256.${receiptKey}.${encoded}`;
    return `${signed}.${this.#macOf(receiptKey, payload.developerId).digest(signed)}`;
  }

  /**
   * The charge in a receipt that is ours and unchanged to the byte; otherwise undefined. A retired secret verifies too,
   * because callers compare the charge with the ledger's.
   */
  verify(receipt: string): VerifiedCharge | undefined {
    const claim = this.readClaim(receipt);
    const payload = claim && parsePayload(claim.payload);
    if (!payload) return undefined;
    const charge = { ...payload, receiptKey: claim.receiptKey };
    // Signing again and comparing the whole receipt accepts only one spelling.
    return isSameText(this.sign(charge), receipt) ? charge : undefined;
  }

  /** Decodes a receipt signed with a known key. Does not verify it. */
  readClaim(receipt: string): ReceiptClaim | undefined {
    const [, keyText, payload] =
      /^hmac_sha256\.(\d{1,4})\.([\w-]+)\.[\w-]{43}$/.exec(receipt) ?? [];
    if (keyText === undefined || payload === undefined) return undefined;
    const receiptKey = Number(keyText);
    if (!this.#secrets.all.has(receiptKey)) return undefined;
    const said = payloadOf(payload);
    return said && { receiptKey, payload: said };
  }

  /**
   * The keys with which a developer verifies receipts, as base64url, with their ids. None is of a retired secret, whose
   * thief could sign receipts that no charge has.
   */
  developerKeys(developerId: string): { readonly id: number; readonly key: string }[] {
    return [...this.#secrets.trusted].map(([id, secret]) => ({
      id,
      key: deriveKey(secret, wireId('developer', developerId)).toString('base64url'),
    }));
  }

  /** `developerId` is the id on the wire. */
  #macOf(receiptKey: number, developerId: string): Hmac {
    const name = `${receiptKey}:${developerId}`;
    const cached = this.#macs.get(name);
    if (cached) return cached;
    const secret = this.#secrets.all.get(receiptKey);
    if (!secret) {
      throw new Error(`MASTER_SECRET has no secret number ${receiptKey}, which signed a receipt`);
    }
    const mac = new Hmac(deriveKey(secret, developerId));
    this.#macs.set(name, mac);
    return mac;
  }
}

export function receiptPayload(charge: ReceiptSubject): ReceiptPayload {
  const payload = {
    id: wireId('charge', charge.id),
    consumerId: wireId('consumer', charge.consumerId),
    developerId: wireId('developer', charge.developerId),
    tool: charge.tool,
    micros: charge.amountMicros,
    createdAt: isoTime(uuidTimeMs(charge.id)),
  };
  if (!charge.isTest && charge.cardVersion === 0) return payload;
  return {
    ...payload,
    ...(charge.cardVersion > 0 && { cardVersion: charge.cardVersion }),
    ...(charge.isTest && { livemode: false }),
  };
}

/** The last result: many charges of one flush share a millisecond. */
const latest = { ms: 0, iso: '' };

function isoTime(ms: number): string {
  if (ms !== latest.ms) {
    latest.iso = new Date(ms).toISOString();
    latest.ms = ms;
  }
  return latest.iso;
}

/** The payload's members as UUIDs and micros; undefined for anything that we would not have signed. */
function parsePayload(
  payload: ReceiptClaim['payload'],
): Omit<VerifiedCharge, 'receiptKey'> | undefined {
  const { tool, micros, createdAt, cardVersion = 0, livemode } = payload;
  const id = uuidOf('charge', payload['id']);
  const consumerId = uuidOf('consumer', payload['consumerId']);
  const developerId = uuidOf('developer', payload['developerId']);
  if (!id || !consumerId || !developerId) return undefined;
  if (typeof tool !== 'string' || typeof createdAt !== 'string') return undefined;
  if (typeof micros !== 'number' || !Number.isSafeInteger(micros)) return undefined;
  if (typeof cardVersion !== 'number') return undefined;
  const isTest = livemode !== undefined;
  const amountMicros = micros;
  return { id, consumerId, developerId, tool, amountMicros, cardVersion, createdAt, isTest };
}

/** The JSON object of an encoded payload; undefined when it is not one. */
export function payloadOf(encoded: string): ReceiptClaim['payload'] | undefined {
  try {
    return Object(JSON.parse(Buffer.from(encoded, 'base64url').toString()));
  } catch {
    return undefined;
  }
}

function deriveKey(secret: string, developerId: string): Buffer {
  const info = `farebox receipt ${developerId}`;
  return Buffer.from(hkdfSync('sha256', secret, '', info, KEY_BYTES));
}
