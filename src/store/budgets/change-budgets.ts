/**
 * Budgets as they are made, changed and closed: always under the lock of the consumer's row, which every debit takes,
 * so that a limit holds from the first charge after the answer. A node never moves.
 */
import { Type } from 'typebox';
import {
  BUDGET_DEPTH_MAX,
  BUDGETS_MAX,
  LIMIT_SCOPES,
  numberOfWindowUnit,
  type LimitScope,
  type WindowUnit,
} from '../../domain/budget.ts';
import type { Micros } from '../../domain/money.ts';
import { lockAccountOf } from '../accounts/accounts.ts';
import { actAs } from '../audit/actor.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import {
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
  type Fragment,
} from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import type { Budget } from './budget.ts';
import { findBudget, getBudgetOfNumber, lastNumberFor, type TreeView } from './budgets.ts';
import { hashOrNull, type RepeatedRequest } from '../repeated-request.ts';

/** What an owner decides about a node. Developers by their UUIDs; metadata as JSON. */
export interface BudgetSettings {
  readonly name: string;
  readonly limitMicros: Micros | null;
  readonly window: { readonly unit: WindowUnit; readonly limitMicros: Micros } | null;
  readonly maxPerCallMicros: Micros | null;
  readonly allowLeases: boolean;
  readonly maxLeaseMicros: Micros | null;
  readonly tools: readonly string[] | null;
  readonly developers: readonly string[] | null;
  readonly approveDevelopers: boolean;
  readonly approvedDevelopers: readonly string[];
  readonly mayDelegate: boolean;
  readonly metadata: string | null;
  readonly expiresAt: string | null;
}

/** The settings of a budget that limits nothing. */
export const NO_LIMITS = {
  limitMicros: null,
  window: null,
  maxPerCallMicros: null,
  tools: null,
  developers: null,
  mayDelegate: false,
  allowLeases: false,
  maxLeaseMicros: null,
  approveDevelopers: false,
  approvedDevelopers: [],
  metadata: null,
  expiresAt: null,
} satisfies Omit<BudgetSettings, 'name'>;

export type MadeBudget =
  /** `known`: an earlier request with the same idempotency key made it. */
  | { readonly kind: 'made' | 'known'; readonly budget: Budget }
  /** The idempotency key was used for another request. */
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'unknown_parent' | 'closed' | 'too_deep' | 'too_many' };

export type ChangedBudget =
  | { readonly kind: 'changed'; readonly budget: Budget }
  | { readonly kind: 'unknown_budget' | 'closed' };

export type ClosedBudget =
  | ChangedBudget
  /** A key asked to close the budget of a single developer. */
  | { readonly kind: 'for_owner' };

const numberRow = row(Type.Object({ number: Type.Integer() }));
const knownRow = row(Type.Object({ number: Type.Integer(), isSame: Type.Boolean() }));

/** Below a node of the view; `parentId` null is the account itself. */
export async function makeBudget(
  database: Database,
  view: TreeView,
  parentId: string | null,
  settings: BudgetSettings,
  retry?: RepeatedRequest,
): Promise<MadeBudget> {
  return database.transaction(async (tx) => {
    await lockConsumer(tx, view);
    await actAs(tx, view.by);
    const known = await findKnownBudget(tx, view, retry);
    return known ?? insertBudget(tx, view, parentId, settings, retry);
  });
}

