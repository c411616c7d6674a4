/**
 * The open streams of earnings of a process. They hold no connection: two queries a second serve all of them,
 * only while somebody listens, and a charge does nothing for them.
 */
import { DAY_MS } from '../domain/durations.ts';
import { ApiError } from '../domain/errors.ts';
import { wireId } from '../domain/ids.ts';
import { asMicros, dollarsOf, LARGEST_AMOUNT } from '../domain/money.ts';
import type { LiveEarnings } from '../schemas/earnings.ts';
import type { DatabaseClock } from '../charging/database-clock.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { findActiveCredentials, type Credential } from '../store/accounts/active-credentials.ts';
import type { Database } from '../store/database.ts';
import { sumLiveEarnings, type LiveTotals } from '../store/earnings/live-earnings.ts';
import type { EventStream } from './event-stream.ts';

const LOOK_EVERY_MS = 1_000;
/** Proxies commonly close what is silent for a minute. */
const BEAT_EVERY_MS = 15_000;
/** A tenth of the connections that a process accepts. */
const STREAMS_MAX = 1_000;
/** For one account: its people, with a few windows each. */
const STREAMS_OF_ACCOUNT_MAX = 50;

interface Listener {
  readonly caller: KeyOwner;
  readonly credential: Credential;
  readonly stream: EventStream;
  sent: string;
}

export class EarningsWatch {
  readonly #database: Database;
  readonly #clock: DatabaseClock;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<Listener>();
  #timer: NodeJS.Timeout | undefined;
  #beatMs = 0;
  #isStopped = false;

  constructor(database: Database, clock: DatabaseClock, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#database = database;
    this.#onError = onError;
  }

  /** Throws before `open` is called when the account or the process has too many streams. */
  listen(caller: KeyOwner, credential: Credential, open: (onEnd: () => void) => EventStream): void {
    if (this.#isStopped) throw stopping();
    const isOfAccount = (each: Listener) => each.caller.accountId === caller.accountId;
    const ofAccount = [...this.#listeners].filter(isOfAccount).length;
    if (this.#listeners.size >= STREAMS_MAX || ofAccount >= STREAMS_OF_ACCOUNT_MAX) throw tooMany();
    const stream = open(() => this.#listeners.delete(listener));
    const listener: Listener = { caller, credential, stream, sent: '' };
    this.#listeners.add(listener);
    this.#timer ??= setTimeout(() => void this.#look(), 0);
  }

  /** Ends every stream. Their readers connect again, to another process. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#endAll();
  }

  async #look(): Promise<void> {
    // A response that never got its connection does not end either.
    for (const listener of this.#listeners) {
      if (listener.stream.isAbandoned()) this.#listeners.delete(listener);
    }
    const listeners = [...this.#listeners];
    try {
      await this.#tell(listeners);
    } catch (error) {
      this.#onError(error);
      // Their readers notice, and ask in the usual way until they can connect again.
      this.#endAll();
    }
    const nowMs = performance.now();
    if (nowMs - this.#beatMs >= BEAT_EVERY_MS) {
      this.#beatMs = nowMs;
      for (const { stream } of this.#listeners) stream.beat();
    }
    const mayStop = this.#listeners.size === 0 || this.#isStopped;
    this.#timer = mayStop ? undefined : setTimeout(() => void this.#look(), LOOK_EVERY_MS);
  }

  async #tell(listeners: readonly Listener[]): Promise<void> {
    const credentials = listeners.map(({ credential }) => credential);
    const active = await findActiveCredentials(this.#database, credentials);
    const numbers = new Set(listeners.map(({ caller }) => caller.developerNumber));
    const nowMs = this.#clock.nowMs();
    const todayMs = nowMs - (nowMs % DAY_MS);
    const byDeveloper = await sumLiveEarnings(this.#database, [...numbers], todayMs);
    for (const [number, totals] of byDeveloper) {
      if (totals === null) this.#onError(tooLarge(number));
    }
    // The streams of a developer share one text.
    const texts = new Map<number, string>();
    for (const listener of listeners) {
      const { caller, credential, stream } = listener;
      const { developerNumber } = caller;
      const totals = byDeveloper.get(developerNumber);
      if (!active.has(credential.id) || totals === null) {
        stream.end();
        continue;
      }
      const data = texts.get(developerNumber) ?? textOf(caller, totals ?? NOTHING);
      texts.set(developerNumber, data);
      if (data === listener.sent) continue;
      listener.sent = data;
      stream.send('earnings', data);
    }
  }

  #endAll(): void {
    for (const { stream } of this.#listeners) stream.end();
  }
}

const NOTHING = { totalMicros: asMicros(0), todayMicros: asMicros(0), charges: 0 };

function textOf(
  { developerId }: KeyOwner,
  { totalMicros, todayMicros, charges }: LiveTotals,
): string {
  return JSON.stringify({
    developerId: wireId('developer', developerId),
    totalEarnings: dollarsOf(totalMicros),
    todayEarnings: dollarsOf(todayMicros),
    charges,
  } satisfies LiveEarnings);
}

/** Why the streams of one developer end: a number could not show its sums exactly. */
function tooLarge(developerNumber: number): RangeError {
  return new RangeError(
    `The earnings of developer number ${developerNumber} are more than ${LARGEST_AMOUNT}.`,
  );
}

function tooMany(): ApiError {
  return new ApiError(
    'rate_limited',
    'Too many streams are open. Close one, or poll /v1/earnings instead.',
    { retryAfterSeconds: 10 },
  );
}

function stopping(): ApiError {
  return new ApiError('service_unavailable', 'This process is shutting down. Connect again.', {
    retryAfterSeconds: 1,
  });
}
