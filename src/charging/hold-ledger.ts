/**
 * Group commit for holds: entries that queue while a flush is in flight go into the next one, together, as with
 * charges. A consumer and its holds belong to one lane, and a lane has one flush in flight, so two flushes of a process
 * rarely wait for each other's locks.
 */
import type { HoldEntry, HoldOutcome } from '../store/holds/post-hold-entries.ts';
import { classifyFailure, isConnectionLost, isDatabaseUnavailable } from '../store/failures.ts';
import { ChargeFailure } from './charge-failure.ts';

export interface HoldLedgerOptions {
  /** Decides the entries in one statement and one commit. Each idempotency hash occurs at most once. */
  readonly execute: (entries: readonly HoldEntry[]) => Promise<readonly (HoldOutcome | 'owing')[]>;
  /** Decides an entry that `execute` returned as owing, and repays the debt in the same transaction. */
  readonly settle: (entry: HoldEntry) => Promise<HoldOutcome>;
  readonly laneCount: number;
  readonly batchMax: number;
  /** The most entries waiting in a lane. Beyond it, an entry is refused at once. */
  readonly queueMax: number;
  /** An entry that waited longer is dropped unsent. */
  readonly deadlineMs: number;
}

interface Waiting {
  readonly entry: HoldEntry;
  readonly since: number;
  readonly resolve: (outcome: HoldOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane {
  queue: Waiting[];
  isFlushing: boolean;
}

export class HoldLedger {
  readonly #options: HoldLedgerOptions;
  readonly #lanes: readonly Lane[];

  constructor(options: HoldLedgerOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.laneCount }, () => ({
      queue: [],
      isFlushing: false,
    }));
  }

  /** Resolves when the entry is decided and durable. Rejects with a ChargeFailure, or with the database's error when it cannot take the data. */
  post(entry: HoldEntry): Promise<HoldOutcome> {
    const lane = this.#laneOf(entry);
    if (lane.queue.length >= this.#options.queueMax) return Promise.reject(unavailable());
    return new Promise((resolve, reject) => {
      lane.queue.push({ entry, since: performance.now(), resolve, reject });
      if (lane.isFlushing) return;
      lane.isFlushing = true;
      // After this turn of the event loop, so that entries that arrive together are sent together.
      setImmediate(() => void this.#drain(lane));
    });
  }

  /** A hold's id ends like its consumer's id, so both give the same lane. */
  #laneOf(entry: HoldEntry): Lane {
    const id = entry.kind === 'place' ? entry.consumerId : entry.holdId;
    const index = Number.parseInt(id.slice(-TAIL_DIGITS), 16) % this.#lanes.length;
    const lane = this.#lanes[index];
    if (!lane) throw new Error(`no lane ${index}`);
    return lane;
  }

  async #drain(lane: Lane): Promise<void> {
    while (lane.queue.length > 0) {
      const batch = this.#take(lane);
      if (batch.length > 0) await this.#flush(batch);
    }
    lane.isFlushing = false;
  }

  /** In order, without expired entries, and each idempotency key at most once. */
  #take(lane: Lane): Waiting[] {
    const oldest = performance.now() - this.#options.deadlineMs;
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const keys = new Set<string>();
    for (const waiting of lane.queue) {
      const key = waiting.entry.idempotencyHash;
      if (waiting.since < oldest) {
        waiting.reject(unavailable());
      } else if (batch.length >= this.#options.batchMax || (key !== null && keys.has(key))) {
        later.push(waiting);
      } else {
        if (key !== null) keys.add(key);
        batch.push(waiting);
      }
    }
    lane.queue = later;
    return batch;
  }

  async #settle({ entry, resolve, reject }: Waiting): Promise<void> {
    try {
      resolve(await this.#options.settle(entry));
    } catch (error) {
      reject(rejectionFor(error));
    }
  }

  async #flush(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#options.execute(batch.map(({ entry }) => entry));
      for (const [index, waiting] of batch.entries()) {
        const outcome = outcomes[index] as HoldOutcome | 'owing';
        if (outcome !== 'owing') waiting.resolve(outcome);
        else void this.#settle(waiting);
      }
    } catch (error) {
      // A statement that failed because of its data changed nothing. Sending each entry alone finds the faulty one.
      if (classifyFailure(error, true) === 'rejected' && batch.length > 1) {
        for (const waiting of batch) await this.#flush([waiting]);
      } else {
        for (const waiting of batch) waiting.reject(rejectionFor(error));
      }
    }
  }
}

/** The error for the entries of a failed statement. */
function rejectionFor(error: unknown): unknown {
  if (isDatabaseUnavailable(error) && !isConnectionLost(error)) {
    return new ChargeFailure('not_made', 'The database cannot be reached.', error);
  }
  return classifyFailure(error, true) === 'unknown'
    ? new ChargeFailure('outcome_unknown', 'The connection to the database was lost.', error)
    : error;
}

const TAIL_DIGITS = 4;

/** A distinct UUID with the ending of the consumer's, so that both belong to one lane. */
export function withTailOf(consumerId: string, id: string): string {
  return id.slice(0, -TAIL_DIGITS) + consumerId.slice(-TAIL_DIGITS);
}

function unavailable(): ChargeFailure {
  return new ChargeFailure('not_made', 'Too many requests are waiting.');
}
