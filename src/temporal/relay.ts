/**
 * Hands over to workflows what is stored for them: events of the payment processor, and notices of the
 * outbox (outbox.ts). Each counts as handed over only after Temporal took it; until then it comes up again,
 * whoever dies or is away.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { Logger } from 'pino';
import { concernsReversal } from '../stripe/webhook.ts';
import type { Database } from '../store/database.ts';
import {
  EVENTS_CHANNEL,
  markHandedOver,
  postponeProcessorEvent,
  takeProcessorEvents,
  type WaitingEvent,
} from '../store/top-ups/processor-events.ts';
import { findTopUp } from '../store/top-ups/top-ups.ts';
import { OUTBOX_CHANNEL } from '../store/outbox.ts';
import type { TemporalClient } from './client.ts';
import { reportPayment, reportReversal } from './start-top-up.ts';
import { handOverNotices, retryDelayMs } from './outbox.ts';
import { sweep } from './sweep.ts';

export interface RelayDeps {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly temporal: TemporalClient;
  readonly log: Logger;
}

const BATCH = 50;
/** A notification wakes the relay at once; this is for those that were missed, and for retries. */
const POLL_MS = 1_000;
/** Longer than a batch can take; after this, another relay takes what a dead one had in hand. */
const LEASE_MS = 15_000;
const RECONNECT_MS = 1_000;
const SWEEP_INTERVAL_MS = 60_000;

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
      // Made before the look, so that a notification during it is not missed.
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      try {
        await this.#sweep();
        const taken = await Promise.all([
          handOver(this.#deps),
          handOverNotices(this.#deps, BATCH, LEASE_MS),
        ]);
        if (taken.includes(BATCH)) continue;
      } catch (error) {
        this.#deps.log.warn({ err: error }, 'events could not be read; they wait');
      }
      await Promise.race([woken, this.#pause(POLL_MS)]);
    }
  }

  async #sweep(): Promise<void> {
    if (performance.now() - this.#sweptAtMs < SWEEP_INTERVAL_MS && this.#sweptAtMs > 0) return;
    this.#sweptAtMs = performance.now();
    await sweep(this.#deps.database, this.#deps.log);
  }

  /** A connection of its own, since a pool's are handed on; made again whenever it breaks. */
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
        await client.query(`listen ${EVENTS_CHANNEL}`);
        await client.query(`listen ${OUTBOX_CHANNEL}`);
        await ended;
      } catch (error) {
        this.#deps.log.debug({ err: error }, 'cannot listen; polling goes on');
      }
      await client.end().catch(() => {});
      await this.#pause(RECONNECT_MS);
    }
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}

/** Takes a batch and returns its size. What fails is put off. */
async function handOver(deps: RelayDeps): Promise<number> {
  const events = await takeProcessorEvents(deps.database, BATCH, LEASE_MS);
  const byTopUp = Map.groupBy(events, (event) => event.topUpId);
  const failed: WaitingEvent[] = [];
  await Promise.all(
    [...byTopUp].map(async ([topUpId, group]) => {
      try {
        await handOverOne(deps, topUpId, group);
      } catch (error) {
        deps.log.warn({ err: error, topUpId }, 'a report of a payment could not be handed over');
        failed.push(...group);
      }
    }),
  );
  if (failed.length > 0) await putOff(deps, failed);
  return events.length;
}

async function handOverOne(
  { database, temporal }: RelayDeps,
  topUpId: string,
  events: readonly WaitingEvent[],
): Promise<void> {
  const topUp = await findTopUp(database, topUpId);
  if (topUp && events.some(({ type }) => concernsReversal(type))) {
    await reportReversal(temporal, topUp);
    // What is credited cannot become paid; a workflow that had nothing to do would only cost.
  } else if (topUp && ['pending', 'expired', 'failed'].includes(topUp.status)) {
    await reportPayment(temporal, topUp);
  }
  await markHandedOver(
    database,
    events.map((event) => event.eventId),
  );
}

async function putOff(
  { database, temporal }: RelayDeps,
  events: readonly WaitingEvent[],
): Promise<void> {
  const isUp = await temporal.isUp();
  for (const { eventId, attempts } of events) {
    await postponeProcessorEvent(database, eventId, retryDelayMs(isUp, attempts));
  }
}
