/**
 * What the batchers of charges and of entries share: a statement is sent on the connection of a lane, with
 * ids by Postgres' clock, and with the time within which an idempotency key is looked up.
 */
import type { ReplayWindow } from '../store/charges/post-charges.ts';
import type { Connection, Database } from '../store/database.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { Batcher, type Batchable, type BatcherOptions } from './batcher.ts';
import type { DatabaseClock } from './database-clock.ts';
import { giveIds, type Sent } from './give-ids.ts';
import { replayWindow } from './replay-window.ts';
import { BATCHER_LIMITS } from './limits.ts';
import { createTracedBatcher } from './traced-batcher.ts';

export interface BatcherDeps extends Pick<
  BatcherOptions<never, never>,
  'onFailure' | 'onFlush' | 'laneCount'
> {
  /** Has a connection for each lane, exceptions included. */
  readonly pool: Database;
  /** The number of the signing secret. */
  readonly receiptKey: number;
  readonly clock: DatabaseClock;
  readonly tracing?: Tracing | undefined;
}

export type LedgerStatement<Draft, Outcome> = (
  connection: Connection,
  drafts: readonly Draft[],
  receiptKey: number,
  replay: ReplayWindow,
) => Promise<Outcome[]>;

export interface LedgerStatements<Draft extends Batchable, Outcome> extends Pick<
  BatcherOptions<Draft, Outcome>,
  'payerOf'
> {
  /** The name of its spans. */
  readonly spanName: string;
  readonly execute: LedgerStatement<Draft, Outcome | undefined>;
  readonly decide: LedgerStatement<Draft, Outcome>;
  readonly findLocked: (
    connection: Connection,
    drafts: readonly Draft[],
  ) => Promise<ReadonlySet<string>>;
}

export function createLedgerBatcher<Draft extends Batchable & Sent, Outcome>(
  { pool, receiptKey, clock, tracing, ...deps }: BatcherDeps,
  { spanName, payerOf, execute, decide, findLocked }: LedgerStatements<Draft, Outcome>,
): Batcher<Draft, Outcome> {
  const send =
    <Result>(statement: LedgerStatement<Draft, Result>) =>
    async (drafts: readonly Draft[], onSent: () => void) => {
      // Here too, because an error inside would destroy the connection.
      clock.checkedNowMs();
      return pool.connect((connection) => {
        const nowMs = clock.checkedNowMs();
        giveIds(drafts, nowMs);
        onSent();
        return statement(connection, drafts, receiptKey, replayWindow(nowMs));
      });
    };
  const options: BatcherOptions<Draft, Outcome> = {
    payerOf,
    execute: send(execute),
    decide: send(decide),
    findLocked: (drafts) => findLocked(pool, drafts),
    ...deps,
    ...BATCHER_LIMITS,
  };
  return tracing ? createTracedBatcher(options, spanName, tracing) : new Batcher(options);
}
