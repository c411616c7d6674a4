/**
 * Tokens for links: fixed fields that anyone can read and nobody can change. A token is base64url of the fields, which
 * begin with the number of a master secret, a dot, and an HMAC-SHA-256 with a key derived from that secret for one
 * purpose. So a token of one kind is never one of another kind.
 */
import { hkdfSync } from 'node:crypto';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import { Hmac, isSameText } from './hmac.ts';

/** Where the fields after the secret's number begin. */
export const FIELDS_AT = 2;

export class SignedTokens {
  readonly #active: number;
  readonly #macs: ReadonlyMap<number, Hmac>;
  readonly #shape: RegExp;
  readonly #bytes: number;

  /** `bytes`: the length of the fields with the secret's number, a multiple of 3. */
  constructor({ active, trusted }: MasterSecrets, purpose: string, bytes: number) {
    this.#active = active;
    this.#macs = new Map(
      [...trusted].map(([id, secret]) => [
        id,
        new Hmac(Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))),
      ]),
    );
    this.#bytes = bytes;
    this.#shape = new RegExp(`^([\\w-]{${(bytes / 3) * 4}})\\.[\\w-]{43}$`);
  }

  /** `write` fills in the fields from FIELDS_AT on. */
  make(write: (fields: Buffer) => void): string {
    const fields = Buffer.alloc(this.#bytes);
    fields.writeUInt16BE(this.#active, 0);
    write(fields);
    return this.#sign(this.#active, fields.toString('base64url'));
  }

  /** The fields of a token that is ours and unchanged. */
  open(token: string): Buffer | undefined {
    const [, encoded] = this.#shape.exec(token) ?? [];
    if (encoded === undefined) return undefined;
    const fields = Buffer.from(encoded, 'base64url');
    const keyId = fields.readUInt16BE(0);
    if (!this.#macs.has(keyId) || !isSameText(this.#sign(keyId, encoded), token)) return undefined;
    return fields;
  }

  #sign(keyId: number, encoded: string): string {
    const mac = this.#macs.get(keyId);
    if (!mac) throw new Error(`MASTER_SECRET has no secret number ${keyId}`);
    return `${encoded}.${mac.digest(encoded)}`;
  }
}
