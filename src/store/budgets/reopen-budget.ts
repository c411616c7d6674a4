/**
 * Reopens the closed budget of a single developer, whom keys of the account then pay again. What ended with the closing
 * stays ended: spend keys that were handed out for the budget, all budgets below it, and requests for an approval.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from 'typebox';
import { lockAccountOf } from '../accounts/accounts.ts';
import { IS_ACTIVE } from '../accounts/api-keys.ts';
import { settleApprovals } from '../approvals/settle-approvals.ts';
import { actAs } from '../audit/actor.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Database, type Transaction } from '../database.ts';
import { findBudget, getBudgetOfNumber, type TreeView } from './budgets.ts';
import { ofNode, type ChangedBudget } from './change-budgets.ts';
import { AT_ONCE, REST_MS } from './close-all-budgets.ts';

export type ReopenedBudget =
  | Exclude<ChangedBudget, { readonly kind: 'closed' }>
  /** It is not that of a single developer. */
  | { readonly kind: 'not_reopenable' };

const endedRow = row(Type.Object({ ended: Type.Integer() }));

/** Reopening an open one changes nothing. */
export async function reopenBudget(
  database: Database,
  view: TreeView & { readonly accountId: string },
  id: string,
): Promise<ReopenedBudget> {
  for (;;) {
    const reopened = await database.transaction((tx) => reopenIfAllEnded(tx, view, id));
    if (reopened) return reopened;
    await delay(REST_MS);
  }
}

/** Null: so much is left to end that others get a turn before the rest. */
async function reopenIfAllEnded(
  tx: Transaction,
  view: TreeView & { readonly accountId: string },
  id: string,
): Promise<ReopenedBudget | null> {
  // The trigger block_developer.sql changes its row.
  await lockAccountOf(tx, view);
  await lockConsumer(tx, view);
  await actAs(tx, view.by);
  const budget = await findBudget(tx, view, id);
  if (!budget) return { kind: 'unknown_budget' };
  if (!budget.limitsConsumerKeys) return { kind: 'not_reopenable' };
  if (budget.status !== 'closed') return { kind: 'changed', budget };
  const { number } = budget;
  if ((await endWithin(tx, view, number)) === AT_ONCE) return null;
  await settleApprovals(tx, view);
  const node = ofNode(view, number);
  await tx.query(sql.typeAlias('nothing')`
    with counters as (update farebox.budgets set is_closed = false where ${node})
    update farebox.budget_details set closed_at = null, changed_at = now() where ${node}
  `);
  return { kind: 'changed', budget: await getBudgetOfNumber(tx, view, number) };
}

/** The spend keys of a closed node, and the nodes below it, up to `AT_ONCE` of each. Returns the larger number. */
async function endWithin(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  number: number,
): Promise<number> {
  const ofConsumer = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  return tx.oneFirst(sql.type(endedRow)`
    with keys as (
      update farebox.spend_keys set revoked_at = now(), changed_at = now()
      where ${ofConsumer} and number in (
        select number from farebox.spend_keys
        where ${ofConsumer} and budget = ${number} and developer is null and ${IS_ACTIVE} limit ${AT_ONCE}
      )
      returning number
    ), nodes as materialized (
      select number from farebox.budget_details
      where ${ofConsumer} and number > ${number} and cardinality(path) = 2 and path[1] = ${number} and closed_at is null
      limit ${AT_ONCE}
    ), counters as (
      update farebox.budgets set is_closed = true where ${ofConsumer} and number in (select number from nodes)
    ), below as (
      update farebox.budget_details set closed_at = now(), changed_at = now()
      where ${ofConsumer} and number in (select number from nodes)
      returning number
    )
    select greatest((select count(*) from keys), (select count(*) from below))::int as ended
  `);
}
