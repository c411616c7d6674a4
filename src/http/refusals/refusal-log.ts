/**
 * Logs a line for each refused request, so that operators can find a request id that a caller quotes. Bounded: refused
 * requests cannot fill the disk, and no caller crowds out the lines of others. A line counts those left out.
 */
import type { Logger } from 'pino';
import type { ErrorCode } from '../../domain/errors.ts';

/** Never contains a key, a body or a path as sent. */
export interface Refusal {
  readonly requestId: string;
  readonly code: ErrorCode;
  readonly status: number;
  readonly method: string;
  readonly route: string;
  readonly role?: string;
  readonly accountId?: string;
}

const WINDOW_MS = 1_000;
/** At most about 25 kB a second per process. */
const LINES_PER_WINDOW = 100;
/** Lines for one account; callers without a valid key share one allowance. */
const LINES_PER_CALLER = 20;

export class RefusalLog {
  readonly #log: Logger;
  readonly #lines = new Map<string, number>();
  #total = 0;
  #left = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  write(refusal: Refusal): void {
    if (!this.#window) this.#window = setTimeout(() => this.#endWindow(), WINDOW_MS).unref();
    const caller = refusal.accountId ?? '';
    const lines = this.#lines.get(caller) ?? 0;
    if (this.#total >= LINES_PER_WINDOW || lines >= LINES_PER_CALLER) {
      this.#left += 1;
      return;
    }
    this.#total += 1;
    this.#lines.set(caller, lines + 1);
    this.#log.info(refusal, 'request refused');
  }

  #endWindow(): void {
    if (this.#left > 0) this.#log.warn({ refusals: this.#left }, 'some refusals were not logged');
    this.#lines.clear();
    this.#total = 0;
    this.#left = 0;
    this.#window = undefined;
  }
}
