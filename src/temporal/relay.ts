/**
 * Takes the notices from the outbox and has them delivered to workflows (deliver-notices.ts). A notice is deleted only
 * after Temporal accepted it; until then it is retried, whichever process dies or is down.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { Logger } from 'pino';
import { OUTBOX_CHANNEL, postponeNotice, takeNotices, type Notice } from '../store/outbox.ts';
import { deliverNotices, retryDelayMs, type DeliveryDeps } from './deliver-notices.ts';
import { sweep } from './sweep.ts';

export interface OutboxDeps extends DeliveryDeps {
  readonly log: Logger;
}

export interface RelayDeps extends OutboxDeps {
  readonly databaseUrl: string;
  /** Longer than a batch can take; after this, another relay takes what a dead one had in hand. */
  readonly leaseMs: number;
}

const BATCH = 50;
/** A notification wakes the relay immediately; polling covers missed notifications and retries. */
const POLL_MS = 1_000;
const RECONNECT_MS = 1_000;
const SWEEP_INTERVAL_MS = 60_000;
/** While Temporal is down, no notice waits longer: all should go out as soon as it is back. */
const AWAY_MS = 1_000;

export class Relay {
  readonly #deps: RelayDeps;
  readonly #stopping = new AbortController();
  #wake: () => void = () => {};
  #sweptAtMs = 0;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(deps: RelayDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#ended = Promise.all([this.#run(), this.#listen()]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      // Created before the read, so that a notification during the read is not missed.
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      try {
        await this.#sweep();
        if ((await handOverNotices(this.#deps, BATCH, this.#deps.leaseMs)) === BATCH) continue;
      } catch (error) {
        this.#deps.log.warn({ err: error }, 'could not read the outbox; its notices wait');
      }
      await Promise.race([woken, this.#pause(POLL_MS)]);
    }
  }

  async #sweep(): Promise<void> {
    if (performance.now() - this.#sweptAtMs < SWEEP_INTERVAL_MS && this.#sweptAtMs > 0) return;
    this.#sweptAtMs = performance.now();
    await sweep(this.#deps.database, this.#deps.log);
  }

  /** Uses its own connection, because pooled ones change hands, and reconnects whenever it breaks. */
  async #listen(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const client = new Client({
        connectionString: this.#deps.databaseUrl,
        connectionTimeoutMillis: 5_000,
        keepAlive: true,
      });
      try {
        const ended = new Promise<void>((resolve) => {
          client.once('error', () => resolve());
          client.once('end', () => resolve());
          this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        client.on('notification', () => this.#wake());
        await client.connect();
        await client.query(`listen ${OUTBOX_CHANNEL}`);
        await ended;
      } catch (error) {
        this.#deps.log.debug({ err: error }, 'could not listen; polling continues');
      }
      await client.end().catch(() => {});
      await this.#pause(RECONNECT_MS);
    }
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
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
