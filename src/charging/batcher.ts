/**
 * Group commit for charges: charges that queue while a flush is in flight go into the next one, together. There is no
 * timer: an idle server flushes a batch of one at once.
 *
 * A consumer belongs to one lane at a time and a lane has one flush in flight, so a consumer's charges are decided in
 * order of arrival, and two flushes of a process never wait for each other's locks. A lane serves developers in turn.
 *
 * Two lanes are for exceptions, so that these delay nobody else: `careful` decides charge by charge for consumers whose
 * charges do not simply fit, and `held` waits for consumers whose row another transaction has locked. A consumer
 * returns to its own lane when none of its charges are left there.
 */
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import { classifyFailure, isLockTimeout } from '../store/failures.ts';
import { ChargeFailure } from './charge-failure.ts';
import { FairQueue } from './fair-queue.ts';

export interface BatcherOptions {
  /** Makes the drafts that it can in one statement. Its outcome for the others is undefined; they go to `decide`. */
  readonly execute: Statement<ChargeOutcome | undefined>;
  /** Decides every draft in one statement, at a higher price. */
  readonly decide: Statement<ChargeOutcome>;
  /** Consumers of these drafts whose rows are locked now. */
  readonly findLocked: (drafts: readonly ChargeDraft[]) => Promise<ReadonlySet<string>>;
  readonly onFailure: (error: unknown, drafts: number) => void;
  /** Called after each flush, successful or not. */
  readonly onFlush?: ((flush: Flush) => void) | undefined;
  readonly laneCount: number;
  readonly batchMax: number;
  /** The most charges waiting in a lane, in total and by one developer. Beyond it, a charge is refused at once. */
  readonly queueMax: number;
  readonly queueMaxByDeveloper: number;
  /** How long a charge may wait before it is sent; after that it is dropped unsent. */
  readonly deadlineMs: number;
}

export interface Flush {
  readonly charges: number;
  /** How long the oldest charge waited before it was sent. */
  readonly waitedMs: number;
  /** How long the database took. */
  readonly tookMs: number;
}

/** Rejects with the database's error. Calls `onSent` at the point of no return. */
type Statement<Outcome> = (
  drafts: readonly ChargeDraft[],
  onSent: () => void,
) => Promise<readonly Outcome[]>;

/** The caller of a charge. Not a closure: decision 0014 says how much memory closures hold. */
export interface Requester {
  /** Whether the client has disconnected, so that nobody would see the outcome. */
  isAbandoned(): boolean;
}

interface Waiting {
  readonly draft: ChargeDraft;
  readonly requester: Requester;
  readonly since: number;
  readonly resolve: (outcome: ChargeOutcome) => void;
  readonly reject: (error: unknown) => void;
  /** Counted in `#away`: it is, or will be, in a lane other than its consumer's own. */
  isAway: boolean;
}

interface Lane {
  readonly queue: FairQueue<Waiting>;
  readonly statement: Statement<ChargeOutcome | undefined>;
  /** Idempotency hashes of the flush in flight. */
  keysInFlight: ReadonlySet<string>;
  isFlushing: boolean;
  isScheduled: boolean;
}

/** The lane that a consumer uses instead of its own while it has charges there. */
interface Stay {
  lane: Lane;
  charges: number;
}

