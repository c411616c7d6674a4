/**
 * Concurrent charges go together: what is called while requests are in flight queues and goes in the next
 * one. None waits for company: a lone charge is sent at once, alone. Each keeps its own answer and deadline.
 */
import { aborted } from './transport.js';

// Two, so that the service works on one while the other is read and answered, and one slow answer does not stop
// all. Measured with 256 concurrent callers: half as many charges again as with one; more gain nothing.
const REQUESTS_MAX = 2;
// Fewer calls are not worth a request of their own.
const SHARE_MIN = 32;
const BATCH_MAX = 1_000;
// UTF-8 needs three bytes for each at most, and the service takes a body of 1 MiB.
const BATCH_CHARS_MAX = 256 * 1024;
// A request that takes longer no longer counts: a line that hangs must not hold up the calls behind it.
const STALLED_MS = 500;
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A charge that waits for its answer, of the service or of the clock. */
class Call {
  charge;
  deadline;
  isSent = false;
  isOver = false;
  #resolve;
  #timer;
  #signal;
  #abort = () => this.settle(aborted(this.#signal, this.isSent));

  constructor(charge, leftMs, signal, resolve) {
    this.charge = charge;
    this.deadline = performance.now() + leftMs;
    this.#resolve = resolve;
    this.#timer = setTimeout(timeOut, Math.min(leftMs, TIMER_MS_MAX), this);
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort);
  }

  settle(answer) {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.isOver = true;
    this.#resolve(answer);
  }
}

function timeOut(call) {
  call.settle({ unknown: call.isSent, retryable: true, reason: 'timed out' });
}

export class Coalescer {
  #post;
  #timeoutMs;
  #queue = [];
  #inFlight = 0;
  #isScheduled = false;

  /** `post(charges, timeoutMs)` resolves with the answer to each, in order, and never rejects. */
  constructor(post, timeoutMs) {
    this.#post = post;
    this.#timeoutMs = timeoutMs;
  }

  /** Resolves with the charge's answer, within `leftMs` or when the signal says so; unsent it then stays so. */
  send(charge, leftMs, signal) {
    return new Promise((resolve) => {
      this.#queue.push(new Call(charge, leftMs, signal, resolve));
      this.#schedule();
    });
  }

  /** After the code that runs now, so that what it calls together goes together. */
  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      while (this.#inFlight < REQUESTS_MAX && this.#queue.length > 0) {
        // A fair share for each request that may go, or the first would take all and the others none.
        const share = Math.ceil(this.#queue.length / (REQUESTS_MAX - this.#inFlight));
        void this.#carry(this.#take(Math.min(BATCH_MAX, Math.max(SHARE_MIN, share))));
      }
    });
  }

  /** The next calls of the queue that still wait: at most so many, at least one if there is one. */
  #take(callsMax) {
    const calls = [];
    let chars = 0;
    let taken = 0;
    for (const call of this.#queue) {
      chars += call.isOver ? 0 : call.charge.member.length;
      if (calls.length === callsMax || (calls.length > 0 && chars > BATCH_CHARS_MAX)) break;
      if (!call.isOver) calls.push(call);
      taken += 1;
    }
    this.#queue.splice(0, taken);
    return calls;
  }

  async #carry(calls) {
    if (calls.length === 0) return;
    const release = this.#hold();
    for (const call of calls) call.isSent = true;
    const leftMs = Math.max(...calls.map(({ deadline }) => deadline)) - performance.now();
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, Math.ceil(leftMs)));
    const answers = await this.#post(
      calls.map(({ charge }) => charge),
      timeoutMs,
    );
    release();
    for (const [index, call] of calls.entries()) call.settle(answers[index]);
  }

  /** Counts a request as in flight, until it is released or has stalled. */
  #hold() {
    this.#inFlight += 1;
    const release = () => {
      if (timer === undefined) return;
      clearTimeout(timer);
      timer = undefined;
      this.#inFlight -= 1;
      this.#schedule();
    };
    let timer = setTimeout(release, STALLED_MS);
    return release;
  }
}
