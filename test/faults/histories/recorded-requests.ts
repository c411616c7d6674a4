/**
 * Requests that are repeated with their key until their outcome is known, and recorded as operations. What no correct
 * ledger answers in any order is a violation at once: two answers to one key, or an outcome after "nothing happened".
 */
import { AssertionError } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { asMicros, microsOfDollars } from '../../../src/domain/money.ts';
import { call, type Answer, type CallOptions } from '../../support/http.ts';
import type { Effect, Operation } from './operation.ts';

const RETRY_MS = 30;
/** Far above every outage of a run: a request that is still undecided has met a bug, which ends the run. */
const UNDECIDED_MS_MAX = 60_000;
/**
 * Several times as long as the API works on any request. An attempt without an answer has met a bug, which
 * ends the run.
 */
const ATTEMPT_MS_MAX = 30_000;

type Server = { readonly url: string };

interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** The key of the caller. */
  readonly key: string;
  readonly idempotencyKey?: string | undefined;
  readonly body?: object;
  /** Undefined for an answer that no correct service gives. */
  readonly effectOf: (answer: Answer) => Effect | undefined;
}

interface Attempt {
  readonly answer: Answer;
  readonly calledMs: number;
  readonly answeredMs: number;
}

export class RecordedRequests {
  readonly operations: Operation[] = [];
  readonly violations: string[] = [];
  /** How often each answer came, by status and code. */
  readonly answers = new Map<string, number>();
  readonly #servers: readonly Server[];
  readonly #attemptMsMax: number;
  /** Set by the first request that nobody decides, or nobody answers. */
  isStuck = false;
  readonly #undecided: { readonly request: Request; readonly unknownMs: number }[] = [];
  #attempts = 0;

  /** The attempts go to the servers in turn. */
  constructor(servers: readonly Server[], attemptMsMax = ATTEMPT_MS_MAX) {
    this.#servers = servers;
    this.#attemptMsMax = attemptMsMax;
  }

  /** One operation, asked for by any number of clients at once with one key. Returns its effect. */
  make(request: Request, clients = 1): Promise<Effect | undefined> {
    return this.#decide(request, clients, Infinity);
  }

  /**
   * Called when nothing is in flight. A retry that is refused does not tell the outcome of an earlier attempt, whose
   * statement may have waited in Postgres longer than its API process lived: the same key, sent again, does.
   */
  async resolve(): Promise<void> {
    for (const { request, unknownMs } of this.#undecided.splice(0)) {
      if (this.isStuck) return;
      await this.#decide(request, 1, unknownMs);
    }
  }

