/**
 * Callers that spend by random keys of random trees of budgets, through three API processes: charges alone
 * and in batches, holds, captures, releases and refunds. As the documentation says, each request is sent
 * again under its idempotency key until its outcome is known. Adds up what was answered, by key; a tree's
 * nodes must come to the same.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TestAccount } from '../support/accounts.ts';
import { call, isToRepeat, type Answer } from '../support/http.ts';
import type { Random } from '../support/random.ts';
import type { Server } from '../support/stack.ts';

/** A spend key, its node, and what its answers add up to, in micros. */
export interface Spender {
  readonly id: string;
  readonly key: string;
  /** The ids of the budgets from the root to its own. */
  readonly path: readonly string[];
  charges: number;
  spent: number;
  refunded: number;
  held: number;
}

const RETRY_MS = 25;
/** The most charges remembered for each caller; older ones are not refunded. */
const REMEMBERED = 200;
/** A few cents, so that limits are reached after some hundreds of charges. */
const MICROS_MOST = 90_000;

type Made = { readonly by: Spender; readonly id: string; left: number };

export class BudgetTraffic {
  /** Charges and holds that were asked for. */
  spends = 0;
  readonly refusals = new Map<string, number>();
  readonly violations: string[] = [];
  readonly #servers: () => readonly Server[];
  readonly #developers: readonly TestAccount[];
  readonly #spenders: () => readonly Spender[];
  readonly #random: Random;
  readonly #batch: number;
  #keys = 0;

  constructor(
    servers: () => readonly Server[],
    developers: readonly TestAccount[],
    spenders: () => readonly Spender[],
    random: Random,
    batch: number,
  ) {
    this.#servers = servers;
    this.#developers = developers;
    this.#spenders = spenders;
    this.#random = random;
    this.#batch = batch;
  }

  /** One request after the other, until so many spends were asked for by all callers. */
  async spendUntil(spends: number): Promise<void> {
    const developer = this.#random.pick(this.#developers);
    const made: Made[] = [];
    while (this.spends < spends) {
      const fate = this.#random.weighted({ batch: 6, charge: 6, hold: 6, refund: 4 });
      if (fate === 'batch') await this.#chargeMany(developer, made);
      else if (fate === 'charge') await this.#charge(developer, made);
      else if (fate === 'hold') await this.#hold(developer, made);
      else if (made.length > 0) await this.#refund(developer, this.#random.pick(made));
      if (made.length > REMEMBERED) made.splice(0, made.length - REMEMBERED);
    }
  }

  async #charge(developer: TestAccount, made: Made[]): Promise<void> {
    const by = this.#random.pick(this.#spenders());
    const body = this.#asked(by);
    const answer = await this.#persist('/v1/charges', developer, body);
    this.#note(by, answer.status, answer.body, made);
  }

  async #chargeMany(developer: TestAccount, made: Made[]): Promise<void> {
    const asked = Array.from({ length: this.#batch }, () => this.#random.pick(this.#spenders()));
    const charges = asked.map((by) => ({ ...this.#asked(by), idempotencyKey: this.#newKey() }));
    for (;;) {
      const answer = await this.#persist('/v1/charges/batch', developer, { charges }, false);
      const { results } = answer.body as { results: { status: number }[] };
      // One whose outcome is unknown is asked for again, with all others, which are replayed.
      if (results.some(({ status }) => status === 409 || status >= 500)) continue;
      for (const [index, each] of results.entries()) {
        this.#note(asked[index] as Spender, each.status, each, made);
      }
      return;
    }
  }

  async #hold(developer: TestAccount, made: Made[]): Promise<void> {
    const by = this.#random.pick(this.#spenders());
    const body = this.#asked(by);
    const placed = await this.#persist('/v1/holds', developer, { ...body, expiresIn: 86_400 });
    if (placed.status !== 201) return this.#note(by, placed.status, placed.body, made);
    const { id } = placed.body as { id: string };
    const fate = this.#random.weighted({ capture: 5, part: 2, overflow: 2, release: 2, keep: 1 });
    const amount = Math.round(body.amount * 1e6);
    if (fate === 'keep') {
      by.held += amount;
      return;
    }
    const path = `/v1/holds/${id}/${fate === 'release' ? 'release' : 'capture'}`;
    const captures = {
      capture: {},
      part: { amount: Math.ceil(amount / 2) / 1e6 },
      overflow: { amount: (amount + 1_000) / 1e6, over: 'overflow' },
      release: undefined,
    }[fate];
    const settled = await this.#persist(path, developer, captures);
    if (fate === 'release') return this.#expect(settled, 200);
    if (settled.status === 201) return this.#note(by, settled.status, settled.body, made);
    // The excess did not fit, so the hold stays open.
    if (settled.status !== 402) this.#expect(settled, 201);
    this.#count(settled.body);
    this.#expect(await this.#persist(`/v1/holds/${id}/release`, developer, undefined), 200);
  }

  async #refund(developer: TestAccount, charge: Made): Promise<void> {
    if (charge.left === 0) return;
    const micros = this.#random.chance(0.5) ? charge.left : this.#random.between(1, charge.left);
    // Before the answer, so that nobody refunds more meanwhile.
    charge.left -= micros;
    const path = `/v1/charges/${charge.id}/refund`;
    this.#expect(await this.#persist(path, developer, { amount: micros / 1e6 }), 201);
    charge.by.refunded += micros;
  }

  #asked(by: Spender) {
    this.spends += 1;
    const amount = this.#random.between(1, MICROS_MOST) / 1e6;
    return { apiKey: by.key, tool: this.#random.pick(['search', 'fetch']), amount };
  }

  #note(by: Spender, status: number, body: unknown, made: Made[]): void {
    if (status !== 201) {
      this.#count(body);
      if (![401, 402].includes(status)) this.violations.push(JSON.stringify(body));
      return;
    }
    const { id, amount } = body as { id: string; amount: number };
    const micros = Math.round(amount * 1e6);
    by.charges += 1;
    by.spent += micros;
    made.push({ by, id, left: micros });
  }

  #count(body: unknown): void {
    const code = (body as { error?: { code?: string } }).error?.code ?? 'none';
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
  }

  #expect({ status, body }: Answer, expected: number): void {
    if (status !== expected) this.violations.push(`${status} ${JSON.stringify(body)}`);
  }

  #newKey(): string {
    this.#keys += 1;
    return `spend ${this.#keys}`;
  }

  async #persist(
    path: string,
    { developerKey: key }: TestAccount,
    body: object | undefined,
    isKeyed = true,
  ): Promise<Answer> {
    const headers = isKeyed ? { 'idempotency-key': this.#newKey() } : {};
    for (;;) {
      try {
        const server = this.#random.pick(this.#servers());
        const answer = await call(server, 'POST', path, { key, body, headers });
        if (!isToRepeat(answer)) return answer;
      } catch (error) {
        // fetch: the connection broke. Anything else is a bug in the test.
        if (!(error instanceof TypeError && error.cause !== undefined)) throw error;
      }
      await delay(RETRY_MS);
    }
  }
}
