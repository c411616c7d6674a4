/** Traffic of every kind at a given rate: requests start when they are due, even while earlier ones wait. */
import assert from 'node:assert/strict';
import { Agent, request as send } from 'undici';
import type { TestAccount } from '../support/accounts.ts';
import { Random } from '../support/random.ts';

const TICK_MS = 10;
/** More than this at once and the API is asked for more than it can do. */
const IN_FLIGHT_MAX = 500;
const KINDS = { charge: 80, spend: 6, hold: 5, balance: 6, usage: 2, refund: 1 } as const;
type Kind = keyof typeof KINDS;

export interface Payer extends TestAccount {
  readonly spendKey: string;
}

/** What happened since the last look. */
export interface Interval {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Reply {
  readonly id?: string;
}

const chargeOf = (apiKey: string) => ({ apiKey, tool: 'search', amount: 0.001 });

export class SoakTraffic {
  /** Answers other than 2xx, by status. */
  readonly refusals = new Map<number, number>();
  readonly counts = new Map<Kind, number>();
  readonly #url: string;
  readonly #payers: readonly Payer[];
  readonly #random: Random;
  readonly #agent = new Agent({ connections: 64, pipelining: 1 });
  readonly #inFlight = new Set<Promise<void>>();
  #tookMs: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(url: string, payers: readonly Payer[], seed: number) {
    this.#url = url;
    this.#payers = payers;
    this.#random = new Random(seed);
  }

  start(perSecond: number): void {
    let due = 0;
    let atMs = performance.now();
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      due += ((nowMs - atMs) / 1_000) * perSecond;
      atMs = nowMs;
      for (; due >= 1; due -= 1) {
        if (this.#inFlight.size < IN_FLIGHT_MAX) this.#begin();
      }
    }, TICK_MS);
  }

  /** Resolves when everything that was started is answered. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#inFlight);
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  /** As many requests as are answered, by this many clients that do not pause. */
  async measurePeak(clients: number, forMs: number): Promise<number> {
    const untilMs = performance.now() + forMs;
    this.takeInterval();
    const client = async () => {
      while (performance.now() < untilMs) await this.#act();
    };
    await Promise.all(Array.from({ length: clients }, client));
    return (this.takeInterval().requests * 1_000) / forMs;
  }

  takeInterval(): Interval {
    const sorted = this.#tookMs.toSorted((a, b) => a - b);
    this.#tookMs = [];
    const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? 0;
    return { requests: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
  }

  #begin(): void {
    const acting = this.#act().finally(() => this.#inFlight.delete(acting));
    this.#inFlight.add(acting);
  }

  async #act(): Promise<void> {
    const kind = this.#random.weighted<Kind>(KINDS);
    const payer = this.#random.pick(this.#payers);
    const startedMs = performance.now();
    await this.#do(kind, payer);
    this.#tookMs.push(performance.now() - startedMs);
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  async #do(kind: Kind, { consumerKey, developerKey, spendKey }: Payer): Promise<void> {
    const post = (path: string, body: object) => this.#send('POST', path, developerKey, body);
    if (kind === 'charge') await post('/v1/charges', chargeOf(consumerKey));
    if (kind === 'spend') await post('/v1/charges', chargeOf(spendKey));
    if (kind === 'balance') await this.#send('GET', '/v1/balance', consumerKey);
    if (kind === 'usage') await this.#send('GET', '/v1/usage?limit=10', consumerKey);
    if (kind === 'refund') {
      const made = await post('/v1/charges', chargeOf(consumerKey));
      if (made.id) await post(`/v1/charges/${made.id}/refund`, {});
    }
    if (kind === 'hold') {
      const held = await post('/v1/holds', { ...chargeOf(consumerKey), expiresIn: 60 });
      // Some are forgotten, and expire.
      if (held.id && this.#random.chance(0.9)) {
        await post(`/v1/holds/${held.id}/capture`, { amount: 0.0005 });
      }
    }
  }

  async #send(method: 'GET' | 'POST', path: string, key: string, body?: object): Promise<Reply> {
    const answer = await send(this.#url + path, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const reply = await answer.body.json();
    if (answer.statusCode >= 300) {
      assert.ok([429, 503].includes(answer.statusCode), `${path}: ${JSON.stringify(reply)}`);
      this.refusals.set(answer.statusCode, (this.refusals.get(answer.statusCode) ?? 0) + 1);
      return {};
    }
    return reply as Reply;
  }
}
