/**
 * Signed top-up links: the `topUpUrl` of a refusal. For one hour, a link names a consumer, a suggested amount and the
 * developer whose charge was refused. With a link, anyone can pay for that consumer. It gives no access
 * to anything else. The token is base64url of fixed fields, a dot, and an HMAC-SHA-256 with a key derived from the master secret.
 */
import { hkdfSync } from 'node:crypto';
import { uuidOfBytes, writeUuid } from '../domain/ids.ts';
import {
  asMicros,
  microsOfCents,
  MICROS_PER_CENT,
  MICROS_PER_DOLLAR,
  type Micros,
} from '../domain/money.ts';
import { CHECKOUT_MICROS_MIN, TOP_UP_MICROS_MAX } from '../domain/top-up.ts';
import { Hmac, isSameReceipt } from './receipts.ts';

export interface TopUpLink {
  readonly consumerId: string;
  /** The developer whose charge was refused; undefined when the consumer itself asked for the top-up. */
  readonly developerId: string | undefined;
  readonly suggested: Micros;
  readonly expiresAtMs: number;
}

const LIFETIME_MS = 3_600_000;
/** Key number, consumer, developer, cents, expiry in seconds. */
const AT = { consumer: 2, developer: 18, cents: 34, expiry: 38, end: 42 } as const;
const NO_DEVELOPER = '00000000-0000-0000-0000-000000000000';
const TOKEN = /^([\w-]{56})\.[\w-]{43}$/;

export class TopUpLinks {
  readonly #baseUrl: string;
  readonly #active: number;
  readonly #macs: ReadonlyMap<number, Hmac>;

  constructor(masterSecrets: ReadonlyMap<number, string>, baseUrl: string) {
    this.#baseUrl = baseUrl;
    this.#active = Math.max(...masterSecrets.keys());
    this.#macs = new Map(
      [...masterSecrets].map(([id, secret]) => [
        id,
        new Hmac(Buffer.from(hkdfSync('sha256', secret, '', 'farebox top-up link', 32))),
      ]),
    );
  }

  /** Ids are UUIDs. `needed` is the missing amount, of any size. */
  urlFor(consumerId: string, developerId: string | undefined, needed: Micros): string {
    const fields = Buffer.alloc(AT.end);
    fields.writeUInt16BE(this.#active, 0);
    writeUuid(fields, AT.consumer, consumerId);
    writeUuid(fields, AT.developer, developerId ?? NO_DEVELOPER);
    fields.writeUInt32BE(suggestedFor(needed) / MICROS_PER_CENT, AT.cents);
    fields.writeUInt32BE(Math.floor((Date.now() + LIFETIME_MS) / 1_000), AT.expiry);
    return `${this.#baseUrl}/top-up?link=${this.#sign(this.#active, fields.toString('base64url'))}`;
  }

  /** The content of a token that is ours and unchanged. The caller checks its expiry. */
  read(token: string): TopUpLink | undefined {
    const [, encoded] = TOKEN.exec(token) ?? [];
    if (encoded === undefined) return undefined;
    const fields = Buffer.from(encoded, 'base64url');
    const keyId = fields.readUInt16BE(0);
    if (!this.#macs.has(keyId) || !isSameReceipt(this.#sign(keyId, encoded), token))
      return undefined;
    const developerId = uuidOfBytes(fields, AT.developer);
    return {
      consumerId: uuidOfBytes(fields, AT.consumer),
      developerId: developerId === NO_DEVELOPER ? undefined : developerId,
      suggested: microsOfCents(fields.readUInt32BE(AT.cents)),
      expiresAtMs: fields.readUInt32BE(AT.expiry) * 1_000,
    };
  }

  #sign(keyId: number, encoded: string): string {
    const mac = this.#macs.get(keyId);
    if (!mac) throw new Error(`MASTER_SECRET has no secret number ${keyId}`);
    return `${encoded}.${mac.digest(encoded)}`;
  }
}

/** Rounded up to whole dollars, within the limits of checkout. */
function suggestedFor(needed: Micros): Micros {
  const whole = Math.ceil(needed / MICROS_PER_DOLLAR) * MICROS_PER_DOLLAR;
  return asMicros(Math.min(Math.max(whole, CHECKOUT_MICROS_MIN), TOP_UP_MICROS_MAX));
}
