/**
 * A user of the service: takes random steps on its own consumers, and checks each
 * answer against the model. Actors run concurrently and share developers.
 */
import assert from 'node:assert/strict';
import {
  insertKeys,
  listKeys,
  newKey,
  newKeyRow,
  revokeKey,
} from '../../src/store/accounts/api-keys.ts';
import type { Database } from '../../src/store/database.ts';
import { call } from '../support/http.ts';
import { pay, type OpenCheckout } from '../support/payments.ts';
import { until } from '../support/stack.ts';
import {
  amountOf,
  dollarsOf,
  microsOf,
  type ChargeRequest,
  type Consumer,
  type Decision,
  type Developer,
  type MadeCharge,
} from './model.ts';
import type { Random } from '../support/random.ts';
import type { ChargeReply, Service } from './service.ts';

export interface World {
  readonly service: Service;
  readonly database: Database;
  readonly developers: readonly [Developer, ...Developer[]];
}

const WEIGHTS = {
  charge: 44,
  replay: 12,
  reuseKey: 4,
  retryRefused: 4,
  chargeBatch: 8,
  chargeAtOnce: 5,
  sameKeyAtOnce: 4,
  chargeWithBadKey: 3,
  read: 14,
  checkout: 0.5,
  decline: 0.2,
  topUp: 0.6,
  chargeDuringTopUp: 0.3,
  rollKey: 0.4,
} as const;

export type Step = keyof typeof WEIGHTS;

/** Too rare to be sure to occur in a short run. */
export const RARE_STEPS = [
  'checkout',
  'decline',
  'topUp',
  'chargeDuringTopUp',
  'rollKey',
] as const satisfies Step[];

const DECLINED_CARD = '4000000000000002';
/** Charged by amount, without a registration. */
const TOOLS_WITHOUT_PRICE = ['search', 'summarize', 'read a page'] as const;
const BATCH_MAX = 60;

export class Actor {
  readonly consumers: readonly [Consumer, ...Consumer[]];
  readonly #name: string;
  readonly #random: Random;
  readonly #world: World;
  #keys = 0;

  constructor(
    name: string,
    world: World,
    consumers: readonly [Consumer, ...Consumer[]],
    random: Random,
  ) {
    this.#name = name;
    this.#world = world;
    this.consumers = consumers;
    this.#random = random;
  }

