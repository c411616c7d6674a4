/**
 * Decides charges that post-charges.ts left, if one of them is by a spend key. Everything that decides about money
 * is in migrations/functions/post_entries_2.sql.
 */
import { approvalRequired, limitReached } from '../budgets/budget.ts';
import type { Connection } from '../database.ts';
import { decideEntries, type EntryRow } from '../holds/decide-entries.ts';
import type { ChargeDraft, ChargeOutcome, ReplayWindow } from './post-charges.ts';

/** Decides a batch, in order, in one commit. The caller ensures that no idempotency hash occurs twice. */
export async function postSpends(
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<ChargeOutcome[]> {
  const entries = drafts.map((draft) => ({ ...draft, kind: 'charge' as const }));
  // No hold is released here, so no debt is repaid.
  const decided = await decideEntries(connection, entries, receiptKey, replay, 'left');
  return decided.map(({ entry, found }) => chargeOutcomeOf(found, entry.developerId));
}

/** The outcome of an entry that is a charge by this developer. */
export function chargeOutcomeOf(found: EntryRow<'charge'>, developerId: string): ChargeOutcome {
  switch (found.outcome) {
    case 'done':
    case 'replayed':
      return {
        kind: found.outcome === 'done' ? 'posted' : 'replayed',
        id: found.charge_id,
        amountMicros: found.amount,
        balanceMicros: found.balance,
        cardVersion: found.card,
        receiptKey: found.signed_by,
      };
    case 'insufficient':
      return { kind: 'insufficient', balanceMicros: found.balance };
    case 'limit_reached':
      return limitReached(found);
    case 'approval_required':
      return approvalRequired(found, developerId);
    case 'key_closed':
    case 'key_reused':
      return { kind: found.outcome };
    case 'owing':
      throw new Error('a debt was not repaid');
  }
}
