/**
 * Group commit for charges: what queues while a flush is in flight goes into the next one, together.
 * There is no timer: an idle server flushes a batch of one at once.
 *
 * A consumer belongs to one lane and a lane has one flush in flight, so a consumer's charges are decided
 * in order of arrival, and two flushes of a process never wait for each other's locks.
 */
import { ApiError } from '../domain/errors.ts';
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import { failureOf } from './flush-failure.ts';

export interface BatcherOptions {
  /** Makes the drafts that it can in one statement; those it leaves, undefined, go to `decide`. */
  readonly execute: Statement<ChargeOutcome | undefined>;
  /** Decides every draft in one statement, at a higher price. */
  readonly decide: Statement<ChargeOutcome>;
  readonly onFailure: (error: unknown, drafts: number) => void;
  /** Hears of each flush, whatever became of it. */
  readonly onFlush?: ((flush: Flush) => void) | undefined;
  readonly laneCount: number;
  /** More in one statement makes everybody in it wait longer, and gains little past a hundred. */
  readonly batchMax: number;
  /** Of a lane. Past it a charge is refused at once: memory and waiting stay bounded. */
  readonly queueMax: number;
  /** How long a charge may wait before it is sent; what waited longer is dropped unsent. */
  readonly deadlineMs: number;
}

export interface Flush {
  readonly charges: number;
  /** How long the first of them waited before it was sent. */
  readonly waitedMs: number;
  /** How long the database took. */
  readonly tookMs: number;
}

/** Rejects with what the database said; calls `onSent` when there is no way back. */
type Statement<Outcome> = (
  drafts: readonly ChargeDraft[],
  onSent: () => void,
) => Promise<readonly Outcome[]>;

/** Who asks for a charge. Not a closure: see decision 0014 on what those keep in memory. */
export interface Requester {
  /** Whether the client has gone, so that nobody would see the outcome. */
  isAbandoned(): boolean;
}