export class ChargeBatcher {
  readonly #options: BatcherOptions;
  readonly #lanes: readonly Lane[];
  readonly #careful: Lane;
  readonly #held: Lane;
  readonly #away = new Map<string, Stay>();

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.laneCount }, () => newLane(options.execute));
    this.#careful = newLane(options.decide);
    this.#held = newLane(options.decide);
  }

  /**
   * Resolves when the charge is decided and durable. Just before sending, it drops a charge whose client has
   * disconnected, according to `requester`. Rejects with a ChargeFailure, or with the database's error when the
   * charge's data is invalid; in that case nothing was charged.
   */
  post(draft: ChargeDraft, requester: Requester): Promise<ChargeOutcome> {
    const lane = this.#laneOf(draft);
    if (this.#isFull(lane, draft)) {
      return Promise.reject(new ChargeFailure('not_made', 'Too many charges are waiting.'));
    }
    return new Promise((resolve, reject) => {
      const since = performance.now();
      lane.queue.push(draft.developerId, {
        draft,
        requester,
        since,
        resolve,
        reject,
        isAway: false,
      });
      this.#schedule(lane);
    });
  }

  /** Charges that wait for a flush. */
  get waiting(): number {
    const lanes = [...this.#lanes, this.#careful, this.#held];
    return lanes.reduce((sum, { queue }) => sum + queue.size, 0);
  }

  #laneOf(draft: ChargeDraft): Lane {
    const index = Number.parseInt(draft.consumerId.slice(-4), 16) % this.#lanes.length;
    const lane = this.#lanes[index];
    if (!lane) throw new Error(`no lane ${index}`);
    return lane;
  }

  #isFull({ queue }: Lane, { developerId }: ChargeDraft): boolean {
    const { queueMax, queueMaxByDeveloper } = this.#options;
    return queue.size >= queueMax || queue.sizeOf(developerId) >= queueMaxByDeveloper;
  }

  #schedule(lane: Lane): void {
    if (lane.isFlushing || lane.isScheduled) return;
    // After this turn of the event loop, so that charges that arrive together are sent together.
    lane.isScheduled = true;
    setImmediate(() => {
      lane.isScheduled = false;
      void this.#drain(lane);
    });
  }

  async #drain(lane: Lane): Promise<void> {
    if (lane.isFlushing) return;
    lane.isFlushing = true;
    while (lane.queue.size > 0) {
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

  /** The next batch: developers in turn, without expired charges, and each idempotency key at most once. */
  #take(lane: Lane): Waiting[] {
    const oldest = performance.now() - this.#options.deadlineMs;
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const keys = new Set<string>();
    while (batch.length < this.#options.batchMax) {
      const waiting = lane.queue.take();
      if (!waiting) break;
      const key = waiting.draft.idempotencyHash;
      const stay = this.#away.size > 0 ? this.#away.get(waiting.draft.consumerId) : undefined;
      if (stay && stay.lane !== lane) {
        this.#moveTo(stay.lane, waiting);
      } else if (waiting.requester.isAbandoned()) {
        this.#reject(waiting, new ChargeFailure('not_made', 'The client closed the connection.'));
      } else if (waiting.since < oldest) {
        this.#reject(waiting, expired(key !== null && lane.keysInFlight.has(key)));
      } else if (key !== null && keys.has(key)) {
        later.push(waiting);
      } else {
        if (key !== null) keys.add(key);
        batch.push(waiting);
      }
    }
    putBack(lane, later);
    lane.keysInFlight = keys;
    return batch;
  }

  /** Sends the batch. Charges that the statement did not decide, or whose consumer is locked, change lanes. */
  async #flush(lane: Lane, batch: readonly Waiting[]): Promise<void> {
    let isSent = false;
    try {
      const outcomes = await lane.statement(
        batch.map(({ draft }) => draft),
        () => {
          isSent = true;
        },
      );
      for (const [index, waiting] of batch.entries()) {
        if (!outcomes[index]) this.#moveTo(this.#careful, waiting);
      }
      // If more charges wait, they are sent first, in this turn of the event loop: the database works on them while
      // these are answered.
      if (lane.queue.size > 0) setImmediate(() => this.#resolve(batch, outcomes));
      else this.#resolve(batch, outcomes);
    } catch (error) {
      const failure = classifyFailure(error, isSent);
      const free = isLockTimeout(error) ? await this.#partLocked(lane, batch) : undefined;
      if (free) return free.length > 0 ? this.#flush(lane, free) : undefined;
      this.#options.onFailure(error, batch.length);
      // A statement that failed because of its data changed nothing. Sending each charge alone finds the faulty one and
      // makes the others.
      if (failure === 'rejected' && batch.length > 1) {
        for (const waiting of batch) {
          const stay = this.#away.get(waiting.draft.consumerId);
          if (stay && stay.lane !== lane) this.#moveTo(stay.lane, waiting);
          else await this.#flush(lane, [waiting]);
        }
      } else {
        for (const waiting of batch) this.#reject(waiting, rejectionFor(failure, error));
      }
    }
  }

  /**
   * After a lock timeout, which rolled back the whole flush: only the locked consumers keep waiting. Returns the other
   * charges, to be sent at once; undefined when the locked consumers are unknown.
   */
  async #partLocked(lane: Lane, batch: readonly Waiting[]): Promise<Waiting[] | undefined> {
    try {
      const locked = await this.#options.findLocked(batch.map(({ draft }) => draft));
      const free = batch.filter(({ draft }) => !locked.has(draft.consumerId));
      // The lock may have been released by now.
      if (free.length === batch.length) putBack(lane, free);
      for (const waiting of batch) {
        if (locked.has(waiting.draft.consumerId)) this.#moveTo(this.#held, waiting);
      }
      return free.length === batch.length ? [] : free;
    } catch {
      return undefined;
    }
  }

  #moveTo(lane: Lane, waiting: Waiting): void {
    const { consumerId, developerId } = waiting.draft;
    let stay = this.#away.get(consumerId);
    if (!stay) {
      stay = { lane, charges: 0 };
      this.#away.set(consumerId, stay);
    }
    stay.lane = lane;
    if (!waiting.isAway) {
      waiting.isAway = true;
      stay.charges += 1;
    }
    if (this.#isFull(lane, waiting.draft)) {
      this.#reject(waiting, new ChargeFailure('not_made', 'Too many charges are waiting.'));
      return;
    }
    lane.queue.push(developerId, waiting);
    this.#schedule(lane);
  }

  #resolve(batch: readonly Waiting[], outcomes: readonly (ChargeOutcome | undefined)[]): void {
    for (const [index, waiting] of batch.entries()) {
      const outcome = outcomes[index];
      if (!outcome) continue;
      this.#comeBack(waiting);
      waiting.resolve(outcome);
    }
  }

  #reject(waiting: Waiting, error: unknown): void {
    this.#comeBack(waiting);
    waiting.reject(error);
  }

  #comeBack({ isAway, draft: { consumerId } }: Waiting): void {
    if (!isAway) return;
    const stay = this.#away.get(consumerId);
    if (!stay) return;
    stay.charges -= 1;
    if (stay.charges === 0) this.#away.delete(consumerId);
  }
}

function newLane(statement: Lane['statement']): Lane {
  return {
    queue: new FairQueue(),
    statement,
    keysInFlight: new Set<string>(),
    isFlushing: false,
    isScheduled: false,
  };
}

function putBack({ queue }: Lane, batch: readonly Waiting[]): void {
  for (const waiting of batch.toReversed()) queue.putBack(waiting.draft.developerId, waiting);
}

function rejectionFor(failure: ReturnType<typeof classifyFailure>, cause: unknown): unknown {
  switch (failure) {
    case 'not_executed':
      return new ChargeFailure('not_made', 'The database cannot be reached.', cause);
    case 'unknown':
      return new ChargeFailure(
        'outcome_unknown',
        'The connection to the database was lost.',
        cause,
      );
    case 'rejected':
      return cause;
  }
}

function expired(isKeyInFlight: boolean): ChargeFailure {
  return isKeyInFlight
    ? new ChargeFailure('key_in_flight', 'Another charge with this key is being decided.')
    : new ChargeFailure('not_made', 'The charge waited too long.');
}
