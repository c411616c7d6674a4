/**
 * Charges: the two statements that make them. Everything that decides about money is in migrations/functions
 * (post_fitting_charges.sql, post_charges.sql); this file adds up and passes arrays. list-charges.ts reads charges.
 */
import { asMicros, type Micros } from '../../domain/money.ts';
import { int2Array, int4Array, int8Array, textArray, uuidArray } from './binary-arrays.ts';
import {
  identityColumns,
  identityValues,
  type OptionalIdentity,
  type Identity,
} from './identity.ts';
import { Type } from 'typebox';
import type { KeyOwner } from '../accounts/api-keys.ts';
import type { ApprovalRequired, LimitReached } from '../budgets/budget.ts';
import { micros, row, sql, unchecked, type Connection } from '../database.ts';

/** A charge to be decided; ids are UUIDs. */
export interface ChargeDraft extends OptionalIdentity {
  /** Set when the draft is sent. */
  id: string;
  readonly ledger: number;
  readonly consumerId: string;
  readonly developerId: string;
  readonly developerNumber: number;
  readonly tool: string;
  readonly amountMicros: Micros;
  /** JSON text of a flat object, or null. */
  readonly metadata: string | null;
  /** The key that pays when it is a spend key; null for a key of the account. */
  readonly spend: KeyOwner['spend'];
  /** A budget refuses it, by what memory knows, unless its owner approved it once. */
  readonly needsApproval?: boolean;
}

export type ChargeOutcome =
  | {
      readonly kind: 'posted' | 'replayed';
      readonly id: string;
      readonly amountMicros: Micros;
      /** The balance after this charge. */
      readonly balanceMicros: Micros;
      readonly receiptKey: number;
    }
  | { readonly kind: 'insufficient'; readonly balanceMicros: Micros }
  | { readonly kind: 'key_reused' }
  | LimitReached
  | ApprovalRequired
  /** The budget of the spend key was closed meanwhile. */
  | { readonly kind: 'key_closed' };

interface OutcomeRow {
  readonly ord: number;
  readonly outcome: 'posted' | 'replayed' | 'insufficient' | 'key_reused';
  readonly charge_id: string;
  readonly amount: number;
  readonly balance: number;
  readonly signed_by: number;
}

/** Bounds of the charge ids searched for an idempotency key. */
export interface ReplayWindow {
  readonly fromId: string;
  readonly toId: string;
}

/**
 * In one commit, makes the charges of consumers who can pay for all of theirs in this batch and whose keys are new. The
 * outcome of the others is undefined; `postCharges` decides them. Returns the outcomes in the order of the drafts. The
 * caller ensures that no idempotency hash occurs twice.
 */
