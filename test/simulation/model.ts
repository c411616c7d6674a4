/**
 * The expected result of the service, in a few lines of arithmetic: balances, earnings, and the top-ups
 * that paid for them. Amounts are micro-dollars. Only one actor works on a consumer, so that the model
 * knows its state at every step; some order must explain simultaneous requests of an actor.
 */
import assert from 'node:assert/strict';

export interface Developer {
  readonly developerId: string;
  readonly developerKey: string;
  /** Prices of the tools that are registered with one. */
  readonly prices: ReadonlyMap<string, number>;
  /** The tools with a rate card, and the price of each unit in picodollars. */
  readonly cards: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export interface ChargeRequest {
  readonly consumer: Consumer;
  readonly developer: Developer;
  readonly tool: string;
  /** Undefined: what the units cost or, without units, the tool's price. */
  readonly amountMicros: number | undefined;
  /** How many of each unit, if there is no amount. */
  readonly units?: Readonly<Record<string, number>>;
  readonly key: string;
  /** In place of the consumer's own. */
  readonly apiKey?: string;
}

/** The body of a 201. */
export interface ChargeBody {
  readonly id: string;
  readonly receipt: string;
  readonly tool: string;
  readonly amount: number;
  readonly developerId: string;
  readonly consumerId: string;
  readonly balance: number;
  readonly createdAt: string;
  readonly cardVersion?: number;
}

export interface MadeCharge {
  readonly request: ChargeRequest;
  readonly amountMicros: number;
  readonly body: ChargeBody;
}

/** The result of a charge: made (perhaps by an earlier attempt), or refused for lack of balance. */
export type Decision =
  | { readonly kind: 'made'; readonly request: ChargeRequest; readonly body: ChargeBody }
  | { readonly kind: 'insufficient'; readonly request: ChargeRequest; readonly balance: number };

export class Consumer {
  readonly accountId: string;
  readonly consumerId: string;
  /** Changes when it is rolled. */
  apiKey: string;
  balance = 0;
  spent = 0;
  /** In the order in which they were credited. */
  readonly credits: { readonly topUpId: string; readonly micros: number }[] = [];
  /** In the order in which they spent. */
  readonly charges: MadeCharge[] = [];
  /** Refused charges, by key: each may be sent again. */
  readonly refused = new Map<string, ChargeRequest>();

  constructor(account: { accountId: string; consumerId: string; consumerKey: string }) {
    this.accountId = account.accountId;
    this.consumerId = account.consumerId;
    this.apiKey = account.consumerKey;
  }

  credit(topUpId: string, micros: number): void {
    this.credits.push({ topUpId, micros });
    this.balance += micros;
  }

  /** Accepts simultaneous requests if some order explains all of their results. */
  settle(decisions: readonly Decision[]): void {
    const balances = new Set([this.balance]);
    const made = distinct(decisions).toSorted(
      (one, other) => other.body.balance - one.body.balance,
    );
    for (const { request, body } of made) {
      this.#spend(request, body);
      assert.equal(microsOf(body.balance), this.balance, `the balance after ${request.key}`);
      balances.add(this.balance);
    }
    for (const decision of decisions) {
      if (decision.kind !== 'insufficient') continue;
      const { request, balance } = decision;
      assert.ok(balances.has(microsOf(balance)), `${request.key} was refused at a false balance`);
      assert.ok(microsOf(balance) < amountOf(request), `${request.key} was refused in vain`);
      this.refused.set(request.key, request);
    }
  }

  /**
   * Accepts charges of one amount and one developer that were sent while a credit arrived: their number
   * lies between the number covered without the credit and with it.
   */
  settleAround(topUp: { id: string; micros: number }, decisions: readonly Decision[]): void {
    const amount = amountOf((decisions[0] as Decision).request);
    const fits = (balance: number) => Math.min(decisions.length, Math.floor(balance / amount));
    const made = distinct(decisions);
    assert.ok(made.length >= fits(this.balance), 'a charge was refused that the balance covers');
    assert.ok(made.length <= fits(this.balance + topUp.micros), 'more was spent than there was');
    this.credit(topUp.id, topUp.micros);
    for (const { request, body } of made) this.#spend(request, body);
  }

  #spend(request: ChargeRequest, body: ChargeBody): void {
    const amountMicros = amountOf(request);
    assert.deepEqual(
      [body.tool, microsOf(body.amount), body.consumerId, body.developerId, body.cardVersion],
      [
        request.tool,
        amountMicros,
        this.consumerId,
        request.developer.developerId,
        isByUnits(request) ? 1 : undefined,
      ],
    );
    this.balance -= amountMicros;
    this.spent += amountMicros;
    this.charges.push({ request, amountMicros, body });
  }

  /** For each top-up, each developer's share of it, first in, first out. */
  *attributions(): Generator<{ topUpId: string; developerId: string; micros: number }> {
    const lots = this.credits.map((credit) => ({ ...credit }));
    for (const { request, amountMicros } of this.charges) {
      let owed = amountMicros;
      while (owed > 0) {
        const lot = lots[0];
        assert.ok(lot, 'spent more than was credited');
        const micros = Math.min(owed, lot.micros);
        if (micros > 0) {
          yield { topUpId: lot.topUpId, developerId: request.developer.developerId, micros };
        }
        lot.micros -= micros;
        owed -= micros;
        if (lot.micros === 0) lots.shift();
      }
    }
  }
}

/** One for each charge: several answers may belong to one charge, and are then equal. */
function distinct(decisions: readonly Decision[]) {
  const byId = new Map<string, Extract<Decision, { kind: 'made' }>>();
  const keys = new Map<string, string>();
  for (const decision of decisions) {
    if (decision.kind !== 'made') continue;
    const { request, body } = decision;
    assert.equal(keys.get(request.key) ?? body.id, body.id, `${request.key} made two charges`);
    keys.set(request.key, body.id);
    assert.deepEqual(body, byId.get(body.id)?.body ?? body);
    byId.set(body.id, decision);
  }
  assert.equal(byId.size, keys.size, 'two keys made one charge');
  return [...byId.values()];
}

export function isByUnits({ amountMicros, units }: ChargeRequest): boolean {
  return amountMicros === undefined && units !== undefined;
}

export function amountOf(request: ChargeRequest): number {
  const { amountMicros, developer, tool } = request;
  const micros =
    amountMicros ?? (isByUnits(request) ? costOf(request) : developer.prices.get(tool));
  if (micros === undefined) throw new Error(`${tool} has no price`);
  return micros;
}

/** Rounded half to even; no less than a micro-dollar. All picodollars of a request here are exact in a number. */
function costOf({ developer, tool, units = {} }: ChargeRequest): number {
  const prices = developer.cards.get(tool) ?? {};
  const picos = Object.entries(units).reduce(
    (sum, [unit, count]) => sum + count * (prices[unit] ?? Number.NaN),
    0,
  );
  const below = Math.floor(picos / 1e6);
  const rest = picos - below * 1e6;
  const isUp = rest === 5e5 ? below % 2 === 1 : rest > 5e5;
  return Math.max(1, isUp ? below + 1 : below);
}

export const microsOf = (dollars: number): number => Math.round(dollars * 1e6);
export const dollarsOf = (micros: number): number => micros / 1e6;
