/**
 * Takes the notices from the outbox and has them delivered to workflows (deliver-notices.ts). A notice is deleted only
 * after Temporal accepted it; until then it is retried, whichever process dies or is down.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import {
  BEAT_MS,
  beatRelay,
  forgetRelay,
  postponeNotice,
  takeNotices,
  type Notice,
} from '../store/outbox.ts';
import { deliverNotices, retryDelayMs, type DeliveryDeps } from './deliver-notices.ts';
import { pause } from './pause.ts';
import { sweep } from './sweep.ts';

export interface OutboxDeps extends DeliveryDeps {
  readonly log: Logger;
}

export interface RelayDeps extends OutboxDeps {
  /** Longer than a batch can take; after this, another relay takes what a dead one had in hand. */
  readonly leaseMs: number;
  /** Whether this process can send mails. */
  readonly canMail: boolean;
  /** Called with each sweep. Not awaited: a mail server may be slow. Does not reject. */
  readonly sendOwedMails: () => Promise<void>;
}

const BATCH = 50;
/**
 * The relay asks rather than being told: NOTIFY reaches only one session, which a pooler hands on, and makes
 * every commit that notifies wait for the others. An empty outbox answers from its index in a tenth of a
 * millisecond.
 */
const POLL_MS = 100;
/** After a failure, such as a Postgres that is away. */
const RETRY_MS = 1_000;
const SWEEP_INTERVAL_MS = 60_000;
/** While Temporal is down, no notice waits longer: all should go out as soon as it is back. */
const AWAY_MS = 1_000;

export class Relay {
  readonly #id = randomUUID();
  readonly #deps: RelayDeps;
  readonly #stopping = new AbortController();
  #sweptAtMs = 0;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(deps: RelayDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#ended = Promise.all([this.#run(), this.#beat()]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#sweep();
        if ((await handOverNotices(this.#deps, BATCH, this.#deps.leaseMs)) === BATCH) continue;
        await pause(POLL_MS, signal);
      } catch (error) {
        this.#deps.log.warn({ err: error }, 'could not read the outbox; will retry');
        await pause(RETRY_MS, signal);
      }
    }
  }

  async #sweep(): Promise<void> {
    if (performance.now() - this.#sweptAtMs < SWEEP_INTERVAL_MS && this.#sweptAtMs > 0) return;
    this.#sweptAtMs = performance.now();
    void this.#deps.sendOwedMails();
    await sweep(this.#deps.database, this.#deps.log, this.#deps.canMail);
  }

  /** Beside the work, which may wait for Temporal. */
  async #beat(): Promise<void> {
    const { database, log } = this.#deps;
    const { signal } = this.#stopping;
    const missed = (err: unknown) =>
      log.debug({ err }, 'could not record the heartbeat of this relay');
    while (!signal.aborted) {
      await beatRelay(database, this.#id).catch(missed);
      await pause(BEAT_MS, signal);
    }
    await forgetRelay(database, this.#id).catch(missed);
  }
}

/** Delivers a batch and returns its size. Postpones notices that fail. */
export async function handOverNotices(
  deps: OutboxDeps,
  limit: number,
  leaseMs: number,
): Promise<number> {
  const notices = await takeNotices(deps.database, limit, leaseMs);
  // Several reports of one payment are one signal.
  const groups = Map.groupBy(notices, ({ topic, subjectId }) => `${topic} ${subjectId}`);
  const failed: Notice[] = [];
  await Promise.all(
    [...groups.values()].map(async (group) => {
      try {
        await deliverNotices(deps, group);
      } catch (err) {
        const [{ topic, subjectId } = {}] = group;
        deps.log.warn({ err, topic, subjectId }, 'could not deliver a notice to its workflow');
        failed.push(...group);
      }
    }),
  );
  if (failed.length > 0) {
    const isUp = await deps.temporal.isUp();
    for (const { id, attempts } of failed) {
      await postponeNotice(deps.database, id, isUp ? retryDelayMs(attempts) : AWAY_MS);
    }
  }
  return notices.length;
}
