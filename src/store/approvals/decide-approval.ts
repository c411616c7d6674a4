/**
 * Decides an approval: the answer and what it changes, in one transaction under the lock of the consumer's row, which
 * every debit takes. The row decides: the first answer in time wins, and any later one finds it closed.
 */
import { APPROVED_DEVELOPERS_MAX, type ApprovalScope } from '../../domain/approval.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { actAs, type Actor } from '../audit/actor.ts';
import { lockConsumer } from '../balance/consumers.ts';
import { getBudgetOfNumber } from '../budgets/budgets.ts';
import type { Budget } from '../budgets/budget.ts';
import { applyToBudget, type BudgetSettings } from '../budgets/change-budgets.ts';
import { type Database, idRow, sql, type Transaction } from '../database.ts';
import { postNotice } from '../outbox.ts';
import { findApproval, isBelow, type Approval, type ApprovalView } from './approval.ts';
import { settleApprovals } from './settle-approvals.ts';

/** A top-up is not among them: it is requested, and the approval ends when the balance covers the call. */
export type Answer =
  | { readonly kind: 'once' | 'always' | 'deny' }
  | { readonly kind: 'raise'; readonly limitMicros: Micros };

export type Decided =
  | { readonly kind: 'decided'; readonly approval: Approval }
  /** Answered before, or it has ended without an answer. */
  | { readonly kind: 'closed'; readonly approval: Approval }
  /** The limit is already that high. */
  | { readonly kind: 'not_a_raise'; readonly limitMicros: Micros }
  | { readonly kind: 'budget_closed' | 'too_many_developers' | 'unknown_approval' };

/** Everybody who may decide: the owner, or the holder of a spend key above the budget that refused. */
export type Decider = ApprovalView & { readonly kind: 'payer' };

/** The caller has checked that the answer fits what is asked (`canAnswer`). */
export async function decideApproval(
  database: Database,
  id: string,
  answer: Answer,
  by?: Actor,
): Promise<Decided> {
  return database.transaction(async (tx) => {
    const found = await findApproval(tx, id);
    if (!found) return { kind: 'unknown_approval' };
    await lockConsumer(tx, found);
    await actAs(tx, by);
    await tx.query(sql.typeAlias('nothing')`
      select from farebox.approvals where id = ${id} for update
    `);
    await settleApprovals(tx, { ids: [id] });
    const approval = (await findApproval(tx, id)) ?? found;
    if (approval.status !== 'pending') {
      // The same answer again, after a lost reply.
      const isSame =
        approval.decision === answer.kind &&
        (answer.kind !== 'raise' || approval.raisedToMicros === answer.limitMicros);
      return { kind: isSame ? 'decided' : 'closed', approval };
    }
    const change = answer.kind === 'deny' ? undefined : await carryOut(tx, approval, answer);
    if (change && 'kind' in change) return change;
    await record(tx, approval, answer, change?.raisedToMicros ?? null);
    await postNotice(tx, 'approval', id, { ledger: approval.ledger });
    const decided = await findApproval(tx, id);
    return decided ? { kind: 'decided', approval: decided } : { kind: 'unknown_approval' };
  });
}

export async function mayDecide(database: Database, view: Decider, id: string): Promise<boolean> {
  const found = await database.maybeOne(sql.type(idRow)`
    select a.id from farebox.approvals a
    where a.id = ${id} and a.ledger = ${view.ledger} and a.consumer_id = ${view.consumerId} and ${isBelow(view)}
  `);
  return found !== null;
}

async function carryOut(
  tx: Transaction,
  approval: Approval,
  answer: Exclude<Answer, { kind: 'deny' }>,
): Promise<Decided | { readonly raisedToMicros: Micros | null }> {
  if (approval.budget === null) throw new Error('a balance is approved by topping it up');
  const budget = await getBudgetOfNumber(tx, approval, approval.budget);
  if (budget.status !== 'active') return { kind: 'budget_closed' };
  if (answer.kind === 'once') {
    // Makes processes check again whether the budget has such an approval.
    await applyToBudget(tx, approval, budget.number, { name: budget.name });
    return { raisedToMicros: null };
  }
  if (approval.scope === null) {
    const approved = new Set([...budget.approvedDevelopers, approval.developerId]);
    if (approved.size > APPROVED_DEVELOPERS_MAX) return { kind: 'too_many_developers' };
    await applyToBudget(tx, approval, budget.number, { approvedDevelopers: [...approved] });
    return { raisedToMicros: null };
  }
  const { limitMicros, neededMicros, settingsFor } = limitOf(budget, approval.scope, approval);
  const raisedToMicros = answer.kind === 'raise' ? answer.limitMicros : neededMicros;
  if (limitMicros === null || raisedToMicros <= limitMicros) {
    return { kind: 'not_a_raise', limitMicros: limitMicros ?? asMicros(0) };
  }
  await applyToBudget(tx, approval, budget.number, settingsFor(raisedToMicros));
  return { raisedToMicros };
}

interface Limit {
  readonly limitMicros: Micros | null;
  /** The smallest limit that lets the call pass. */
  readonly neededMicros: Micros;
  readonly settingsFor: (limitMicros: Micros) => Partial<BudgetSettings>;
}

function limitOf(budget: Budget, scope: ApprovalScope, { amountMicros }: Approval): Limit {
  const { window } = budget;
  switch (scope) {
    case 'total':
      return {
        limitMicros: budget.limitMicros,
        neededMicros: asMicros(budget.usedMicros + amountMicros),
        settingsFor: (limitMicros) => ({ limitMicros }),
      };
    case 'window':
      return {
        limitMicros: window && window.limitMicros,
        neededMicros: asMicros((window?.usedMicros ?? 0) + amountMicros),
        settingsFor: (limitMicros) => ({ window: window && { unit: window.unit, limitMicros } }),
      };
    case 'per_call':
      return {
        limitMicros: budget.maxPerCallMicros,
        neededMicros: amountMicros,
        settingsFor: (maxPerCallMicros) => ({ maxPerCallMicros }),
      };
  }
}

/** After the change, which ends earlier raises of the limit. */
async function record(
  tx: Transaction,
  { id }: Approval,
  { kind }: Answer,
  raisedToMicros: Micros | null,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.approvals set status = ${kind === 'deny' ? 'denied' : 'approved'}, decision = ${kind},
      raised_to_micros = ${raisedToMicros}, is_raise_in_force = ${raisedToMicros !== null},
      decided_at = clock_timestamp()
    where id = ${id}
  `);
}
