/**
 * Decides calls in this process, within money that the service has reserved, and settles them in batches. It never
 * decides more than is reserved, and never after the lease has ended. index.d.ts documents everything.
 */
import { openJournal } from '#journal';
import { elapsedMs } from './clock.js';
import { createError } from './errors.js';
import { copyOf, priceOf, tooDear, usedUp } from './lease-call.js';
import {
  isAboutCalls,
  isUnavailable,
  resultsOf,
  settledCall,
  warnOfSettled,
  wireEntry,
} from './lease-settlement.js';
import { askFor, BATCH_MAX, dollarsOf, microsOf, roomOf, Slice } from './lease-slice.js';
import { givenMs, inTime, RETRY_MS, WAIT_MS, waitMs } from './lease-waits.js';
import { amountToSend, exactMicrosOf } from './money.js';
import { pause } from './retry.js';
import { checkInteger, checkMembers } from './settings.js';

const SETTLE_AFTER_MS = 1_000;
/** How often a lease that has ended during an outage asks for the next one while nobody calls. */
const ASK_AGAIN_MS = 3_000;
/**
 * While money is short: a lease that is smaller than was asked for is exchanged for another one at most this often, and
 * after a refusal, one is requested in advance at most this often.
 */
const KEEP_SMALL_MS = 30_000;
/** If it is lost, the lease expires. */
const RELEASE = { timeoutMs: 1_000 };
/** A lease has to last much longer than the margin before its end, and lasts at most a day. */
const EXPIRES_IN_SECONDS = [5, 86_400];
const CALL = ['tool', 'amount', 'metadata'];
/** What a settlement is refused with when the lease is somebody else's, or nobody's. */
const LOST = new Set(['lease_closed', 'lease_fenced']);

/** Takes the first lease. Before it, what a journal has of an earlier process is settled. */
export async function openLease(leases, options) {
  const { expiresIn = 300, journal: path } = options;
  checkInteger('expiresIn', expiresIn, ...EXPIRES_IN_SECONDS);
  const journal = path === undefined ? undefined : await openJournal(path);
  const lease = new Lease(leases, { ...options, expiresIn }, journal);
  try {
    await lease.start();
  } catch (error) {
    if (error.outcome === 'unknown') void lease.giveUp();
    await journal?.close();
    throw error;
  }
  return lease;
}

class Lease {
  #leases;
  #options;
  #journal;
  #slice;
  /** Taken in advance. */
  #spare;
  #taking;
  /** The request for the next lease, until it is answered: `{ amount, idempotencyKey, refusal }`. */
  #asked;
  /** Why the last attempt to take a lease was refused. */
  #refusal;
  #askAgain;
  /** By the clock of clock.js: before it, none is taken in advance. */
  #nextSpareAt = 0;
  #timers = new Map();
  #settling = new Map();
  /** By lease that is not used any more: its last settlement. */
  #retiring = new Map();
  /** What `onSettled` does with batches, until it has ended. */
  #telling = new Set();
  /** Aborted by close(). */
  #ending = new AbortController();
  #closing;
  /** Nothing is sent again. */
  #isAbandoned = false;

  constructor(leases, options, journal) {
    this.#leases = leases;
    this.#options = options;
    this.#journal = journal;
  }

  async start() {
    for (const [leaseId, entries] of this.#journal?.unsettled ?? []) {
      await this.#settleFormer(leaseId, entries);
    }
    await this.#journal?.tidy();
    this.#slice = await this.#take();
  }

