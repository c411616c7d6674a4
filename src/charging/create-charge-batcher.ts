/** The batcher of charges, with the charge statements and what finds locked consumers. */
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
} from '../store/charges/post-charges.ts';
import { postFittingSpends, postSpends } from '../store/charges/post-spends.ts';
import { findLockedConsumers } from '../store/balance/consumers.ts';
import type { Batcher } from './batcher.ts';
import { createLedgerBatcher, type BatcherDeps, type LedgerStatement } from './ledger-batcher.ts';

export type ChargeBatcher = Batcher<ChargeDraft, ChargeOutcome>;

export function createChargeBatcher(deps: BatcherDeps): ChargeBatcher {
  return createLedgerBatcher<ChargeDraft, ChargeOutcome>(deps, {
    spanName: 'flush charges',
    payerOf: ({ consumerId }) => consumerId,
    execute: unlessSpends(postFittingCharges, postFittingSpends),
    decide: unlessSpends(postCharges, postSpends),
    findLocked: findLockedConsumers,
  });
}

/** A batch of plain charges only does not pay for budgets: it has a statement of its own. */
function unlessSpends<Outcome>(
  plain: LedgerStatement<ChargeDraft, Outcome>,
  spends: LedgerStatement<ChargeDraft, Outcome>,
): LedgerStatement<ChargeDraft, Outcome> {
  return (connection, drafts, ...others) =>
    drafts.some(({ spend }) => spend !== null)
      ? spends(connection, drafts, ...others)
      : plain(connection, drafts, ...others);
}
