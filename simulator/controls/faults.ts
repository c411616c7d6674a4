/**
 * Faults that tests queue for requests by method and path prefix. Each is used up by the requests that it hits. They
 * are in memory: a restart clears them.
 */
import { setTimeout as wait } from 'node:timers/promises';

export type Fault = {
  /** `POST`, or `*` for any. */
  readonly method: string;
  readonly path: string;
  readonly times: number;
} & (
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly code: string | undefined;
      readonly headers: Record<string, string>;
    }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'drop' }
  | { readonly kind: 'do_then_drop' }
  | { readonly kind: 'do_then_error'; readonly status: number }
);

/** How a fault changes the execution of a request. */
export interface FaultAround {
  readonly before: () => Promise<void>;
  /** The status that the caller and its idempotency key get although the request was executed. */
  readonly answerInstead: number | undefined;
}

export class Faults {
  #queued: Fault[] = [];
  /** How many requests are being delayed now. */
  delayed = 0;

  add(fault: Fault): void {
    this.#queued.push(fault);
  }

  clear(): void {
    this.#queued = [];
  }

  list(): readonly Fault[] {
    return this.#queued;
  }

  async delay(ms: number): Promise<void> {
    this.delayed += 1;
    await wait(ms);
    this.delayed -= 1;
  }

  /** Takes the oldest fault for this request and uses it up once. */
  take(method: string, path: string): Fault | undefined {
    const index = this.#queued.findIndex(
      (fault) => ['*', method].includes(fault.method) && path.startsWith(fault.path),
    );
    const fault = this.#queued[index];
    if (!fault) return undefined;
    this.#queued.splice(
      index,
      1,
      ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []),
    );
    return fault;
  }
}