  /** Finds, with the same key, a first lease whose answer was lost, and releases it. */
  async giveUp() {
    if (!this.#asked) return;
    await this.#leases
      .take(this.#requestOf(this.#asked), RELEASE)
      .then(({ id }) => this.#leases.release({ leaseId: id }, RELEASE))
      .catch(() => {});
  }

  get #isClosed() {
    return this.#ending.signal.aborted;
  }

  get leaseId() {
    return this.#slice.id;
  }

  /** Dollars that can still be decided. */
  get remaining() {
    const now = elapsedMs();
    const usable = (slice) => (slice && now < slice.deadline ? slice.left : 0);
    return dollarsOf(usable(this.#slice) + usable(this.#spare));
  }

  charge(call) {
    if (!this.#journal) return this.#decide(call);
    try {
      return this.#decide(call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #decide(call) {
    checkMembers('a call under a lease', call, CALL);
    const { tool, amount, metadata } = call;
    const slice = this.#slice;
    const price = slice.prices.get(tool);
    const micros =
      amount === undefined && price !== undefined ? price : priceOf(tool, amount, price);
    if (micros > slice.left || elapsedMs() >= slice.deadline) {
      this.#advance(micros);
      // The next lease may have other prices.
      return this.#decide(call);
    }
    // A copy, checked before anything changes: what the service refuses would be decided and never paid for.
    const { copy, chars } = copyOf(metadata);
    slice.left -= micros;
    slice.sequence += 1;
    const entry = { sequence: slice.sequence, tool, micros, metadata: copy };
    if (slice.left < slice.low && elapsedMs() >= this.#nextSpareAt) this.#takeSpare();
    if (this.#journal) return this.#write(slice, entry, chars);
    this.#note(slice, entry, chars);
    return { paid: true, provisional: true, leaseId: slice.id, sequence: entry.sequence };
  }

  /**
   * Settles what is decided so far, also under leases that are not used any more, as far as there is time.
   * Returns the calls that are not settled, which the client keeps settling.
   */
  async settle(options) {
    const timeoutMs = givenMs(options);
    const slices = new Set([this.#slice, ...this.#retiring.keys()]);
    const decided = [...slices].map((slice) => [slice, slice.sequence]);
    await inTime(Promise.all(decided.map((each) => this.#settleTo(...each))), timeoutMs);
    return { unsettled: decided.flatMap(([slice, last]) => slice.unsettled(last)) };
  }

  /** Settles until every call up to `last` has an answer; later calls may join meanwhile. */
  async #settleTo(slice, last) {
    while (slice.first <= last && !this.#isAbandoned) await this.#settle(slice);
  }

  /** Settles everything and releases the rest, as far as there is time. Returns the calls that are not settled. */
  close(options) {
    const timeoutMs = givenMs(options);
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs) {
    this.#ending.abort();
    const slices = () => [this.#slice, this.#spare, ...this.#retiring.keys()];
    await inTime(this.#end(), timeoutMs);
    this.#isAbandoned = true;
    for (const settlement of this.#timers.values()) clearTimeout(settlement);
    await this.#journal?.close();
    const unsettled = [...new Set(slices())].flatMap((slice) => slice?.unsettled() ?? []);
    return { unsettled };
  }

  async #end() {
    this.#slice.end();
    await this.#taking;
    this.#retire(this.#slice);
    if (this.#spare) this.#retire(this.#spare);
    await Promise.all(this.#retiring.values());
    await Promise.all(this.#telling);
  }

  /** The journal has the entry before the caller has the answer. */
  async #write(slice, entry, metadataChars) {
    slice.writing += 1;
    try {
      await this.#journal.write([slice.id, entry]);
    } catch (error) {
      slice.left += entry.micros;
      throw error;
    } finally {
      slice.writing -= 1;
    }
    this.#note(slice, entry, metadataChars);
    return { paid: true, provisional: true, leaseId: slice.id, sequence: entry.sequence };
  }

  #note(slice, entry, metadataChars) {
    const isFull = slice.add(entry, metadataChars);
    if (isFull) void this.#settle(slice);
    else if (!this.#timers.has(slice)) this.#settleLater(slice, SETTLE_AFTER_MS);
  }

  /** This timer keeps the process alive: what it has decided is not charged yet. */
  #settleLater(slice, ms) {
    const timer = setTimeout(() => {
      this.#timers.delete(slice);
      void this.#settle(slice);
    }, ms);
    this.#timers.set(slice, timer);
  }

  /** The next lease takes over when the current one has ended or has too little left. */
  #advance(micros) {
    if (this.#isClosed) throw createError('lease_closed', 'This lease was closed.');
    const { amount } = this.#options;
    if (micros > exactMicrosOf(amountToSend(amount))) throw tooDear(micros, amount);
    const now = elapsedMs();
    const why = now < this.#slice.deadline ? 'has too little left' : 'has ended';
    const next = this.#spare;
    const isAlive = next && now < next.deadline;
    if (isAlive && micros > next.left && now < next.takenAt + KEEP_SMALL_MS) {
      throw usedUp(`The lease ${why}, and the next one has too little left`, next.refusal);
    }
    this.#spare = undefined;
    if (isAlive && micros <= next.left) return this.#replace(next);
    this.#takeSpare(this.#giveBack(next));
    throw usedUp(`The lease ${why}, and there is no next one yet`, this.#refusal);
  }

  /** Releases what the next lease may need: a small one, and a rest that no call can spend. */
  #giveBack(small) {
    const slices = small ? [small] : [];
    if (this.#slice.hasUselessRest && !this.#taking) slices.push(this.#slice);
    // It was refused while they held the money.
    if (slices.length > 0) this.#refusal = undefined;
    return slices.map((slice) => this.#retire(slice));
  }

  #takeSpare(releases = []) {
    if (this.#taking || this.#spare || this.#isClosed) return;
    this.#taking = this.#takeNext(releases).finally(() => {
      this.#taking = undefined;
    });
  }

  /** Between attempts. close() ends the wait, and has no time for another one. */
  #pause(error, mostMs) {
    return pause(this.#isClosed ? RETRY_MS : waitMs(error, mostMs), this.#ending.signal);
  }

  /** After a lost answer, until there is one: money may be reserved. */
  async #takeForSure() {
    for (;;) {
      try {
        return await this.#take();
      } catch (error) {
        if (error.outcome !== 'unknown' || this.#isAbandoned) throw error;
        this.#refusal = error;
        await this.#pause(error);
      }
    }
  }

  async #takeNext(releases) {
    try {
      if (releases.length > 0) await inTime(Promise.all(releases), WAIT_MS);
      if (this.#isClosed) return;
      const slice = await this.#takeForSure();
      this.#refusal = undefined;
      this.#nextSpareAt = 0;
      if (elapsedMs() < this.#slice.deadline || this.#isClosed) this.#spare = slice;
      else this.#replace(slice);
    } catch (error) {
      this.#refusal = error;
      const isAway = isUnavailable(error);
      if (!isAway) this.#nextSpareAt = elapsedMs() + KEEP_SMALL_MS;
      await this.#pause(error);
      if (isAway) this.#askAgainLater();
    }
  }

  /** Otherwise the first call after an outage would be refused because of it: a lease that has ended asks only once. */
  #askAgainLater() {
    clearTimeout(this.#askAgain);
    this.#askAgain = setTimeout(() => {
      if (elapsedMs() >= this.#slice.deadline) this.#takeSpare();
    }, ASK_AGAIN_MS);
    this.#askAgain.unref?.();
  }

  #replace(slice) {
    const old = this.#slice;
    this.#slice = slice;
    this.#retire(old);
  }

  /** As much as there is, when there is less than was asked for. There may be less still, by another limit. */
  async #take() {
    this.#asked ??= askFor(this.#options.amount);
    try {
      return await this.#askLease(this.#asked);
    } catch (error) {
      // It may have been made: it is asked for again, with the same key.
      if (isUnavailable(error)) throw error;
      const room = roomOf(error, this.#slice?.cheapest);
      const { amount } = this.#asked;
      const isLess = room !== undefined && microsOf(room) < exactMicrosOf(amountToSend(amount));
      this.#asked = isLess ? askFor(room, error) : undefined;
      if (!isLess) throw error;
      return this.#take();
    }
  }

  #requestOf({ amount, idempotencyKey }) {
    const { apiKey, tools, expiresIn } = this.#options;
    return { apiKey, tools, amount, expiresIn, idempotencyKey };
  }

  async #askLease(asked) {
    const askedAt = elapsedMs();
    const slice = new Slice(await this.#leases.take(this.#requestOf(asked)), askedAt);
    slice.refusal = asked.refusal;
    this.#asked = undefined;
    this.#renewInTime(slice);
    return slice;
  }

  /** Halfway to its end, and again until it is renewed, is refused, or has ended. */
  #renewInTime(slice, ms = (slice.deadline - elapsedMs()) / 2) {
    const timer = setTimeout(() => void this.#renew(slice), Math.max(ms, RETRY_MS));
    timer.unref?.();
  }

  /** With the same key until there is an answer. The key names the fence too, so both are read at once. */
  async #askRenewal(slice) {
    slice.renewalKey ??= crypto.randomUUID();
    const { id: leaseId, fence, renewalKey: idempotencyKey } = slice;
    const { expiresIn } = this.#options;
    const askedAt = elapsedMs();
    const lease = await this.#leases.renew({ leaseId, fence, expiresIn, idempotencyKey });
    slice.renewed(lease, askedAt);
  }

  async #renew(slice) {
    if (!this.#isInUse(slice)) return;
    if (elapsedMs() >= slice.deadline) return this.#succeed(slice);
    try {
      await slice.inTurn(() => this.#askRenewal(slice));
      this.#renewInTime(slice);
    } catch (error) {
      if (isUnavailable(error)) {
        return this.#renewInTime(slice, waitMs(error, slice.deadline - elapsedMs()));
      }
      slice.renewalKey = undefined;
      if (error.code === 'idempotency_key_reused') return this.#renewInTime(slice, RETRY_MS);
      // Unless somebody else closed it, it lasts until its end.
      if (error.code === 'lease_closed') slice.deadline = 0;
      this.#succeed(slice);
      this.#renewInTime(slice);
    }
  }

  #isInUse(slice) {
    return (slice === this.#slice || slice === this.#spare) && !this.#isClosed;
  }

  /** Takes the lease that comes after one that cannot be renewed. A refusal tells more about it than that. */
  #succeed(slice) {
    if (!this.#isInUse(slice)) return;
    if (slice !== this.#spare) return this.#takeSpare();
    this.#spare = undefined;
    this.#takeSpare([this.#retire(slice)]);
  }

  /** Settles the oldest calls: one batch at a time for each lease. */
  #settle(slice) {
    clearTimeout(this.#timers.get(slice));
    this.#timers.delete(slice);
    const current = this.#settling.get(slice);
    if (current) return current;
    const settling = this.#settleBatch(slice).finally(() => {
      this.#settling.delete(slice);
      if (slice.count === 0 || this.#isAbandoned) return;
      if (slice.hasFullBatch) void this.#settle(slice);
      else this.#settleLater(slice, SETTLE_AFTER_MS);
    });
    this.#settling.set(slice, settling);
    return settling;
  }

  async #settleBatch(slice) {
    const batch = slice.takeBatch();
    if (batch.length === 0) return;
    const results = await resultsOf((calls) => this.#send(slice, calls), batch);
    if (!results || this.#isAbandoned) return;
    // Somebody else ended or renewed the lease: what is decided under it from now on would never be paid for.
    if (results.some(({ error }) => LOST.has(error?.code))) slice.deadline = 0;
    this.#report(slice.id, batch, results);
    slice.sending = [];
  }

  /** Sends the batch until the service has answered, and gives the results; undefined when it was given up. */
  async #send(slice, batch, final) {
    const entries = batch.map(wireEntry);
    while (!this.#isAbandoned) {
      try {
        return await slice.inTurn(() =>
          this.#settled({ leaseId: slice.id, fence: slice.fence, entries, final }),
        );
      } catch (error) {
        // A renewal whose answer was lost raised it.
        if (error.code === 'lease_fenced' && slice.renewalKey) slice.fencedAnew(error.fence);
        else if (isAboutCalls(error)) throw error;
        else {
          if (!isUnavailable(error)) {
            // Such as a revoked secret key: nothing more is decided, and what is decided may still be settled.
            slice.deadline = 0;
            if (elapsedMs() >= slice.expiresAt) return batch.map(() => ({ error }));
          }
          await this.#pause(error, slice.patienceMs);
        }
      }
    }
    return undefined;
  }

  async #settled(request) {
    return (await this.#leases.settle(request)).results;
  }

  #report(leaseId, batch, results) {
    this.#tell(leaseId, batch, results);
    const [first, last] = [batch[0], batch.at(-1)];
    if (!this.#journal || !first) return;
    this.#journal.settled([leaseId, first.sequence, last.sequence]);
  }

  #tell(leaseId, batch, results) {
    const { onSettled } = this.#options;
    if (!onSettled) return;
    const settled = batch.map(({ sequence }, n) => settledCall(leaseId, sequence, results[n]));
    const told = Promise.resolve(settled).then(onSettled).catch(warnOfSettled);
    this.#telling.add(told);
    void told.then(() => this.#telling.delete(told));
  }

  /** Settles the rest of it and gives back what is left, once. */
  #retire(slice) {
    slice.end();
    if (slice.released) return slice.released;
    const retire = async () => {
      while (slice.writing > 0) await pause(1);
      // Also what is being sent: the lease must not end before its calls have an answer.
      await this.#settleTo(slice, slice.sequence);
      await this.#send(slice, [], true).catch(() => {});
      if (!this.#isAbandoned) this.#retiring.delete(slice);
    };
    slice.released = retire();
    this.#retiring.set(slice, slice.released);
    return slice.released;
  }

  /** Calls of a lease that this account and database do not know stay in the journal: the right ones may come back. */
  async #settleFormer(leaseId, entries) {
    const settle = (calls, final) =>
      this.#settled({ leaseId, entries: calls.map(wireEntry), final });
    let left = entries;
    try {
      for (; left.length > 0; left = left.slice(BATCH_MAX)) {
        const batch = left.slice(0, BATCH_MAX);
        this.#report(leaseId, batch, await resultsOf(settle, batch));
      }
      await settle([], true);
    } catch (error) {
      if (error.code !== 'lease_not_found') throw error;
      this.#tell(
        leaseId,
        left,
        left.map(() => ({ error })),
      );
    }
  }
}