  /** Takes the given step, or a random one; throws when the service and the model disagree. */
  async step(what: Step = this.#random.weighted(WEIGHTS)): Promise<void> {
    try {
      await this[what](this.#random.pick(this.consumers));
    } catch (error) {
      throw new Error(`${this.#name}, ${what} after key ${this.#keys}`, { cause: error });
    }
  }

  async charge(consumer: Consumer): Promise<void> {
    const request = this.#newCharge(consumer, this.#random.pick(this.#world.developers));
    consumer.settle([this.#fresh(request, await this.#service.charge(this.#random, request))]);
  }

  /** The same key and body: the same answer, after any changes. */
  async replay(consumer: Consumer): Promise<void> {
    if (consumer.charges.length === 0) return this.charge(consumer);
    const made = this.#random.pick(consumer.charges);
    this.#assertReplay(made, await this.#service.charge(this.#random, made.request));
  }

  async reuseKey(consumer: Consumer): Promise<void> {
    if (consumer.charges.length === 0) return this.charge(consumer);
    const { request, amountMicros } = this.#random.pick(consumer.charges);
    const other = { ...request, amountMicros: amountMicros + 1 };
    this.#assertRefusal(
      await this.#service.charge(this.#random, other),
      422,
      'idempotency_key_reused',
    );
  }

  /** A refusal is not stored: the same key is decided again. */
  async retryRefused(consumer: Consumer): Promise<void> {
    const [request] = consumer.refused.values();
    if (!request) return this.charge(consumer);
    consumer.refused.delete(request.key);
    consumer.settle([this.#fresh(request, await this.#service.charge(this.#random, request))]);
  }

  /** All kinds of members at once, over all consumers: new, repeated, replayed and malformed ones. */
  async chargeBatch(): Promise<void> {
    const developer = this.#random.pick(this.#world.developers);
    const news = Array.from({ length: this.#random.between(1, BATCH_MAX) }, () =>
      this.#newCharge(this.#random.pick(this.consumers), developer),
    );
    const twice = { ...this.#random.pick(news) };
    const mades = this.#random
      .pick(this.consumers)
      .charges.slice(-20)
      .filter(({ request }) => request.developer === developer);
    const reused = mades.slice(-1).map(({ request, amountMicros }) => ({
      ...request,
      amountMicros: amountMicros + 1,
    }));
    const requests: ChargeRequest[] = [
      ...news,
      twice,
      ...mades.map(({ request }) => ({ ...request })),
      ...reused,
      { ...(news[0] as ChargeRequest), key: this.#newKey(), amountMicros: -1 },
    ];
    const answers = await this.#service.chargeBatch(this.#random, developer, requests);
    this.#service.count('batch');

    const decided = [...news, twice].map((request, index) =>
      this.#service.decisionOf(request, answers[index] as ChargeReply),
    );
    for (const consumer of this.consumers) {
      consumer.settle(decided.filter(({ request }) => request.consumer === consumer));
    }
    const rest = answers.slice(decided.length);
    for (const [index, made] of mades.entries()) {
      this.#assertReplay(made, rest[index] as ChargeReply);
    }
    for (const answer of rest.slice(mades.length, -1)) {
      this.#assertRefusal(answer, 422, 'idempotency_key_reused');
    }
    this.#assertRefusal(rest.at(-1) as ChargeReply, 400, 'invalid_amount');
  }

  /** Many on both processes, sometimes more than the balance covers: as many are made as it covers. */
  async chargeAtOnce(consumer: Consumer): Promise<void> {
    const parts = this.#random.chance(0.2) ? 12 : 400;
    const requests = this.#alike(consumer, Math.max(1, Math.ceil(consumer.balance / parts)), 20);
    consumer.settle(await this.#chargeAll(requests));
    this.#service.count('at once');
  }

  async sameKeyAtOnce(consumer: Consumer): Promise<void> {
    const request = this.#newCharge(consumer, this.#random.pick(this.#world.developers));
    const copies = Array.from({ length: 5 }, () => ({ ...request }));
    const fits = amountOf(request) <= consumer.balance;
    const answers = await Promise.all(
      copies.map((copy) => this.#service.charge(this.#random, copy)),
    );
    for (const { status } of answers) assert.equal(status, fits ? 201 : 402);
    if (fits && !answers.some(({ wasUnknown }) => wasUnknown)) {
      assert.equal(answers.filter(({ isReplay }) => !isReplay).length, 1);
    }
    const decisions = answers.map((answer) => this.#service.decisionOf(request, answer));
    consumer.settle(fits ? decisions : decisions.slice(0, 1));
    this.#service.count('same key at once');
  }

  async chargeWithBadKey(consumer: Consumer): Promise<void> {
    const request = this.#newCharge(consumer, this.#random.pick(this.#world.developers));
    // Well formed but unknown; a developer's; not a key at all.
    const bad = [
      newKey('fare', 'consumer', 'live'),
      request.developer.developerKey,
      'fare_ck_live_1',
    ];
    const apiKey = this.#random.pick(bad);
    const answer = await this.#service.charge(this.#random, { ...request, apiKey });
    this.#assertRefusal(answer, 401, 'invalid_api_key');
  }

  /** Balance and usage of a consumer are exact at every moment. */
  async read(consumer: Consumer): Promise<void> {
    const { balance } = await this.#read<{ balance: number }>('/v1/balance', consumer);
    assert.equal(microsOf(balance), consumer.balance);
    const tool = this.#random.pick(consumer.charges)?.request.tool ?? 'search';
    const [all, ofTool] = await Promise.all(
      ['/v1/usage?limit=3', `/v1/usage?limit=1&tool=${encodeURIComponent(tool)}`].map((path) =>
        this.#read<{ total: number; charges: { id: string }[] }>(path, consumer),
      ),
    );
    assert.equal(microsOf(all?.total ?? NaN), consumer.spent);
    assert.equal(all?.charges.length, Math.min(3, consumer.charges.length));
    const charges = consumer.charges.filter(({ request }) => request.tool === tool);
    const spent = charges.reduce((sum, { amountMicros }) => sum + amountMicros, 0);
    assert.equal(microsOf(ofTool?.total ?? NaN), spent);
    const made = this.#random.pick(consumer.charges);
    if (!made) return;
    const { developerKey } = made.request.developer;
    const path = `/v1/charges/${made.body.id}`;
    const found = await this.#service.read<{ receipt: string }>(this.#random, path, developerKey);
    assert.equal(found.receipt, made.body.receipt);
  }

  async checkout(consumer: Consumer): Promise<void> {
    const micros = this.#random.between(500, 3_000) * 10_000;
    const { topUpId, sessionUrl } = await this.#openCheckout(consumer, micros);
    assert.ok(await pay(sessionUrl));
    await this.#credited(consumer, topUpId);
    consumer.credit(topUpId, micros);
    this.#service.count('checkout');
  }

  async decline(consumer: Consumer): Promise<void> {
    const { topUpId, sessionUrl } = await this.#openCheckout(consumer, 5_000_000);
    assert.equal(await pay(sessionUrl, DECLINED_CARD), false);
    assert.equal(await this.#statusOf(consumer, topUpId), 'pending');
    this.#service.count('declined');
  }

  async topUp(consumer: Consumer): Promise<void> {
    const micros = this.#random.between(50, 1_000) * 10_000;
    const answer = await this.#service.call(this.#random, 'POST', '/v1/top-up', {
      key: consumer.apiKey,
      headers: { 'idempotency-key': this.#newKey() },
      body: { amount: dollarsOf(micros) },
    });
    const { topUpId } = answer.body as { topUpId: string };
    assert.ok([201, 202].includes(answer.status), JSON.stringify(answer.body));
    await this.#credited(consumer, topUpId);
    consumer.credit(topUpId, micros);
    this.#service.count('direct top-up');
  }

  /** A payment is reported while charges take the balance. */
  async chargeDuringTopUp(consumer: Consumer): Promise<void> {
    const micros = 5_000_000;
    const { topUpId, sessionUrl } = await this.#openCheckout(consumer, micros);
    const amount = Math.ceil((consumer.balance + micros) / 40);
    const [, , decisions] = await Promise.all([
      pay(sessionUrl),
      this.#credited(consumer, topUpId),
      this.#chargeAll(this.#alike(consumer, amount, 60)),
    ]);
    consumer.settleAround({ id: topUpId, micros }, decisions);
    this.#service.count('charges during a top-up');
  }

  /** The new key works at once; the old one soon stops everywhere, and never works again. */
  async rollKey(consumer: Consumer): Promise<void> {
    const { database } = this.#world;
    const old = consumer.apiKey;
    const key = newKey('fare', 'consumer', 'live');
    await database.transaction(async (tx) => {
      const stored = (await listKeys(tx, consumer.accountId)).find(
        ({ kind, lastFour, revokedAt }) =>
          kind === 'consumer' && lastFour === old.slice(-4) && revokedAt === null,
      );
      assert.ok(await revokeKey(tx, { id: stored?.id ?? '' }));
      await insertKeys(tx, [newKeyRow(key, 'consumer', consumer.accountId)]);
    });
    consumer.apiKey = key;
    await this.read(consumer);
    for (const url of this.#service.urls) {
      await until(() =>
        call({ url }, 'GET', '/v1/balance', { key: old }).then(
          ({ status }) => status === 401,
          () => false,
        ),
      );
    }
    const request = { ...this.#newCharge(consumer), apiKey: old };
    this.#assertRefusal(await this.#service.charge(this.#random, request), 401, 'invalid_api_key');
    this.#service.count('key rolled');
  }

  get #service(): Service {
    return this.#world.service;
  }

  #newKey(): string {
    this.#keys += 1;
    return `${this.#name} ${this.#keys}`;
  }

  #newCharge(consumer: Consumer, developer = this.#world.developers[0]): ChargeRequest {
    const kind = this.#random.weighted({ amount: 60, price: 20, units: 20 });
    const key = this.#newKey();
    if (kind === 'units') return { consumer, developer, ...this.#units(developer), key };
    const isPriced = kind === 'price';
    return {
      consumer,
      developer,
      tool: this.#random.pick(isPriced ? [...developer.prices.keys()] : TOOLS_WITHOUT_PRICE),
      amountMicros: isPriced ? undefined : this.#amount(consumer.balance),
      key,
    };
  }

  /** At least one of the first unit, so that they cost something; mostly far less than a dollar. */
  #units(developer: Developer): Pick<ChargeRequest, 'tool' | 'amountMicros' | 'units'> {
    const random = this.#random;
    const [tool, card] = random.pick([...developer.cards]);
    const most = random.pick([1, 1_000, 20_000, 200_000]);
    const units = Object.keys(card).map((unit, index) => [
      unit,
      random.between(index === 0 ? 1 : 0, most),
    ]);
    return { tool, amountMicros: undefined, units: Object.fromEntries(units) };
  }

  /** From a single micro-dollar to the whole balance, and a little more. */
  #amount(balance: number): number {
    const random = this.#random;
    switch (random.weighted({ micros: 30, cents: 60, dollars: 4, all: 0.5, tooMuch: 6 })) {
      case 'micros':
        return random.between(1, 20_000);
      case 'cents':
        return random.between(1, 20) * 10_000;
      case 'dollars':
        return random.between(1, 3) * 1_000_000;
      case 'all':
        return Math.max(1, balance);
      case 'tooMuch':
        return balance + random.between(1, 1_000_000);
    }
  }

  /** Charges that differ only in their keys. */
  #alike(consumer: Consumer, amountMicros: number, count: number): ChargeRequest[] {
    const developer = this.#random.pick(this.#world.developers);
    const tool = this.#random.pick(TOOLS_WITHOUT_PRICE);
    return Array.from({ length: count }, () => ({
      consumer,
      developer,
      tool,
      amountMicros,
      key: this.#newKey(),
    }));
  }

  #chargeAll(requests: readonly ChargeRequest[]): Promise<Decision[]> {
    return Promise.all(
      requests.map(async (request) =>
        this.#fresh(request, await this.#service.charge(this.#random, request)),
      ),
    );
  }

  /** With a key that nobody used before: a replay means that an attempt without an answer made it. */
  #fresh(request: ChargeRequest, answer: ChargeReply): Decision {
    if (answer.isReplay) {
      assert.ok(answer.wasUnknown, `${request.key} was made before it was sent`);
      this.#service.count('made by an attempt that was not answered');
    }
    return this.#service.decisionOf(request, answer);
  }

  #assertReplay({ body }: MadeCharge, answer: ChargeReply): void {
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    assert.ok(answer.isReplay);
    assert.deepEqual(answer.body, body);
    this.#service.count('replayed');
  }

  #assertRefusal(answer: ChargeReply, status: number, code: string): void {
    const { error } = answer.body as { error?: { code: string } };
    assert.deepEqual([answer.status, error?.code], [status, code]);
    this.#service.count(code);
  }

  #read<T>(path: string, consumer: Consumer): Promise<T> {
    return this.#service.read<T>(this.#random, path, consumer.apiKey);
  }

  async #openCheckout(consumer: Consumer, micros: number): Promise<OpenCheckout> {
    const answer = await this.#service.call(this.#random, 'POST', '/v1/checkout', {
      key: consumer.apiKey,
      headers: { 'idempotency-key': this.#newKey() },
      body: { amount: dollarsOf(micros) },
    });
    assert.ok([201, 202].includes(answer.status), JSON.stringify(answer.body));
    const { topUpId } = answer.body as { topUpId: string };
    const sessionUrl = await until(() => this.#sessionUrlOf(consumer, topUpId));
    return { topUpId, sessionUrl };
  }

  async #sessionUrlOf(consumer: Consumer, topUpId: string): Promise<string | undefined> {
    return (await this.#read<{ sessionUrl?: string }>(`/v1/top-up/${topUpId}`, consumer))
      .sessionUrl;
  }

  async #statusOf(consumer: Consumer, topUpId: string): Promise<string> {
    return (await this.#read<{ status: string }>(`/v1/top-up/${topUpId}`, consumer)).status;
  }

  async #credited(consumer: Consumer, topUpId: string): Promise<void> {
    await until(async () => (await this.#statusOf(consumer, topUpId)) === 'completed');
  }
}
