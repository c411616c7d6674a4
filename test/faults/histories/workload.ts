/**
 * Clients of a few consumers, who do everything that moves money through the API, much of it at once and some
 * of it with the same key. Their balances run out on the way, so refusals and charges of the last cent are
 * common.
 */
import type { TestAccount } from '../../support/accounts.ts';
import type { Answer } from '../../support/http.ts';
import type { Random } from '../../support/random.ts';
import type { Effect } from './operation.ts';
import { codeOf, microsIn, RecordedRequests } from './recorded-requests.ts';

const BURST = 4;
const CENTS_MAX = 40;
/** Test top-ups in whole dollars below these are credited at once. */
const TOP_UP_DOLLARS_MAX = 2;

interface Made {
  readonly id: string;
  readonly micros: number;
}

export class Workload {
  readonly requests: RecordedRequests;
  readonly #account: TestAccount;
  readonly #random: Random;
  readonly #charges: Made[] = [];
  readonly #holds: Made[] = [];
  #keys = 0;

  /** `account` has test keys, whose top-ups need no payment. */
  constructor(servers: readonly { readonly url: string }[], account: TestAccount, random: Random) {
    this.requests = new RecordedRequests(servers);
    this.#account = account;
    this.#random = random;
  }

  /** One client: one thing after the other. */
  async act(steps: number): Promise<void> {
    for (let step = 0; step < steps && !this.requests.isStuck; step += 1) {
      const what = this.#random.weighted({
        charge: 8,
        burst: 2,
        sameKey: 3,
        balance: 4,
        topUp: 1,
        hold: 4,
        capture: 3,
        release: 2,
        race: 4,
        refund: 3,
        refunds: 2,
      });
      await this.#do(what);
    }
  }

  /** The first operation: there is something to spend. */
  async begin(): Promise<void> {
    await this.#topUp(1);
  }

  async readBalance(): Promise<void> {
    await this.requests.make({
      method: 'GET',
      path: '/v1/balance',
      key: this.#account.consumerKey,
      effectOf: (answer) => ({ kind: 'balance', balance: microsIn(member(answer, 'balance')) }),
    });
  }

  async #do(what: string): Promise<void> {
    const [charge, hold] = [this.#random.pick(this.#charges), this.#random.pick(this.#holds)];
    if (what === 'charge') await this.#charge();
    if (what === 'burst') await Promise.all(Array.from({ length: BURST }, () => this.#charge()));
    if (what === 'sameKey') await this.#charge(2);
    if (what === 'balance') await this.readBalance();
    if (what === 'topUp') await this.#topUp(this.#random.between(1, 2));
    if (what === 'hold') await this.#hold(this.#random.between(1, 2));
    if (what === 'capture' && hold) await this.#capture(hold, this.#random.between(1, 2));
    if (what === 'release' && hold) await this.#release(hold);
    if (what === 'race' && hold) {
      await Promise.all([this.#capture(hold, 1), this.#release(hold), this.#capture(hold, 1)]);
    }
    if (what === 'refund' && charge) await this.#refund(charge, this.#random.between(1, 2));
    if (what === 'refunds' && charge) {
      await Promise.all([this.#refund(charge, 1), this.#refund(charge, 1)]);
    }
  }

  #newKey(): string {
    this.#keys += 1;
    return `operation ${this.#keys}`;
  }

  async #charge(clients = 1): Promise<void> {
    const { consumerKey: apiKey, developerKey: key } = this.#account;
    const cents = this.#random.between(1, CENTS_MAX);
    const effect = await this.requests.make(
      {
        method: 'POST',
        path: '/v1/charges',
        key,
        idempotencyKey: this.#newKey(),
        body: { apiKey, tool: 'search', amount: cents / 100 },
        effectOf: (answer) =>
          answer.status === 201 ? chargeOf(answer, cents) : refusalOf(answer, cents),
      },
      clients,
    );
    if (effect?.kind === 'charge') this.#charges.push(effect);
  }

  async #hold(clients: number): Promise<void> {
    const { consumerKey: apiKey, developerKey: key } = this.#account;
    const cents = this.#random.between(2, CENTS_MAX);
    const effect = await this.requests.make(
      {
        method: 'POST',
        path: '/v1/holds',
        key,
        idempotencyKey: this.#newKey(),
        body: { apiKey, tool: 'search', amount: cents / 100, expiresIn: 3_600 },
        effectOf: (answer) => {
          if (answer.status !== 201) return refusalOf(answer, cents);
          const effect = chargeOf(answer, cents);
          return effect?.kind === 'charge' ? { ...effect, kind: 'hold' } : undefined;
        },
      },
      clients,
    );
    if (effect?.kind === 'hold') this.#holds.push(effect);
  }

  async #capture({ id: holdId, micros }: Made, clients: number): Promise<void> {
    const cents = this.#random.between(1, micros / 10_000);
    const isFinal = this.#random.chance(0.7);
    const effect = await this.requests.make(
      {
        method: 'POST',
        path: `/v1/holds/${holdId}/capture`,
        key: this.#account.developerKey,
        idempotencyKey: this.#newKey(),
        body: { amount: cents / 100, final: isFinal, over: 'cap' },
        effectOf: (answer) => {
          if (codeOf(answer) === 'hold_closed') return { kind: 'closed', holdId, by: 'capture' };
          if (answer.status !== 201) return undefined;
          const [id, amount, balance] = ['id', 'amount', 'balance'].map((name) =>
            member(answer, name),
          );
          const captured = microsIn(amount);
          if (captured > cents * 10_000) return undefined;
          const common = { holdId, id: String(id), balance: microsIn(balance) };
          return { kind: 'capture', ...common, micros: captured, isFinal };
        },
      },
      clients,
    );
    if (effect?.kind === 'capture') this.#charges.push(effect);
  }

  async #release({ id: holdId }: Made): Promise<void> {
    await this.requests.make({
      method: 'POST',
      path: `/v1/holds/${holdId}/release`,
      key: this.#account.developerKey,
      effectOf: (answer) => {
        if (codeOf(answer) === 'hold_closed') return { kind: 'closed', holdId, by: 'release' };
        return answer.status === 200 ? { kind: 'release', holdId } : undefined;
      },
    });
  }

  async #refund({ id: chargeId, micros }: Made, clients: number): Promise<void> {
    const cents = this.#random.between(1, Math.ceil(micros / 20_000));
    const asked = cents * 10_000;
    await this.requests.make(
      {
        method: 'POST',
        path: `/v1/charges/${chargeId}/refund`,
        key: this.#account.developerKey,
        idempotencyKey: this.#newKey(),
        body: { amount: cents / 100 },
        effectOf: (answer) => {
          if (codeOf(answer) === 'refund_exceeds_charge') {
            const refundable = microsIn(member(answer, 'refundable'));
            return { kind: 'refund_refused', chargeId, micros: asked, refundable };
          }
          if (answer.status !== 201 || microsIn(member(answer, 'amount')) !== asked)
            return undefined;
          const refunded = microsIn(member(answer, 'refunded'));
          return { kind: 'refund', chargeId, micros: asked, refunded };
        },
      },
      clients,
    );
  }

  async #topUp(clients: number): Promise<void> {
    const dollars = this.#random.between(1, TOP_UP_DOLLARS_MAX);
    await this.requests.make(
      {
        method: 'POST',
        path: '/v1/top-up',
        key: this.#account.consumerKey,
        idempotencyKey: this.#newKey(),
        body: { amount: dollars },
        effectOf: (answer) => {
          if (answer.status !== 200 && answer.status !== 201) return undefined;
          return { kind: 'credit', id: String(member(answer, 'topUpId')), micros: dollars * 1e6 };
        },
      },
      clients,
    );
  }
}

function chargeOf(answer: Answer, cents: number): Effect | undefined {
  const [id, amount, balance] = ['id', 'amount', 'balance'].map((name) => member(answer, name));
  const micros = microsIn(amount);
  if (micros !== cents * 10_000) return undefined;
  return { kind: 'charge', id: String(id), micros, balance: microsIn(balance) };
}

function refusalOf(answer: Answer, cents: number): Effect | undefined {
  if (codeOf(answer) !== 'insufficient_balance') return undefined;
  return { kind: 'refusal', micros: cents * 10_000, balance: microsIn(member(answer, 'balance')) };
}

/** A member of the body, or of its error. */
function member({ body }: Answer, name: string): unknown {
  const { error } = body as { error?: Record<string, unknown> };
  return (error ?? (body as Record<string, unknown>))[name];
}
