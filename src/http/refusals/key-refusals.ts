/**
 * Gathers the refused requests that name a key to charge until they are written. Bounded: callers choose
 * which keys they name, so a developer has a share of pairs of a key and a code in each write, and what
 * exceeds it is not recorded.
 */
import type { ErrorCode } from '../../domain/errors.ts';
import type { CountedKeyRefusal } from '../../store/refusals/key-refusals.ts';

const PAIRS_OF_DEVELOPER_MAX = 200;
const PAIRS_MAX = 2_000;

interface KeyRefusal {
  readonly developerId: string;
  readonly code: ErrorCode;
  readonly keyHash: string;
}

interface Pending {
  readonly refusal: KeyRefusal;
  readonly hourMs: number;
  count: number;
  lastMs: number;
}

export class KeyRefusals {
  #pending = new Map<string, Pending>();
  #shares = new Map<string, number>();

  add(refusal: KeyRefusal, hourMs: number, nowMs: number): void {
    const { developerId, code, keyHash } = refusal;
    const pair = `${hourMs} ${code} ${keyHash}`;
    let pending = this.#pending.get(pair);
    if (!pending) {
      const share = this.#shares.get(developerId) ?? 0;
      if (share >= PAIRS_OF_DEVELOPER_MAX || this.#pending.size >= PAIRS_MAX) return;
      this.#shares.set(developerId, share + 1);
      pending = { refusal, hourMs, count: 0, lastMs: nowMs };
      this.#pending.set(pair, pending);
    }
    pending.count += 1;
    pending.lastMs = nowMs;
  }

  /** Returns the refusals gathered since the last call. */
  take(): CountedKeyRefusal[] {
    const taken = [...this.#pending.values()].map(counted);
    this.#pending = new Map();
    this.#shares = new Map();
    return taken;
  }
}

function counted({ refusal, hourMs, count, lastMs }: Pending): CountedKeyRefusal {
  return {
    hash: refusal.keyHash,
    hour: new Date(hourMs).toISOString(),
    code: refusal.code,
    count,
    lastAt: new Date(lastMs).toISOString(),
  };
}
