/**
 * Signed top-up links: the `topUpUrl` of a refusal. For one hour, a link names a consumer, a suggested amount and the
 * developer whose charge was refused. With a link, anyone can pay for that consumer. It gives no access
 * to anything else.
 */
import { NIL_UUID, uuidOfBytes, writeUuid } from '../domain/ids.ts';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import {
  asMicros,
  microsOfCents,
  MICROS_PER_CENT,
  MICROS_PER_DOLLAR,
  type Micros,
} from '../domain/money.ts';
import { CHECKOUT_MICROS_MIN } from '../domain/checkout.ts';
import { TOP_UP_MICROS_MAX } from '../domain/top-up.ts';
import { FIELDS_AT, SignedTokens } from './signed-tokens.ts';

export interface TopUpLink {
  readonly consumerId: string;
  /** The developer whose charge was refused; undefined when the consumer itself asked for the top-up. */
  readonly developerId: string | undefined;
  readonly suggestedMicros: Micros;
  readonly expiresAtMs: number;
}

/** The clock of PostgreSQL, which also decides when a link has expired. */
interface Clock {
  nowMs(): number;
}

const LIFETIME_MS = 3_600_000;
/** Key number, consumer, developer, cents, expiry in seconds. */
const AT = { consumer: FIELDS_AT, developer: 18, cents: 34, expiry: 38, end: 42 } as const;

export class TopUpLinks {
  readonly #consoleUrl: string;
  readonly #tokens: SignedTokens;
  readonly #clock: Clock;

  constructor(masterSecrets: MasterSecrets, consoleUrl: string, clock: Clock) {
    this.#clock = clock;
    this.#consoleUrl = consoleUrl;
    this.#tokens = new SignedTokens(masterSecrets, 'farebox top-up link', AT.end);
  }

  /** Ids are UUIDs. `needed` is the missing amount, of any size. */
  urlFor(consumerId: string, developerId: string | undefined, needed: Micros): string {
    const token = this.#tokens.make((fields) => {
      writeUuid(fields, AT.consumer, consumerId);
      writeUuid(fields, AT.developer, developerId ?? NIL_UUID);
      fields.writeUInt32BE(suggestedFor(needed) / MICROS_PER_CENT, AT.cents);
      fields.writeUInt32BE(Math.floor((this.#clock.nowMs() + LIFETIME_MS) / 1_000), AT.expiry);
    });
    return `${this.#consoleUrl}/top-up?link=${token}`;
  }

  /** The content of a token that is ours and unchanged. The caller checks its expiry. */
  read(token: string): TopUpLink | undefined {
    const fields = this.#tokens.open(token);
    if (!fields) return undefined;
    const developerId = uuidOfBytes(fields, AT.developer);
    return {
      consumerId: uuidOfBytes(fields, AT.consumer),
      developerId: developerId === NIL_UUID ? undefined : developerId,
      suggestedMicros: microsOfCents(fields.readUInt32BE(AT.cents)),
      expiresAtMs: fields.readUInt32BE(AT.expiry) * 1_000,
    };
  }
}

/** Rounded up to whole dollars, within the limits of checkout. */
function suggestedFor(needed: Micros): Micros {
  const whole = Math.ceil(needed / MICROS_PER_DOLLAR) * MICROS_PER_DOLLAR;
  return asMicros(Math.min(Math.max(whole, CHECKOUT_MICROS_MIN), TOP_UP_MICROS_MAX));
}
