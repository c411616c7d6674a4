/**
 * Group commit, for charges and for the entries of holds: charges that queue while a flush is in flight go
 * into the next one, together. There is no timer: an idle server flushes a batch of one at once. Here,
 * entries are charges too.
 *
 * A consumer, with its holds, belongs to one lane at a time and a lane has one flush in flight. So its
 * charges are decided in order of arrival, and two flushes of a process never wait for each other's locks. A
 * lane serves developers in turn.
 *
 * Two lanes are for exceptions, so that these delay nobody else: `careful` decides charge by charge for consumers whose
 * charges do not simply fit, and `locked` waits for consumers whose row another transaction has locked. A consumer
 * returns to its own lane when none of its charges are left there.
 */
import { classifyFailure, isLockTimeout } from '../store/failures.ts';
import { ChargeFailure } from './charge-failure.ts';
import { ClockError } from './database-clock.ts';
import { FairQueue } from './fair-queue.ts';
import { FlushSize, type FlushSizeOptions } from './flush-size.ts';

/** What the batcher has to know about a charge. */
export interface Batchable {
  /** Developers take turns. */
  readonly developerId: string;
  /** Occurs at most once in a flush. */
  readonly idempotencyHash: string | null;
}

export interface BatcherOptions<Draft extends Batchable, Outcome> extends FlushSizeOptions {
  /** The consumer that pays, or a hold of it: a UUID, with the last four digits of the consumer's. */
  readonly payerOf: (draft: Draft) => string;
  /** Makes the drafts that it can in one statement. Its outcome for the others is undefined; they go to `decide`. */
  readonly execute: Statement<Draft, Outcome | undefined>;
  /** Decides every draft in one statement, at a higher price. */
  readonly decide: Statement<Draft, Outcome>;
  /** Payers of these drafts whose rows are locked now. */
  readonly findLocked: (drafts: readonly Draft[]) => Promise<ReadonlySet<string>>;
  readonly onFailure: (error: unknown, drafts: number) => void;
  /** Called after each flush, successful or not. */
  readonly onFlush?: ((flush: Flush) => void) | undefined;
  readonly laneCount: number;
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
type Statement<Draft, Outcome> = (
  drafts: readonly Draft[],
  onSent: () => void,
) => Promise<readonly Outcome[]>;

/** The caller of a charge. Not a closure: decision 0014 says how much memory closures hold. */
export interface Requester {
  /** Whether the client has disconnected, so that nobody would see the outcome. */
  isAbandoned(): boolean;
}

interface Waiting<Draft, Outcome> {
  readonly draft: Draft;
  readonly requester: Requester;
  readonly since: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
  /** Counted in `#away`: it is, or will be, in a lane other than its consumer's own. */
  isAway: boolean;
}

interface Lane<Draft, Outcome> {
  readonly queue: FairQueue<Waiting<Draft, Outcome>>;
  readonly statement: Statement<Draft, Outcome | undefined>;
  /** Idempotency hashes of the flush in flight. */
  keysInFlight: ReadonlySet<string>;
  isFlushing: boolean;
  isScheduled: boolean;
  /** The most charges in its next flush. Less than usual after the database has rejected a flush for its data. */
  max: number;
  /** How many of its next charges are suspected of having made the database reject that flush. */
  suspects: number;
}

/** The lane that a consumer and its holds use instead of their own while they have charges there. */
interface Stay<Draft, Outcome> {
  lane: Lane<Draft, Outcome>;
  charges: number;
}

export class Batcher<Draft extends Batchable, Outcome> {
  readonly #options: BatcherOptions<Draft, Outcome>;
  readonly #lanes: readonly Lane<Draft, Outcome>[];
  readonly #careful: Lane<Draft, Outcome>;
  readonly #locked: Lane<Draft, Outcome>;
  /** By the end of the consumer's id. */
  readonly #away = new Map<string, Stay<Draft, Outcome>>();
  readonly #flushSize: FlushSize;

  constructor(options: BatcherOptions<Draft, Outcome>) {
    this.#options = options;
    this.#flushSize = new FlushSize(options);
    this.#lanes = Array.from({ length: options.laneCount }, () => newLane(options.execute));
    this.#careful = newLane(options.decide);
    this.#locked = newLane(options.decide);
  }