  /** `unknownMs`: when the first attempt was sent that may have done something without saying so. */
  async #decide(request: Request, clients: number, unknownMs: number): Promise<Effect | undefined> {
    const effects = new Map<string, { effect: Effect; attempt: Attempt; isReplay: boolean }[]>();
    const decide = async () => {
      const startedMs = performance.now();
      for (;;) {
        const attempt = await this.#attempt(request);
        const meaning = meaningOf(attempt?.answer);
        if (!attempt || meaning === 'unknown') {
          unknownMs = Math.min(unknownMs, attempt?.calledMs ?? startedMs);
        } else if (meaning === 'decided') {
          const effect = request.effectOf(attempt.answer);
          if (!effect) {
            this.#violate(request, `answered ${attempt.answer.status} ${text(attempt.answer)}`);
            return;
          }
          const kind = isDone(effect) ? 'done' : 'other';
          const isReplay = attempt.answer.headers.has('idempotency-replayed');
          effects.set(kind, [...(effects.get(kind) ?? []), { effect, attempt, isReplay }]);
          return;
        }
        // A repeat would get the same.
        if (attempt && codeOf(attempt.answer) === 'internal_error') {
          this.#violate(request, 'answered internal_error');
          return;
        }
        if (this.isStuck) return;
        if (performance.now() - startedMs > UNDECIDED_MS_MAX) {
          this.isStuck = true;
          this.#violate(request, `is undecided: ${attempt ? text(attempt.answer) : 'cut'}`);
          return;
        }
        await delay(RETRY_MS);
      }
    };
    await Promise.all(Array.from({ length: clients }, decide));
    for (const { effect, attempt } of effects.get('other') ?? []) this.#record(effect, attempt);
    const done = effects.get('done') ?? [];
    if (done.length === 0) {
      const isKeyed = request.idempotencyKey !== undefined;
      if (isKeyed && unknownMs < Infinity) this.#undecided.push({ request, unknownMs });
      return effects.get('other')?.[0]?.effect;
    }
    return this.#recordDone(request, done, unknownMs);
  }

  /** It happened once, before its first answer, and not before the first attempt that may have done it. */
  #recordDone(
    request: Request,
    done: readonly { effect: Effect; attempt: Attempt; isReplay: boolean }[],
    unknownMs: number,
  ): Effect {
    const [first] = done as [(typeof done)[0], ...typeof done];
    const isMarked = marksReplays(request, first.effect);
    const fresh = isMarked ? done.filter(({ isReplay }) => !isReplay) : [];
    for (const { effect } of done) {
      if (JSON.stringify(effect) !== JSON.stringify(first.effect)) {
        this.#violate(request, `has two outcomes: ${text(first.effect)} and ${text(effect)}`);
      }
    }
    if (isMarked) {
      if (fresh.length > 1) this.#violate(request, 'was made twice');
      if (fresh.length === 0 && unknownMs === Infinity) {
        this.#violate(request, 'was made by an attempt that did nothing, as it said');
      }
    }
    const calledMs = Math.min(unknownMs, ...done.map(({ attempt }) => attempt.calledMs));
    const answeredMs = Math.min(...done.map(({ attempt }) => attempt.answeredMs));
    // An answer that is no replay says which attempt made it.
    const made = fresh[0]?.attempt.calledMs ?? calledMs;
    if (made > answeredMs) this.#violate(request, 'was replayed before it was made');
    else this.#record(first.effect, { calledMs: made, answeredMs });
    return first.effect;
  }

  #record(effect: Effect, { calledMs, answeredMs }: Omit<Attempt, 'answer'>): void {
    this.operations.push({ effect, calledMs, answeredMs });
  }

  #violate({ method, path, body }: Request, what: string): void {
    this.violations.push(`${method} ${path} ${text(body ?? {})} ${what}`);
  }

  /** Undefined when the connection broke. */
  async #attempt(request: Request): Promise<Attempt | undefined> {
    this.#attempts += 1;
    const server = this.#servers[this.#attempts % this.#servers.length] as Server;
    const { method, path, key, idempotencyKey, body } = request;
    const options: CallOptions = {
      key,
      body,
      headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
      timeoutMs: this.#attemptMsMax,
    };
    const calledMs = performance.now();
    const answer = await call(server, method, path, options).catch((error: unknown) => {
      // fetch: the connection broke.
      if (error instanceof TypeError && error.cause !== undefined) return undefined;
      if (error instanceof DOMException && error.name === 'TimeoutError') {
        this.isStuck = true;
        this.#violate(request, `has no answer after ${this.#attemptMsMax} ms`);
        return undefined;
      }
      // The answer is not in the contract. Anything else is a bug in the test.
      if (error instanceof AssertionError) {
        this.#violate(request, error.message.slice(0, 300));
        return undefined;
      }
      throw error;
    });
    const seen = answer ? `${answer.status} ${codeOf(answer) ?? ''}`.trim() : 'cut';
    this.answers.set(seen, (this.answers.get(seen) ?? 0) + 1);
    return answer && { answer, calledMs, answeredMs: performance.now() };
  }
}

/** Micro-dollars of an answer's amount. */
export function microsIn(dollars: unknown): number {
  return asMicros(microsOfDollars(dollars as number) ?? Number.NaN);
}

export function codeOf({ body }: Answer): string | undefined {
  return (body as { error?: { code?: string } }).error?.code;
}

/** By the promise of the API: 503 and 429 mean that nothing happened. */
function meaningOf(answer: Answer | undefined): 'decided' | 'nothing' | 'unknown' {
  if (!answer) return 'unknown';
  if (answer.status === 503 || answer.status === 429) return 'nothing';
  if (answer.status === 500 || codeOf(answer) === 'idempotency_key_in_use') return 'unknown';
  return 'decided';
}

/**
 * Whether an answer says if an earlier attempt did it. Answers to top-ups and to releases do not: the second
 * release of a hold is answered as the first one is.
 */
function marksReplays({ idempotencyKey }: Request, { kind }: Effect): boolean {
  return idempotencyKey !== undefined && kind !== 'credit';
}

/** Whether the key did something, so that a repeat gets the same. */
function isDone({ kind }: Effect): boolean {
  return ['charge', 'hold', 'capture', 'refund', 'credit', 'release'].includes(kind);
}

const text = (value: unknown) =>
  JSON.stringify(value instanceof Object && 'body' in value ? value.body : value).slice(0, 300);
