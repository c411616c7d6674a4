/**
 * One lease of the service: what is left of it, until when, and the calls that are not settled yet. Amounts are whole
 * micro-dollars. Requests about it are sent one after the other, so that none has an older fence than the one before.
 */
import { elapsedMs } from './clock.js';

const MICROS_PER_DOLLAR = 1_000_000;
/** Decisions end this long before the lease does, so that they can still be settled. */
const MARGIN_MS = 3_000;
export const BATCH_MAX = 1_000;
/** UTF-8 needs at most three bytes per character, and the service accepts bodies of 1 MiB. */
const METADATA_CHARS_MAX = 256 * 1024;

export class Slice {
  id;
  prices;
  left;
  /** Below it, the next lease is taken in advance. */
  low;
  /** By the clock of clock.js: the wall clock of this machine may be wrong. */
  deadline = 0;
  /** When it ends, by the same clock. Its calls cannot be settled afterwards. */
  expiresAt = 0;
  fence = 0;
  sequence = 0;
  takenAt;
  /** Resolves when it is given back; undefined while it is used. */
  released;
  /** Why it is smaller than was asked for, if it is. */
  refusal;
  /** Calls that are being written to the journal. */
  writing = 0;
  /** The key of a renewal whose answer was lost. */
  renewalKey;
  /** The calls of the settlement that is being sent. */
  sending = [];
  #batch = [];
  #full = [];
  #metadataChars = 0;
  #turn = Promise.resolve();
  #isEnded = false;

  /** `askedAt`: when the request was sent, which is before the service's clock ran. */
  constructor(lease, askedAt) {
    this.id = lease.id;
    this.takenAt = askedAt;
    this.left = microsOf(lease.remaining);
    this.low = Math.ceil(this.left / 2);
    this.renewed(lease, askedAt);
  }

  renewed({ fence, tools, expiresIn }, askedAt) {
    this.fence = fence;
    this.prices = new Map(tools.map(({ name, price }) => [name, microsOf(price)]));
    this.expiresAt = askedAt + expiresIn * 1_000;
    if (!this.#isEnded) this.deadline = this.expiresAt - MARGIN_MS;
    this.renewalKey = undefined;
  }

  /** The renewal was made and its answer lost. Its key belongs to the older fence, so the next renewal is a new one. */
  fencedAnew(fence) {
    this.fence = fence;
    this.renewalKey = undefined;
  }

  /** Nothing is decided any more, even if the answer to a renewal is still to come. */
  end() {
    this.#isEnded = true;
    this.deadline = 0;
  }

  /** How long a settlement may wait: another attempt has to come before the end. After it, there is no hurry. */
  get patienceMs() {
    const leftMs = this.expiresAt - elapsedMs();
    return leftMs > 0 ? leftMs - MARGIN_MS : Infinity;
  }

  get cheapest() {
    return Math.min(...this.prices.values());
  }

  /** Something is left, and covers no tool. */
  get hasUselessRest() {
    return this.left > 0 && this.left < this.cheapest;
  }

  get count() {
    return this.#batch.length + this.#full.length * BATCH_MAX;
  }

  get hasFullBatch() {
    return this.#full.length > 0;
  }

  /** The number of the oldest call that has no answer yet; Infinity when all have one. */
  get first() {
    const [oldest] = [this.sending[0], this.#full[0]?.[0], this.#batch[0]].filter(Boolean);
    return oldest?.sequence ?? Infinity;
  }

  /** Returns whether a batch is full. */
  add(entry, metadataChars) {
    this.#batch.push(entry);
    this.#metadataChars += metadataChars;
    if (this.#batch.length < BATCH_MAX && this.#metadataChars < METADATA_CHARS_MAX) return false;
    this.#full.push(this.#batch);
    this.#batch = [];
    this.#metadataChars = 0;
    return true;
  }

  /** The oldest calls; empty when all are taken. */
  takeBatch() {
    if (this.#full.length > 0) {
      this.sending = this.#full.shift();
      return this.sending;
    }
    this.sending = this.#batch;
    this.#batch = [];
    this.#metadataChars = 0;
    return this.sending;
  }

  /** The lease, sequence, tool, amount and metadata of each call, up to the last one, that has no answer yet. */
  unsettled(last = Infinity) {
    return [...this.sending, ...this.#full.flat(), ...this.#batch]
      .filter(({ sequence }) => sequence <= last)
      .map(({ sequence, tool, micros, metadata }) => ({
        leaseId: this.id,
        sequence,
        tool,
        amount: dollarsOf(micros),
        ...(metadata !== undefined && { metadata }),
      }));
  }

  /** Runs one request after the other. */
  inTurn(send) {
    const done = this.#turn.then(send);
    this.#turn = done.catch(() => {});
    return done;
  }
}

/** The request for a lease. `refusal`: why it is less than the lease should have. */
export function askFor(amount, refusal) {
  return { amount, idempotencyKey: crypto.randomUUID(), refusal };
}

/** Dollars that a smaller lease than the refused one can have, if that covers a call. */
export function roomOf({ remaining, balance, scope }, leastMicros = 1) {
  const room = remaining ?? balance;
  return microsOf(room) >= leastMicros && scope !== 'per_call' ? room : undefined;
}

export function microsOf(dollars) {
  return Math.round(dollars * MICROS_PER_DOLLAR);
}

export function dollarsOf(micros) {
  return micros / MICROS_PER_DOLLAR;
}
