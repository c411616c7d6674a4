/**
 * Group commit for charges: charges that queue while a flush is in flight go into the next one, together.
 * There is no timer: an idle server flushes a batch of one at once.
 *
 * A consumer belongs to one lane at a time and a lane has one flush in flight, so a consumer's charges are
 * decided in order of arrival, and two flushes of a process never wait for each other's locks. A lane serves
 * developers in turn.
 *
 * Two lanes are for exceptions, so that these hold up nobody else: `careful` decides charge by charge for consumers
 * whose charges do not simply fit, `held` waits for consumers whose row somebody else has locked. A consumer
 * returns to its own lane when none of its charges are left there.
 */
import type { ChargeDraft, ChargeOutcome } from '../store/charges/post-charges.ts';
import { classifyFailure, isLockTimeout } from '../store/failures.ts';
import { ChargeFailure } from './charge-failure.ts';
import { FairQueue } from './fair-queue.ts';

export interface BatcherOptions {
  /** Makes the drafts that it can in one statement; those it leaves, undefined, go to `decide`. */
  readonly execute: Statement<ChargeOutcome | undefined>;
  /** Decides every draft in one statement, at a higher price. */
  readonly decide: Statement<ChargeOutcome>;
  /** Consumers of these drafts whose rows are locked now. */
  readonly findLocked: (drafts: readonly ChargeDraft[]) => Promise<ReadonlySet<string>>;
  readonly onFailure: (error: unknown, drafts: number) => void;
  readonly laneCount: number;
  readonly batchMax: number;
  /** Charges that wait in a lane, in all and of one developer. Past it a charge is refused at once. */
  readonly queueMax: number;
  readonly queueMaxByDeveloper: number;
  /** How long a charge may wait before it is sent; after that it is dropped unsent. */
  readonly deadlineMs: number;
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
  /** Counted in `#away`: it is or will be in a lane that is not its consumer's own. */
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

/** The lane that a consumer is in instead of its own, for as long as it has charges there. */
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
   * Resolves when the charge is decided and durable. `requester` is asked just before it is sent: a
   * charge whose client has gone is dropped. Rejects with a ChargeFailure, or with the database's error
   * when the database cannot take the charge's data; then nothing happened either.
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
    // After this turn of the event loop, so that what arrives together goes together.
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
      if (batch.length > 0) await this.#flush(lane, batch);
    }
    lane.keysInFlight = new Set();
    lane.isFlushing = false;
  }

  /** The next batch: developers in turn, without what expired, and with no idempotency key twice. */
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

  /** Sends the batch. Charges that the statement left, or whose consumer is locked, change lanes. */
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
      // Where more waits it is sent first, in this turn of the event loop: the database works on it while
      // these are answered.
      if (lane.queue.size > 0) setImmediate(() => this.#resolve(batch, outcomes));
      else this.#resolve(batch, outcomes);
    } catch (error) {
      const failure = classifyFailure(error, isSent);
      const free = isLockTimeout(error) ? await this.#partLocked(lane, batch) : undefined;
      if (free) return free.length > 0 ? this.#flush(lane, free) : undefined;
      this.#options.onFailure(error, batch.length);
      // A statement that the data broke did nothing at all; each charge alone shows which one it was,
      // and its neighbours are made.
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
   * After a lock timeout, which undid the whole flush: only the locked consumers go on waiting. Returns
   * the charges to send at once, without them; undefined when it cannot be told who is locked.
   */
  async #partLocked(lane: Lane, batch: readonly Waiting[]): Promise<Waiting[] | undefined> {
    try {
      const locked = await this.#options.findLocked(batch.map(({ draft }) => draft));
      const free = batch.filter(({ draft }) => !locked.has(draft.consumerId));
      // The lock may be gone by now.
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