export async function postFittingCharges(
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<(ChargeOutcome | undefined)[]> {
  const { groups, groupOf, through } = grouped(drafts);
  const { balances } = await connection.one(sql.prepared(
    'post_fitting_charges',
    unchecked<Fitting>(),
  )`
    select farebox.post_fitting_charges(
      ${sql.binary(int2Array(groups.map((group) => group.ledger)))},
      ${sql.binary(uuidArray(groups.map((group) => group.consumerId)))},
      ${sql.binary(int8Array(groups.map((group) => group.totalMicros)))},
      ${sql.binary(int4Array(groupOf))},
      ${sql.binary(int8Array(through))},
      ${chargeColumns(drafts)},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid) as balances
  `);
  return posted(drafts, balances, receiptKey);
}

/** The outcomes for the balances that a statement for fitting charges returned: undefined for a charge that it left. */
export function posted(
  drafts: readonly ChargeDraft[],
  balances: Fitting['balances'],
  receiptKey: number,
): (ChargeOutcome | undefined)[] {
  return drafts.map(({ id, amountMicros }, index) => {
    const balance = balances[index] ?? null;
    return balance === null
      ? undefined
      : { kind: 'posted', id, amountMicros, balanceMicros: asMicros(balance), receiptKey };
  });
}

export interface Fitting {
  readonly balances: readonly (number | null)[];
}

interface Group {
  readonly ledger: number;
  readonly consumerId: string;
  totalMicros: number;
  number: number;
}

/** The charges by consumer, in the order in which every transaction locks consumers. Numbers begin at 1. */
export function grouped(drafts: readonly ChargeDraft[]) {
  const byConsumer = new Map<string, Group>();
  const through: number[] = [];
  for (const { ledger, consumerId, amountMicros } of drafts) {
    let group = byConsumer.get(consumerId);
    if (!group) {
      group = { ledger, consumerId, totalMicros: 0, number: 0 };
      byConsumer.set(consumerId, group);
    }
    group.totalMicros += amountMicros;
    through.push(group.totalMicros);
  }
  const groups = [...byConsumer.values()].toSorted(
    (a, b) => a.ledger - b.ledger || (a.consumerId < b.consumerId ? -1 : 1),
  );
  for (const [index, group] of groups.entries()) group.number = index + 1;
  const groupOf = drafts.map(({ consumerId }) => byConsumer.get(consumerId)?.number ?? 0);
  return { groups, groupOf, through };
}

/**
 * Decides a batch, in order, in one commit. The caller ensures that no idempotency hash occurs twice. Returns the
 * outcomes in the order of the drafts.
 */
export async function postCharges(
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<ChargeOutcome[]> {
  const rows = await connection.any(sql.prepared('post_charges', unchecked<OutcomeRow>())`
    select ord, outcome, charge_id, amount, balance, signed_by from farebox.post_charges(
      ${sql.binary(int2Array(drafts.map((d) => d.ledger)))},
      ${sql.binary(uuidArray(drafts.map((d) => d.consumerId)))},
      ${chargeColumns(drafts)},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid)
  `);
  const outcomes: ChargeOutcome[] = [];
  for (const found of rows) outcomes[found.ord - 1] = outcomeOf(found);
  if (rows.length !== drafts.length) {
    throw new Error(`${drafts.length} charges sent, ${rows.length} decided: a consumer is missing`);
  }
  return outcomes;
}

const OutcomeByKey = Type.Object({
  isSame: Type.Boolean(),
  id: Type.String(),
  amountMicros: micros,
  balanceMicros: micros,
  receiptKey: Type.Integer(),
});
const outcomeByKeyRow = row(OutcomeByKey);

/**
 * The outcome of the charge that an idempotency key made: `replayed`, or `key_reused` when the request differs. Null
 * when the key made none. Each statement that makes charges with keys looks them up the same way.
 */
export async function findChargeByKey(
  connection: Connection,
  key: Identity,
  replay: ReplayWindow,
): Promise<ChargeOutcome | null> {
  const [hash, fingerprint] = identityValues(key);
  const found = await connection.maybeOne(sql.type(outcomeByKeyRow)`
    with asked as (select ${hash} as hash, ${fingerprint} as fingerprint)
    select c.request_fingerprint = a.fingerprint as "isSame", c.id, c.amount_micros as "amountMicros",
      c.balance_micros as "balanceMicros", c.receipt_key as "receiptKey"
    from asked a cross join lateral (
      select * from farebox.charges
      where idempotency_hash = a.hash and (request_fingerprint # a.fingerprint) >> 40 = 0
        and id >= ${replay.fromId} and id < ${replay.toId}
      limit 1
    ) c
  `);
  if (!found) return null;
  const { isSame, id, amountMicros, balanceMicros, receiptKey } = found;
  if (!isSame) return { kind: 'key_reused' };
  return {
    kind: 'replayed',
    id,
    amountMicros: asMicros(amountMicros),
    balanceMicros: asMicros(balanceMicros),
    receiptKey,
  };
}

/** The arguments about the charges that all statements share. */
export function chargeColumns(drafts: readonly ChargeDraft[]) {
  const columns = [
    uuidArray(drafts.map((d) => d.id)),
    int4Array(drafts.map((d) => d.developerNumber)),
    textArray(drafts.map((d) => d.tool)),
    int8Array(drafts.map((d) => d.amountMicros)),
    ...identityColumns(drafts),
    textArray(drafts.map((d) => d.metadata)),
  ];
  return sql.join(
    columns.map((column) => sql.binary(column)),
    sql.fragment`, `,
  );
}

function outcomeOf(found: OutcomeRow): ChargeOutcome {
  switch (found.outcome) {
    case 'posted':
    case 'replayed':
      return {
        kind: found.outcome,
        id: found.charge_id,
        amountMicros: asMicros(found.amount),
        balanceMicros: asMicros(found.balance),
        receiptKey: found.signed_by,
      };
    case 'insufficient':
      return { kind: 'insufficient', balanceMicros: asMicros(found.balance) };
    case 'key_reused':
      return { kind: 'key_reused' };
  }
}