interface Waiting {
  readonly draft: ChargeDraft;
  readonly requester: Requester;
  readonly since: number;
  readonly resolve: (outcome: ChargeOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane {
  queue: Waiting[];
  /** Idempotency hashes of the flush in flight. */
  keysInFlight: ReadonlySet<string>;
  isFlushing: boolean;
  isScheduled: boolean;
}

export class ChargeBatcher {
  readonly #options: BatcherOptions;
  readonly #lanes: Lane[];

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.laneCount }, () => ({
      queue: [],
      keysInFlight: new Set<string>(),
      isFlushing: false,
      isScheduled: false,
    }));
  }

  /**
   * Resolves when the charge is decided and durable. `requester` is asked just before it is sent: a
   * charge whose client has gone is dropped. Rejects with an ApiError whose code says what is known:
   * `service_unavailable` (nothing happened), `idempotency_key_in_use` or `outcome_unknown`.
   */
  post(draft: ChargeDraft, requester: Requester): Promise<ChargeOutcome> {
    const lane = this.#laneOf(draft);
    if (lane.queue.length >= this.#options.queueMax) {
      return Promise.reject(unavailable('Too many charges are waiting; try again shortly.'));
    }
    return new Promise((resolve, reject) => {
      lane.queue.push({ draft, requester, since: performance.now(), resolve, reject });
      if (lane.isFlushing || lane.isScheduled) return;
      // After this turn of the event loop, so that what arrives together goes together.
      lane.isScheduled = true;
      setImmediate(() => {
        lane.isScheduled = false;
        void this.#drain(lane);
      });
    });
  }

  /** Charges that wait for a flush. */
  get waiting(): number {
    return this.#lanes.reduce((sum, { queue }) => sum + queue.length, 0);
  }

  #laneOf(draft: ChargeDraft): Lane {
    const index = Number.parseInt(draft.consumerId.slice(-4), 16) % this.#lanes.length;
    const lane = this.#lanes[index];
    if (!lane) throw new Error(`no lane ${index}`);
    return lane;
  }

  async #drain(lane: Lane): Promise<void> {
    if (lane.isFlushing) return;
    lane.isFlushing = true;
    while (lane.queue.length > 0) {
      const batch = this.#take(lane);
      if (batch.length > 0) await this.#observed(lane, batch);
    }
    lane.keysInFlight = new Set();
    lane.isFlushing = false;
  }

  async #observed(lane: Lane, batch: readonly Waiting[]): Promise<void> {
    const sentMs = performance.now();
    await this.#flush(lane, batch);
    this.#options.onFlush?.({
      charges: batch.length,
      waitedMs: sentMs - (batch[0]?.since ?? sentMs),
      tookMs: performance.now() - sentMs,
    });
  }

  /** The next batch: in order, without what expired, and with no idempotency key twice. */
  #take(lane: Lane): Waiting[] {
    const oldest = performance.now() - this.#options.deadlineMs;
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const keys = new Set<string>();
    let at = 0;
    for (; at < lane.queue.length && batch.length < this.#options.batchMax; at += 1) {
      const waiting = lane.queue[at] as Waiting;
      const key = waiting.draft.idempotencyHash;
      if (waiting.requester.isAbandoned()) {
        waiting.reject(unavailable('The client closed the connection.'));
      } else if (waiting.since < oldest) {
        waiting.reject(expired(key !== null && lane.keysInFlight.has(key)));
      } else if (key !== null && keys.has(key)) {
        later.push(waiting);
      } else {
        if (key !== null) keys.add(key);
        batch.push(waiting);
      }
    }
    lane.queue = [...later, ...lane.queue.slice(at)];
    lane.keysInFlight = keys;
    return batch;
  }

  /** Two statements, two commits: what the first made stays made, whatever becomes of the second. */
  async #flush(lane: Lane, batch: readonly Waiting[]): Promise<void> {
    const left = await this.#send(lane, batch, this.#options.execute);
    if (left.length > 0) await this.#send(lane, left, this.#options.decide);
  }

  /** Settles what the statement decided, or all of the batch when it failed; returns what it left. */
  async #send(
    lane: Lane,
    batch: readonly Waiting[],
    statement: Statement<ChargeOutcome | undefined>,
  ): Promise<Waiting[]> {
    let isSent = false;
    try {
      const outcomes = await statement(
        batch.map(({ draft }) => draft),
        () => {
          isSent = true;
        },
      );
      // Where more waits it is sent first, in this turn of the event loop: the database works on it while
      // these are answered.
      if (lane.queue.length > 0) setImmediate(settle, batch, outcomes);
      else settle(batch, outcomes);
      return batch.filter((_, index) => !outcomes[index]);
    } catch (error) {
      this.#options.onFailure(error, batch.length);
      const failure = failureOf(error, isSent);
      // A statement that the data broke did nothing at all; each charge alone shows which one it was,
      // and its neighbours are made.
      if (failure === 'rejected' && batch.length > 1) {
        for (const waiting of batch) await this.#flush(lane, [waiting]);
      } else {
        for (const waiting of batch) waiting.reject(apiErrorOf(failure, error));
      }
      return [];
    }
  }
}

function settle(batch: readonly Waiting[], outcomes: readonly (ChargeOutcome | undefined)[]): void {
  for (const [index, waiting] of batch.entries()) {
    const outcome = outcomes[index];
    if (outcome) waiting.resolve(outcome);
  }
}

function apiErrorOf(failure: ReturnType<typeof failureOf>, cause: unknown): ApiError {
  switch (failure) {
    case 'not_executed':
      return unavailable('The ledger cannot be reached; nothing was charged.', cause);
    case 'unknown':
      return new ApiError(
        'outcome_unknown',
        'The line to the ledger was lost; whether the charge was made is not known. ' +
          'Send it again with the same Idempotency-Key to find out.',
        {},
        cause,
      );
    case 'rejected':
      return new ApiError('internal_error', 'The charge could not be made.', {}, cause);
  }
}

function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('service_unavailable', message, { retryAfterSeconds: 1 }, cause);
}

function expired(isKeyInFlight: boolean): ApiError {
  return isKeyInFlight
    ? new ApiError(
        'idempotency_key_in_use',
        'A charge with this Idempotency-Key is still in flight; try again for its outcome.',
        { retryAfterSeconds: 1 },
      )
    : unavailable('The charge waited too long and was not made; try again shortly.');
}