/** The caller has locked the consumer. */
export async function insertBudget(
  tx: Transaction,
  view: TreeView,
  parentId: string | null,
  settings: BudgetSettings,
  retry?: RepeatedRequest,
): Promise<MadeBudget> {
  const { ledger, consumerId } = view;
  const parent = parentId === null ? null : await findBudget(tx, view, parentId);
  if (parentId !== null && !parent) return { kind: 'unknown_parent' };
  if (parent && parent.status !== 'active') return { kind: 'closed' };
  const above = parent?.path ?? [];
  if (above.length >= BUDGET_DEPTH_MAX) return { kind: 'too_deep' };
  const number = await tx.oneFirst(sql.type(numberRow)`
      select coalesce(max(number), 0) + 1 as number from farebox.budgets
      where ledger = ${ledger} and consumer_id = ${consumerId}
    `);
  if (number > lastNumberFor(view, BUDGETS_MAX)) return { kind: 'too_many' };
  const { limitMicros, window } = settings;
  const details = detailsOf(settings);
  await tx.query(sql.typeAlias('nothing')`
      insert into farebox.budgets (ledger, consumer_id, number, limit_micros, window_unit, window_limit_micros,
        window_from_micros, window_began)
      select ledger, id, ${number}::int4, ${limitMicros}::int8,
        ${numberOfWindowUnit(window?.unit ?? null)}::int2, ${window?.limitMicros ?? null}::int8, spent_micros,
        clock_timestamp()
      from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
    `);
  await tx.query(sql.typeAlias('nothing')`
      insert into farebox.budget_details (id, ledger, consumer_id, number, path, idempotency_hash, request_hash,
        ${sql.join(
          details.map(([column]) => column),
          sql.fragment`, `,
        )})
      values (${newIdOf(consumerId)}, ${ledger}, ${consumerId}, ${number},
        ${sql.array([...above, number], 'int4')}, ${hashOrNull(retry?.keyHash)},
        ${hashOrNull(retry?.requestHash)}, ${sql.join(
          details.map(([, value]) => value),
          sql.fragment`, `,
        )})
    `);
  return { kind: 'made', budget: await getBudgetOfNumber(tx, view, number) };
}

/** The result of an earlier request with the same idempotency key; null when there was none. */
export async function findKnownBudget(
  connection: Connection,
  view: TreeView,
  retry: RepeatedRequest | undefined,
): Promise<MadeBudget | null> {
  if (!retry) return null;
  const found = await connection.maybeOne(sql.type(knownRow)`
    select number, request_hash = ${hashOrNull(retry.requestHash)} as "isSame" from farebox.budget_details
    where ledger = ${view.ledger} and consumer_id = ${view.consumerId}
      and idempotency_hash = ${hashOrNull(retry.keyHash)}
  `);
  if (!found) return null;
  if (!found.isSame) return { kind: 'key_reused' };
  return { kind: 'known', budget: await getBudgetOfNumber(connection, view, found.number) };
}

/**
 * Absent members do not change. A limit below what is used refuses further charges and changes no
 * earlier ones. A window of another unit counts from the change on.
 */
export async function changeBudget(
  database: Database,
  view: TreeView,
  id: string,
  changes: Partial<BudgetSettings>,
): Promise<ChangedBudget> {
  return database.transaction(async (tx) => {
    await lockConsumer(tx, view);
    await actAs(tx, view.by);
    const budget = await findBudget(tx, view, id);
    if (!budget) return { kind: 'unknown_budget' };
    if (budget.status === 'closed') return { kind: 'closed' };
    await applyToBudget(tx, view, budget.number, changes);
    return { kind: 'changed', budget: await getBudgetOfNumber(tx, view, budget.number) };
  });
}

/**
 * Permanently, with all nodes below it and all their keys. If it is the budget of a single developer, keys of the
 * account do not pay that developer until the owner reopens it (reopen-budget.ts). So no key closes such a budget:
 * every tool server has one. Closing it again changes nothing.
 */
export async function closeBudget(
  database: Database,
  view: TreeView,
  id: string,
): Promise<ClosedBudget> {
  return database.transaction(async (tx) => {
    // The trigger block_developer.sql changes its row.
    await lockAccountOf(tx, view);
    await lockConsumer(tx, view);
    await actAs(tx, view.by);
    const budget = await findBudget(tx, view, id);
    if (!budget) return { kind: 'unknown_budget' };
    if (view.by?.kind === 'key' && budget.limitsConsumerKeys) return { kind: 'for_owner' };
    const node = ofNode(view, budget.number);
    await tx.query(sql.typeAlias('nothing')`
      with counters as (update farebox.budgets set is_closed = true where ${node})
      update farebox.budget_details set closed_at = now(), changed_at = now()
      where ${node} and closed_at is null
    `);
    return { kind: 'changed', budget: await getBudgetOfNumber(tx, view, budget.number) };
  });
}

