/**
 * Delivers owed webhooks, signed as Stripe signs them: again after 1 s, then at doubling intervals up to an
 * hour, for three days, until a 2xx. Each event is delivered at least once; order is not promised.
 */
import { createHmac } from 'node:crypto';
import type { OwedWebhook, Store } from './store.ts';

const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 60 * 60 * 1_000;
const GIVE_UP_MS = 3 * 24 * 60 * 60 * 1_000;
const ATTEMPT_TIMEOUT_MS = 10_000;
const IN_FLIGHT_MAX = 16;
/** setTimeout takes no more than this; looking early does no harm. */
const SLEEP_MAX_MS = 60_000;

export interface WebhookSettings {
  /** `hold` keeps what is owed until `deliver`; `drop` forgets it, as if no event had been made. */
  readonly mode: 'deliver' | 'hold' | 'drop';
  /** How many times each one is sent. */
  readonly duplicate: number;
  /** Whether what is due goes out in random order, one after the other. */
  readonly shuffle: boolean;
}

export interface WebhookEndpoint {
  readonly url: string;
  readonly secret: string;
}

export class Webhooks {
  readonly #store: Store;
  readonly #endpoint: WebhookEndpoint;
  readonly #inFlight = new Set<string>();
  #settings: WebhookSettings = { mode: 'deliver', duplicate: 1, shuffle: false };
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(store: Store, endpoint: WebhookEndpoint) {
    this.#store = store;
    this.#endpoint = endpoint;
  }

  get settings(): WebhookSettings {
    return this.#settings;
  }

  configure(settings: WebhookSettings): void {
    this.#settings = settings;
    this.pump();
  }

  /** At the start: whatever waits for a retry has waited long enough. */
  start(): void {
    this.#store.oweAllNow(Date.now());
    this.pump();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Sends what is due, as far as there is room, and wakes again for the rest. */
  pump(): void {
    clearTimeout(this.#timer);
    if (this.#closed || this.#settings.mode === 'hold') return;
    if (this.#settings.mode === 'drop') {
      this.#store.oweNothing();
      return;
    }
    const nowMs = Date.now();
    const { shuffle } = this.#settings;
    const inFlightMax = shuffle ? 1 : IN_FLIGHT_MAX;
    // What is in flight is still owed, so look past it.
    const due = this.#store
      .owedBy(nowMs, inFlightMax + this.#inFlight.size, shuffle)
      .filter(({ eventId }) => !this.#inFlight.has(eventId));
    const room = Math.max(0, inFlightMax - this.#inFlight.size);
    for (const webhook of due.slice(0, room)) void this.#deliver(webhook);
    const nextAtMs = this.#store.nextOwedAtMs(nowMs);
    if (nextAtMs !== undefined) {
      this.#timer = setTimeout(() => this.pump(), Math.min(nextAtMs - nowMs, SLEEP_MAX_MS));
    }
  }

  /** Sends one event once, whether it is owed or not; the status that came back, or undefined. */
  async send(body: string): Promise<number | undefined> {
    const timestamp = Math.floor(Date.now() / 1_000);
    const { url, secret } = this.#endpoint;
    const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
    try {
      const response = await fetch(url, {
        method: 'POST',
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS),
        headers: {
          'Content-Type': 'application/json; charset=utf-8',
          'Stripe-Signature': `t=${timestamp},v1=${signature}`,
          'User-Agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
        },
      });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return undefined;
    }
  }

  async #deliver({ eventId, body, attempts, firstAtMs }: OwedWebhook): Promise<void> {
    this.#inFlight.add(eventId);
    const copies = Array.from({ length: this.#settings.duplicate }, () => this.send(body));
    const statuses = await Promise.all(copies);
    this.#inFlight.delete(eventId);
    if (this.#closed) return;
    const accepted = statuses.every(
      (status) => status !== undefined && status >= 200 && status < 300,
    );
    const retryAtMs = Date.now() + Math.min(RETRY_FIRST_MS * 2 ** attempts, RETRY_MAX_MS);
    if (accepted || retryAtMs > firstAtMs + GIVE_UP_MS) this.#store.settle(eventId);
    else this.#store.postpone(eventId, retryAtMs);
    this.pump();
  }
}
