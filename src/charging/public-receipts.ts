/**
 * Public receipts: `ed25519.<key id>.<payload>.<signature>`, the payload of a receipt (receipts.ts), signed so that
 * anyone with our public keys can verify it offline and only we can sign. There is one key for each master secret,
 * derived from it. The key of a retired secret is not published and signs nothing.
 */
import {
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import { payloadOf, type ReceiptClaim } from './receipts.ts';

/** RFC 8037, with the members that verifiers look for. */
export interface PublicKeyJwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly alg: 'EdDSA';
  readonly use: 'sig';
  /** The key id in a receipt. */
  readonly kid: string;
  readonly x: string;
}

interface Pair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** The prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const INFO = 'farebox public receipts, ed25519';
// 64 bytes leave four bits of the last character unused. They must be zero, so that a receipt has one spelling.
const RECEIPT = /^(ed25519\.(\d{1,4})\.([\w-]+))\.([\w-]{85}[AQgw])$/;

export class PublicReceipts {
  readonly #secrets: MasterSecrets;
  readonly #pairs: ReadonlyMap<number, Pair>;

  constructor(masterSecrets: MasterSecrets) {
    this.#secrets = masterSecrets;
    this.#pairs = new Map([...masterSecrets.all].map(([id, secret]) => [id, pairOf(secret)]));
  }

  get keys(): readonly PublicKeyJwk[] {
    return [...this.#secrets.trusted.keys()].map((id) => ({
      kty: 'OKP',
      crv: 'Ed25519',
      alg: 'EdDSA',
      use: 'sig',
      kid: String(id),
      x: this.#pairOf(id).publicKey.export({ format: 'jwk' }).x ?? '',
    }));
  }

  /**
   * Signs the receipt's payload, which the caller has found in the ledger. Always the same result, to the byte,
   * until the receipt's secret is retired: then the active one signs.
   */
  sign(receipt: string): string {
    const [, keyId, payload] = receipt.split('.');
    const { active, trusted } = this.#secrets;
    const signer = trusted.has(Number(keyId)) ? Number(keyId) : active;
    const signed = `ed25519.${signer}.${payload}`;
    const signature = sign(null, Buffer.from(signed), this.#pairOf(signer).privateKey);
    return `${signed}.${signature.toString('base64url')}`;
  }

  /**
   * The claim of a public receipt with our signature; otherwise undefined. A retired secret verifies too, because
   * callers compare the claim with the ledger.
   */
  read(receipt: string): ReceiptClaim | undefined {
    const [, signed = '', keyText, payload = '', signature = ''] = RECEIPT.exec(receipt) ?? [];
    const receiptKey = Number(keyText);
    const pair = this.#pairs.get(receiptKey);
    if (!pair) return undefined;
    const bytes = Buffer.from(signature, 'base64url');
    if (!verify(null, Buffer.from(signed), pair.publicKey, bytes)) return undefined;
    const said = payloadOf(payload);
    return said && { receiptKey, payload: said };
  }

  #pairOf(id: number): Pair {
    const pair = this.#pairs.get(id);
    if (!pair) throw new Error(`MASTER_SECRET has no secret number ${id}`);
    return pair;
  }
}

function pairOf(secret: string): Pair {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', INFO, 32));
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
