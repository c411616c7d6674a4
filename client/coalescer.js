/**
 * Sends concurrent charges together: calls made while requests are in flight wait for the next one. There is no timer:
 * a lone charge is sent at once, alone. Each keeps its own answer and deadline.
 */
import { noAnswer } from './send-by.js';
import { TIMER_MS_MAX } from './settings.js';
import { aborted } from './transport.js';

// Two, so that the service works on one while the other is parsed and answered, and one slow answer does not stop
// everything. Measured with 256 concurrent callers: 1.5 times the charges of a single request at a time; more than two
// gain nothing.
const REQUESTS_MAX = 2;
// Fewer calls are not worth a separate request.
const SHARE_MIN = 32;
const BATCH_MAX = 1_000;
// UTF-8 needs at most three bytes per character, and the service accepts bodies of 1 MiB.
const BATCH_CHARS_MAX = 256 * 1024;
// A request that takes longer no longer counts: a connection that hangs must not delay the calls behind it.
const STALLED_MS = 500;

/** A charge that waits for the service's answer, its own timeout once it is sent, or its own deadline. */
class Call {
  charge;
  isSent = false;
  isOver = false;
  #timeoutMs;
  #deadline;
  #resolve;
  #timer;
  #signal;
  #abort;

  constructor(charge, { timeoutMs, leftMs, deadline }, signal, resolve) {
    this.charge = charge;
    this.#timeoutMs = timeoutMs;
    this.#deadline = deadline;
    this.#resolve = resolve;
    this.#timer = setTimeout(timeOut, Math.min(leftMs, TIMER_MS_MAX), this);
    if (!signal) return;
    this.#signal = signal;
    this.#abort = () => this.settle(aborted(signal, this.isSent));
    signal.addEventListener('abort', this.#abort);
  }

  /** How long a request may take that is sent `now`. */
  attemptMs(now) {
    return Math.max(1, Math.min(this.#timeoutMs, Math.ceil(this.#deadline - now)));
  }

  /** In a request that may take `requestMs`, because others in it wait longer. */
  send(now, requestMs) {
    this.isSent = true;
    const attemptMs = this.attemptMs(now);
    if (attemptMs >= requestMs) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(timeOut, attemptMs, this);
  }

  settle(answer) {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.isOver = true;
    this.#resolve(answer);
  }
}

function timeOut(call) {
  call.settle({ unknown: call.isSent, retryable: true, cause: noAnswer(), reason: 'timed out' });
}

export class Coalescer {
  #post;
  #queue = [];
  #inFlight = 0;
  #isScheduled = false;

  /** `post(charges, timeoutMs)` resolves with the answer to each, in order, and never rejects. */
  constructor(post) {
    this.#post = post;
  }

  /**
   * Resolves with the charge's answer, within the limits of retry.js, `timeoutMs` counted from being sent, or when the
   * signal aborts. If it is unsent then, it is never sent.
   */
  send(charge, limits, signal) {
    return new Promise((resolve) => {
      this.#queue.push(new Call(charge, limits, signal, resolve));
      this.#schedule();
    });
  }

  /** Runs after the current code, so that charges called together are sent together. */
  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      while (this.#inFlight < REQUESTS_MAX && this.#queue.length > 0) {
        // A fair share for each available request; otherwise the first would take everything.
        const share = Math.ceil(this.#queue.length / (REQUESTS_MAX - this.#inFlight));
        void this.#carry(this.#take(Math.min(BATCH_MAX, Math.max(SHARE_MIN, share))));
      }
    });
  }

  /** Takes the next waiting calls from the queue: at most `callsMax`, and at least one if there is one. */
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
    const now = performance.now();
    const timeoutMs = Math.max(...calls.map((call) => call.attemptMs(now)));
    for (const call of calls) call.send(now, timeoutMs);
    const answers = await this.#post(
      calls.map(({ charge }) => charge),
      timeoutMs,
    );
    release();
    for (const [index, call] of calls.entries()) call.settle(answers[index]);
  }

  /** Counts a request as in flight until it is released or stalls. */
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
