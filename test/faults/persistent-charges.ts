/**
 * Clients that charge under faults as the documentation tells them to: each charge has a key, and is sent
 * again with it until it is decided. Records every answer that was wrong.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestAccount } from '../support/accounts.ts';
import { call, type Answer } from '../support/http.ts';
import type { Server } from '../support/stack.ts';

/** Possible results of an attempt while parts of the service are down. */
export type Outcome =
  | '201'
  | '201 replayed'
  | '402'
  | '503'
  | 'outcome_unknown'
  | 'idempotency_key_in_use'
  | 'dropped';

type Payer = Pick<TestAccount, 'consumerKey'>;

const RETRY_MS = 50;

export class PersistentCharges {
  /** Ids of the charges that were answered with 201. */
  readonly made = new Set<string>();
  readonly violations: string[] = [];
  readonly outcomes = new Map<Outcome, number>();
  readonly #servers: readonly Pick<Server, 'url'>[];
  readonly #developerKey: string;
  /** Two of these on one account use different keys. */
  readonly #name = randomUUID();
  #isStopped = false;
  #keys = 0;
  #attempts = 0;

  /** The attempts go to the servers in turn. */
  constructor(servers: readonly Pick<Server, 'url'>[], developerKey: string) {
    this.#servers = servers;
    this.#developerKey = developerKey;
  }

  count(outcome: Outcome): number {
    return this.outcomes.get(outcome) ?? 0;
  }

  /** Starts no further charge; those in flight are still decided. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Makes one charge after another, with a pause after each. */
  async makeUntilStopped(account: Payer, amount: number, pauseMs = 0): Promise<void> {
    while (!this.#isStopped) {
      await this.#make(account, amount);
      if (pauseMs > 0) await delay(pauseMs);
    }
  }

  async #make(account: Payer, amount: number): Promise<void> {
    this.#keys += 1;
    const key = `${this.#name} ${this.#keys}`;
    // Until an attempt may have reached the ledger, there is nothing to replay.
    let isUnknown = false;
    for (;;) {
      const answer = await this.#attempt(account, amount, key);
      const outcome = outcomeOf(answer);
      if (outcome === undefined) {
        this.violations.push(`${answer?.status}: ${JSON.stringify(answer?.body)}`);
        return;
      }
      this.outcomes.set(outcome, this.count(outcome) + 1);
      if (outcome === '201 replayed' && !isUnknown) {
        this.violations.push(`${key} was made by an attempt that did nothing, as it said`);
      }
      if (outcome === '503' && !answer?.headers.has('retry-after')) {
        this.violations.push('a 503 without Retry-After');
      }
      if (answer?.status === 201) this.#note((answer.body as { id: string }).id);
      if (answer?.status === 201 || answer?.status === 402) return;
      isUnknown ||= outcome !== '503';
      await delay(RETRY_MS);
    }
  }

  #note(id: string): void {
    if (this.made.has(id)) this.violations.push(`${id} was the answer to two keys`);
    this.made.add(id);
  }

  /** Undefined when the connection broke. */
  async #attempt(account: Payer, amount: number, key: string): Promise<Answer | undefined> {
    this.#attempts += 1;
    const server = this.#servers[this.#attempts % this.#servers.length] as Pick<Server, 'url'>;
    try {
      return await call(server, 'POST', '/v1/charges', {
        key: this.#developerKey,
        headers: { 'idempotency-key': key },
        body: { apiKey: account.consumerKey, tool: 'search', amount },
      });
    } catch (error) {
      // fetch: the connection broke. Anything else is a bug in the test.
      if (error instanceof TypeError && error.cause !== undefined) return undefined;
      throw error;
    }
  }
}

/** Undefined for an answer that no fault explains. */
function outcomeOf(answer: Answer | undefined): Outcome | undefined {
  if (!answer) return 'dropped';
  const code = (answer.body as { error?: { code?: string } }).error?.code;
  if (answer.status === 201) {
    return answer.headers.has('idempotency-replayed') ? '201 replayed' : '201';
  }
  if (answer.status === 402) return '402';
  if (answer.status === 503) return '503';
  return code === 'outcome_unknown' || code === 'idempotency_key_in_use' ? code : undefined;
}
