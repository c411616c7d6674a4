/** Connects the batcher to the charge connections, with the two charge statements and their limits. */
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
  type ReplayWindow,
} from '../store/charges/post-charges.ts';
import { postFittingSpends, postSpends } from '../store/charges/post-spends.ts';
import { findLockedConsumers } from '../store/balance/consumers.ts';
import type { Connection, Database } from '../store/database.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { Batcher, type BatcherOptions, type Flush } from './batcher.ts';
import { BATCHER_LIMITS } from './limits.ts';
import type { DatabaseClock } from './database-clock.ts';
import { giveIds } from './give-ids.ts';
import { replayWindow } from './idempotency.ts';
import { createTracedBatcher } from './traced-batcher.ts';

export type ChargeBatcher = Batcher<ChargeDraft, ChargeOutcome>;

type ChargeStatement<Outcome> = (
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
) => Promise<Outcome[]>;

/**
 * `chargePool` has a connection for each lane, exceptions included. `receiptKey` is the number of the signing secret.
 */
export function createBatcher(
  chargePool: Database,
  laneCount: number,
  receiptKey: number,
  clock: DatabaseClock,
  onFailure: (error: unknown) => void,
  onFlush: ((flush: Flush) => void) | undefined,
  tracing?: Tracing,
): ChargeBatcher {
  const send =
    <Outcome>(statement: ChargeStatement<Outcome>) =>
    (drafts: readonly ChargeDraft[], onSent: () => void) =>
      chargePool.connect((connection) => {
        const nowMs = clock.checkedNowMs();
        giveIds(drafts, nowMs);
        onSent();
        return statement(connection, drafts, receiptKey, replayWindow(nowMs));
      });
  const options: BatcherOptions<ChargeDraft, ChargeOutcome> = {
    payerOf: ({ consumerId }) => consumerId,
    execute: send(unlessSpends(postFittingCharges, postFittingSpends)),
    decide: send(unlessSpends(postCharges, postSpends)),
    findLocked: (drafts) => findLockedConsumers(chargePool, drafts),
    onFailure,
    onFlush,
    laneCount,
    ...BATCHER_LIMITS,
  };
  return tracing ? createTracedBatcher(options, 'flush charges', tracing) : new Batcher(options);
}

/** A batch of plain charges only does not pay for budgets: it has a statement of its own. */
function unlessSpends<Outcome>(
  plain: ChargeStatement<Outcome>,
  spends: ChargeStatement<Outcome>,
): ChargeStatement<Outcome> {
  return (connection, drafts, ...others) =>
    drafts.some(({ spend }) => spend !== null)
      ? spends(connection, drafts, ...others)
      : plain(connection, drafts, ...others);
}
