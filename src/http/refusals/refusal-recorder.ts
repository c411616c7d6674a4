/**
 * Gathers the refused requests of developers in memory and writes them together, off the path of charges:
 * adding one costs a look-up. Bounded: past a developer's share of an hour, tools are counted together, and
 * developers past the first thousand of an hour are not recorded. The metrics (RefusalCounts) count all of
 * them. Those that name a key to charge are also counted for the owner of the key (KeyRefusals).
 */
import type { DatabaseClock } from '../../charging/database-clock.ts';
import { RepeatedWork } from '../../charging/repeated-work.ts';
import { HOUR_MS } from '../../domain/durations.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Database } from '../../store/database.ts';
import { addKeyRefusals } from '../../store/refusals/key-refusals.ts';
import {
  addRefusals,
  deleteOldRefusals,
  REQUEST_IDS_MAX,
  type CountedRefusal,
} from '../../store/refusals/refusals.ts';
import { KeyRefusals } from './key-refusals.ts';
import { pairOf, toolWithin } from './tool-within.ts';

const WRITE_EVERY_MS = 5_000;
const DEVELOPERS_MAX = 1_000;

interface Refusal {
  readonly developerId: string;
  readonly code: ErrorCode;
  /** Empty: it concerns no registered tool. */
  readonly tool: string;
  readonly requestId: string;
  /** SHA-256 of the key that was to pay, as hex, unless it is known not to be a spend key. */
  readonly keyHash?: string | undefined;
}

interface Pending {
  readonly refusal: Refusal;
  readonly hourMs: number;
  count: number;
  lastMs: number;
  readonly requestIds: string[];
}

export class RefusalRecorder {
  readonly #database: Database;
  readonly #clock: Pick<DatabaseClock, 'nowMs'>;
  readonly #writes: RepeatedWork;
  readonly #ofKeys = new KeyRefusals();
  #pending = new Map<string, Pending>();
  /** The pairs of each developer in this hour. */
  #pairs = new Map<string, Set<string>>();
  #hourMs = 0;
  #isSwept = true;

  constructor(
    database: Database,
    clock: Pick<DatabaseClock, 'nowMs'>,
    onError: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#database = database;
    this.#writes = new RepeatedWork(WRITE_EVERY_MS, () => this.write(), onError);
  }

  add(refusal: Refusal, nowMs = this.#clock.nowMs()): void {
    const hourMs = nowMs - (nowMs % HOUR_MS);
    if (hourMs !== this.#hourMs) this.#beginHour(hourMs);
    const { developerId, code, requestId, keyHash } = refusal;
    if (keyHash !== undefined) this.#ofKeys.add({ developerId, code, keyHash }, hourMs, nowMs);
    const tool = this.#toolWithin(refusal);
    if (tool === undefined) return;
    const key = `${hourMs} ${developerId} ${code} ${tool}`;
    const pending = this.#pending.get(key) ?? {
      refusal: { ...refusal, tool },
      hourMs,
      count: 0,
      lastMs: nowMs,
      requestIds: [],
    };
    pending.count += 1;
    pending.lastMs = nowMs;
    // Many members of one batch have one id.
    if (pending.requestIds[0] !== requestId) pending.requestIds.unshift(requestId);
    pending.requestIds.length = Math.min(pending.requestIds.length, REQUEST_IDS_MAX);
    this.#pending.set(key, pending);
  }

  /** What cannot be written is lost: it would otherwise grow while the database is down. */
  async write(): Promise<void> {
    const written = [...this.#pending.values()].map(counted);
    this.#pending = new Map();
    const ofKeys = this.#ofKeys.take();
    if (written.length > 0) await addRefusals(this.#database, written);
    if (ofKeys.length > 0) await addKeyRefusals(this.#database, ofKeys);
    if (this.#isSwept) return;
    this.#isSwept = true;
    await deleteOldRefusals(this.#database);
  }

  /** Writes what is left. */
  stop(): Promise<void> {
    return this.#writes.finish();
  }

  #beginHour(hourMs: number): void {
    this.#hourMs = hourMs;
    this.#pairs = new Map();
    this.#isSwept = false;
  }

  #toolWithin({ developerId, code, tool }: Refusal): string | undefined {
    let pairs = this.#pairs.get(developerId);
    if (!pairs) {
      if (this.#pairs.size >= DEVELOPERS_MAX) return undefined;
      pairs = new Set();
      this.#pairs.set(developerId, pairs);
    }
    const counted = toolWithin(pairs, code, tool);
    pairs.add(pairOf(code, counted));
    return counted;
  }
}

function counted({ refusal, hourMs, count, lastMs, requestIds }: Pending): CountedRefusal {
  const { developerId, code, tool } = refusal;
  return {
    developerId,
    hour: new Date(hourMs).toISOString(),
    code,
    tool,
    count,
    lastAt: new Date(lastMs).toISOString(),
    requestIds,
  };
}