/** To a node whose consumer is locked. */
export async function applyToBudget(
  tx: Transaction,
  view: ConsumerRef,
  number: number,
  changes: Partial<BudgetSettings>,
): Promise<void> {
  const node = ofNode(view, number);
  const { limitMicros, window } = changes;
  const set = detailsOf(changes);
  if (set.length > 0) {
    await tx.query(sql.typeAlias('nothing')`
      update farebox.budget_details set changed_at = now(), ${sql.join(
        set.map(([column, value]) => sql.fragment`${column} = ${value}`),
        sql.fragment`, `,
      )} where ${node}
    `);
  }
  if (limitMicros !== undefined) {
    await tx.query(sql.typeAlias('nothing')`
      update farebox.budgets set limit_micros = ${limitMicros}, used_at_limit_micros = used_micros where ${node}
    `);
  }
  const numbers = sql.fragment`(${number}::int4)`;
  if (window !== undefined) await setWindow(tx, view, numbers, window);
  const replaced = scopesOf(changes).filter((scope) => scope !== 'window');
  if (replaced.length > 0) await endRaises(tx, view, numbers, replaced);
}

/** Raises by approvals of limits that have been set since. */
async function endRaises(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  numbers: Fragment,
  scopes: readonly LimitScope[],
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.approvals set is_raise_in_force = false
    where ledger = ${ledger} and consumer_id = ${consumerId} and budget in ${numbers}
      and scope = any (${sql.array(scopes, 'text')}) and is_raise_in_force
  `);
}

/** The limits that are being set. */
function scopesOf(changes: Partial<BudgetSettings>): LimitScope[] {
  const set = {
    total: changes.limitMicros,
    window: changes.window,
    per_call: changes.maxPerCallMicros,
    per_lease: changes.maxLeaseMicros,
  };
  return LIMIT_SCOPES.filter((scope) => set[scope] !== undefined);
}

/**
 * Sets the window of any number of nodes. The count is kept only if the unit is the same and the window is
 * still open. A window that begins in the future, because Postgres' clock was set back, is reset.
 */
export async function setWindow(
  tx: Transaction,
  view: ConsumerRef,
  numbers: Fragment,
  window: BudgetSettings['window'],
): Promise<void> {
  const unit = numberOfWindowUnit(window?.unit ?? null);
  const stays = sql.fragment`
    b.window_unit = ${unit}
      and b.window_began between (farebox.windows_at(n.at))[${unit}::int4] and n.at
  `;
  await tx.query(sql.typeAlias('nothing')`
    with n as materialized (select clock_timestamp() as at)
    update farebox.budgets b set window_unit = ${unit}, window_limit_micros = ${window?.limitMicros ?? null},
      window_used_micros = case when ${stays} then b.window_used_micros else 0 end,
      window_used_at_limit_micros = case when ${stays} then b.window_used_micros else 0 end,
      window_from_micros = case when ${stays} then b.window_from_micros else c.spent_micros end,
      window_began = case when ${stays} then b.window_began else n.at end
    from farebox.consumers c cross join n
    where c.ledger = ${view.ledger} and c.id = ${view.consumerId}
      and b.ledger = c.ledger and b.consumer_id = c.id and b.number in ${numbers}
  `);
  await endRaises(tx, view, numbers, ['window']);
}

export function ofNode({ ledger, consumerId }: ConsumerRef, number: number) {
  return sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId} and number = ${number}`;
}

/** The columns of the settings that the changes contain, and their values. */
function detailsOf(changes: Partial<BudgetSettings>) {
  const { tools, developers, approvedDevelopers, metadata } = changes;
  const columns = {
    name: changes.name,
    max_per_call_micros: changes.maxPerCallMicros,
    allow_leases: changes.allowLeases,
    max_lease_micros: changes.maxLeaseMicros,
    tools: tools && sql.array(tools, 'text'),
    developers: developers && sql.array(developers, 'uuid'),
    approve_developers: changes.approveDevelopers,
    approved_developers: approvedDevelopers && sql.array(approvedDevelopers, 'uuid'),
    may_delegate: changes.mayDelegate,
    metadata: metadata === null ? '' : metadata,
    expires_at: changes.expiresAt,
  };
  return Object.entries(columns).flatMap(([column, value]) =>
    value === undefined ? [] : [[sql.identifier([column]), sql.fragment`${value}`] as const],
  );
}
