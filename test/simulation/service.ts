/**
 * The service as its clients see it: two API processes, either of which may be down at any moment. A call is
 * repeated, on the other process, until its outcome is known; each that changes something has a key.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { call, type Answer, type CallOptions } from '../support/http.ts';
import {
  startApiProcess,
  type Environment,
  type Server,
  type ServerProcess,
} from '../support/stack.ts';
import type { ChargeBody, ChargeRequest, Decision, Developer } from './model.ts';
import { dollarsOf, isByUnits } from './model.ts';
import type { Random } from '../support/random.ts';

export interface Decided extends Answer {
  /** Whether an attempt before this answer may have done it already. */
  readonly wasUnknown: boolean;
}

/** The answer to a member of a batch, or to a single charge. */
export interface ChargeReply {
  readonly status: number;
  readonly isReplay: boolean;
  readonly wasUnknown: boolean;
  readonly body: unknown;
}

const RETRY_MS = 40;
const ATTEMPTS_MAX = 750;
const UNDECIDED: ReadonlySet<string> = new Set(['outcome_unknown', 'idempotency_key_in_use']);

export class Service {
  readonly counts = new Map<string, number>();
  readonly #processes: ServerProcess[];
  readonly #env: Environment;

  constructor(processes: readonly [ServerProcess, ServerProcess], env: Environment) {
    this.#processes = [...processes];
    this.#env = env;
  }

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  get urls(): readonly string[] {
    return this.#processes.map(({ url }) => url);
  }

  /** One of them dies with everything in flight, and comes back. */
  async kill(random: Random): Promise<void> {
    const index = random.between(0, this.#processes.length - 1);
    const victim = this.#processes[index] as ServerProcess;
    victim.kill('SIGKILL');
    await victim.exited;
    const { port } = new URL(victim.url);
    this.#processes[index] = await startApiProcess({ env: { ...this.#env, PORT: port } });
    this.count('kill');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((server) => server.stop()));
  }

  async call(random: Random, method: string, path: string, options: CallOptions): Promise<Decided> {
    let at = random.between(0, this.#processes.length - 1);
    let wasUnknown = false;
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
      const answer = await attempt(this.#processes[at] as Server, method, path, options);
      if (typeof answer === 'object' && !isUndecided(answer)) return { ...answer, wasUnknown };
      if (answer === 'nobody there') this.count(answer);
      else if (answer !== 'cut off' && answer.status === 503) this.count('unavailable');
      else {
        wasUnknown = true;
        this.count('unknown');
      }
      at = (at + 1) % this.#processes.length;
      await delay(RETRY_MS);
    }
    throw new Error(`${method} ${path} was not decided`);
  }

  async read<T>(random: Random, path: string, key: string): Promise<T> {
    const answer = await this.call(random, 'GET', path, { key });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    this.count('read');
    return answer.body as T;
  }

  async charge(random: Random, request: ChargeRequest): Promise<ChargeReply> {
    const { status, headers, body, wasUnknown } = await this.call(random, 'POST', '/v1/charges', {
      key: request.developer.developerKey,
      headers: { 'idempotency-key': request.key },
      body: bodyOf(request),
    });
    return { status, body, wasUnknown, isReplay: headers.has('idempotency-replayed') };
  }

  /** Members with an unknown outcome are sent again, until none is left. All from one developer. */
  async chargeBatch(
    random: Random,
    { developerKey }: Developer,
    requests: readonly ChargeRequest[],
  ): Promise<ChargeReply[]> {
    const answers = new Map<ChargeRequest, ChargeReply>();
    const unknown = new Set<ChargeRequest>();
    while (answers.size < requests.length) {
      const members = requests.filter((request) => !answers.has(request));
      const answer = await this.call(random, 'POST', '/v1/charges/batch', {
        key: developerKey,
        body: {
          charges: members.map((member) => ({ ...bodyOf(member), idempotencyKey: member.key })),
        },
      });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      const { results } = answer.body as { results: { status: number; replayed?: true }[] };
      assert.equal(results.length, members.length);
      for (const [index, { status, replayed, ...body }] of results.entries()) {
        const member = members[index] as ChargeRequest;
        if (answer.wasUnknown) unknown.add(member);
        if (isUndecided({ status, body })) {
          if (status !== 503) unknown.add(member);
          continue;
        }
        const wasUnknown = unknown.has(member);
        answers.set(member, { status, isReplay: replayed === true, wasUnknown, body });
      }
    }
    return requests.map((request) => answers.get(request) as ChargeReply);
  }

  /** A charge whose key is new to the model; the answer may belong to the first attempt. */
  decisionOf(request: ChargeRequest, answer: ChargeReply): Decision {
    if (answer.status === 402) {
      const { error } = answer.body as { error: { code: string; balance: number } };
      assert.equal(error.code, 'insufficient_balance');
      this.count('refused');
      return { kind: 'insufficient', request, balance: error.balance };
    }
    assert.equal(answer.status, 201, `${request.key}: ${JSON.stringify(answer.body)}`);
    this.count('made');
    if (isByUnits(request)) this.count('made by units');
    return { kind: 'made', request, body: answer.body as ChargeBody };
  }
}

function bodyOf({ consumer, apiKey, tool, amountMicros, units }: ChargeRequest) {
  return {
    apiKey: apiKey ?? consumer.apiKey,
    tool,
    ...(amountMicros === undefined ? units && { units } : { amount: dollarsOf(amountMicros) }),
  };
}

function isUndecided({ status, body }: Pick<Answer, 'status' | 'body'>): boolean {
  if (status === 503) return true;
  const code = (body as { error?: { code?: string } } | undefined)?.error?.code;
  return code !== undefined && UNDECIDED.has(code);
}

async function attempt(
  server: Server,
  method: string,
  path: string,
  options: CallOptions,
): Promise<Answer | 'nobody there' | 'cut off'> {
  try {
    return await call(server, method, path, options);
  } catch (error) {
    // What fetch throws when there is no connection, or it breaks. Anything else is a bug in the simulation.
    if (!(error instanceof TypeError && error.cause instanceof Error)) throw error;
    const isRefused = 'code' in error.cause && error.cause.code === 'ECONNREFUSED';
    return isRefused ? 'nobody there' : 'cut off';
  }
}