  /**
   * Resolves when the charge is decided and durable. Just before sending, it drops a charge whose client has
   * disconnected, according to `requester`. Rejects with a ChargeFailure; or, when nothing was charged, with a
   * ClockError or, if the charge's data is invalid, with the database's error.
   */
  post(draft: Draft, requester: Requester): Promise<Outcome> {
    const lane = this.#laneOf(draft);
    if (this.#isFull(lane, draft)) {
      return Promise.reject(new ChargeFailure('not_made', 'Too many requests are waiting.'));
    }
    return new Promise((resolve, reject) => {
      const since = performance.now();
      this.#flushSize.enter(draft.developerId, since);
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

  /** Whether a developer with few charges charges beside others, or did a moment ago. */
  get isShared(): boolean {
    return this.#flushSize.isShared(performance.now());
  }

  /** Whether anybody charged within the last second. */
  get isCharging(): boolean {
    return this.#flushSize.isCharging(performance.now());
  }

  /** Charges that wait for a flush. */
  get waiting(): number {
    const lanes = [...this.#lanes, this.#careful, this.#locked];
    return lanes.reduce((sum, { queue }) => sum + queue.size, 0);
  }

  #endOf(draft: Draft): string {
    return endOf(this.#options.payerOf(draft));
  }

  #laneOf(draft: Draft): Lane<Draft, Outcome> {
    const index = Number.parseInt(this.#endOf(draft), 16) % this.#lanes.length;
    const lane = this.#lanes[index];
    if (!lane) throw new Error(`no lane ${index}`);
    return lane;
  }

  #isFull({ queue }: Lane<Draft, Outcome>, { developerId }: Draft): boolean {
    const { queueMax, queueMaxByDeveloper } = this.#options;
    return queue.size >= queueMax || queue.sizeOf(developerId) >= queueMaxByDeveloper;
  }

  #schedule(lane: Lane<Draft, Outcome>): void {
    if (lane.isFlushing || lane.isScheduled) return;
    // After this turn of the event loop, so that charges that arrive together are sent together.
    lane.isScheduled = true;
    setImmediate(() => {
      lane.isScheduled = false;
      void this.#drain(lane);
    });
  }

  async #drain(lane: Lane<Draft, Outcome>): Promise<void> {
    if (lane.isFlushing) return;
    lane.isFlushing = true;
    while (lane.queue.size > 0) {
      const batch = this.#take(lane);
      if (batch.length > 0) await this.#flushObserved(lane, batch);
    }
    lane.keysInFlight = new Set();
    lane.isFlushing = false;
  }

  async #flushObserved(
    lane: Lane<Draft, Outcome>,
    batch: readonly Waiting<Draft, Outcome>[],
  ): Promise<void> {
    const sentMs = performance.now();
    await this.#flush(lane, batch);
    this.#options.onFlush?.({
      charges: batch.length,
      waitedMs: sentMs - batch.reduce((oldest, { since }) => Math.min(oldest, since), sentMs),
      tookMs: performance.now() - sentMs,
    });
  }

  /**
   * The next batch: developers in turn, without expired charges, and each idempotency key at most once. If a
   * charge has to wait for that, what the same request charges to the same consumer after it waits too, so
   * that their order stays.
   */
  #take(lane: Lane<Draft, Outcome>): Waiting<Draft, Outcome>[] {
    const now = performance.now();
    const oldest = now - this.#options.deadlineMs;
    const max = Math.min(lane.max, this.#flushSize.max(lane.queue.owners, now));
    const batch: Waiting<Draft, Outcome>[] = [];
    const later: Waiting<Draft, Outcome>[] = [];
    const keys = new Set<string>();
    /** The payers whose charges wait, by request. */
    const behind = new Map<Requester, Set<string>>();
    while (batch.length < max) {
      const waiting = lane.queue.take();
      if (!waiting) break;
      const key = waiting.draft.idempotencyHash;
      const payers = behind.get(waiting.requester);
      const stay = this.#away.size > 0 ? this.#away.get(this.#endOf(waiting.draft)) : undefined;
      if (stay && stay.lane !== lane) {
        this.#moveTo(stay.lane, waiting);
      } else if (waiting.requester.isAbandoned()) {
        this.#reject(waiting, new ChargeFailure('not_made', 'The client closed the connection.'));
      } else if (waiting.since < oldest) {
        this.#reject(waiting, expired(key !== null && lane.keysInFlight.has(key)));
      } else if ((key !== null && keys.has(key)) || payers?.has(this.#endOf(waiting.draft))) {
        behind.set(waiting.requester, (payers ?? new Set()).add(this.#endOf(waiting.draft)));
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
  async #flush(
    lane: Lane<Draft, Outcome>,
    batch: readonly Waiting<Draft, Outcome>[],
  ): Promise<void> {
    let isSent = false;
    try {
      const outcomes = await lane.statement(
        batch.map(({ draft }) => draft),
        () => {
          isSent = true;
        },
      );
      if (lane.suspects > 0) lane.suspects -= batch.length;
      else lane.max *= 2;
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
      // A statement that failed because of its data changed nothing. Sent again in parts, and the part that
      // fails in smaller ones, the faulty charge is found and the others are made. Each failure costs a new
      // connection, so there are few. Then flushes grow again.
      if (failure === 'rejected' && batch.length > 1) {
        lane.queue.untake(batch, ({ draft }) => draft.developerId);
        lane.max = Math.floor(Math.sqrt(batch.length));
        lane.suspects = batch.length;
      } else {
        lane.suspects = 0;
        for (const waiting of batch) this.#reject(waiting, rejectionFor(failure, error));
      }
    }
  }

  /**
   * After a lock timeout, which rolled back the whole flush: only the locked consumers keep waiting. Returns the other
   * charges, to be sent at once; undefined when the locked consumers are unknown.
   */
  async #partLocked(
    lane: Lane<Draft, Outcome>,
    batch: readonly Waiting<Draft, Outcome>[],
  ): Promise<Waiting<Draft, Outcome>[] | undefined> {
    try {
      const payers = await this.#options.findLocked(batch.map(({ draft }) => draft));
      const locked = new Set([...payers].map(endOf));
      const isLocked = ({ draft }: Waiting<Draft, Outcome>) => locked.has(this.#endOf(draft));
      const waiting = batch.filter(isLocked);
      // The lock may have been released by now.
      if (waiting.length === 0) {
        putBack(lane, batch);
        return [];
      }
      // Ahead of the charges that have arrived since, in either lane.
      if (lane === this.#locked) putBack(lane, waiting);
      else {
        const later = lane.queue.takeAll(isLocked);
        for (const each of [...waiting, ...later]) this.#moveTo(this.#locked, each);
      }
      return batch.filter((each) => !isLocked(each));
    } catch {
      return undefined;
    }
  }

  #moveTo(lane: Lane<Draft, Outcome>, waiting: Waiting<Draft, Outcome>): void {
    const end = this.#endOf(waiting.draft);
    let stay = this.#away.get(end);
    if (!stay) {
      stay = { lane, charges: 0 };
      this.#away.set(end, stay);
    }
    stay.lane = lane;
    if (!waiting.isAway) {
      waiting.isAway = true;
      stay.charges += 1;
    }
    if (this.#isFull(lane, waiting.draft)) {
      this.#reject(waiting, new ChargeFailure('not_made', 'Too many requests are waiting.'));
      return;
    }
    lane.queue.push(waiting.draft.developerId, waiting);
    this.#schedule(lane);
  }

  #resolve(
    batch: readonly Waiting<Draft, Outcome>[],
    outcomes: readonly (Outcome | undefined)[],
  ): void {
    for (const [index, waiting] of batch.entries()) {
      const outcome = outcomes[index];
      if (!outcome) continue;
      this.#leave(waiting);
      waiting.resolve(outcome);
    }
  }

  #reject(waiting: Waiting<Draft, Outcome>, error: unknown): void {
    this.#leave(waiting);
    waiting.reject(error);
  }

  #leave({ isAway, draft }: Waiting<Draft, Outcome>): void {
    this.#flushSize.leave(draft.developerId);
    if (!isAway) return;
    const end = this.#endOf(draft);
    const stay = this.#away.get(end);
    if (!stay) return;
    stay.charges -= 1;
    if (stay.charges === 0) this.#away.delete(end);
  }
}

/** The end of a consumer's id, with which the ids of its holds end too, and those of few other consumers. */
function endOf(payer: string): string {
  return payer.slice(-4);
}

function newLane<Draft, Outcome>(
  statement: Lane<Draft, Outcome>['statement'],
): Lane<Draft, Outcome> {
  return {
    queue: new FairQueue(),
    statement,
    keysInFlight: new Set<string>(),
    isFlushing: false,
    isScheduled: false,
    max: Number.POSITIVE_INFINITY,
    suspects: 0,
  };
}

function putBack<Draft extends Batchable, Outcome>(
  { queue }: Lane<Draft, Outcome>,
  batch: readonly Waiting<Draft, Outcome>[],
): void {
  for (const waiting of batch.toReversed()) queue.putBack(waiting.draft.developerId, waiting);
}

function rejectionFor(failure: ReturnType<typeof classifyFailure>, cause: unknown): unknown {
  switch (failure) {
    case 'not_executed':
      return cause instanceof ClockError
        ? cause
        : new ChargeFailure('not_made', 'The database cannot be reached.', cause);
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
    ? new ChargeFailure('key_in_flight', 'Another request with this key is being decided.')
    : new ChargeFailure('not_made', 'The request waited too long.');
}
