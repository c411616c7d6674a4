/**
 * Charges: the statement that makes those that fit, and the one that decides others, if all of them are plain.
 * post-spends.ts decides them if one is by a spend key. Everything that decides about money is in migrations/functions
 * (post_fitting_groups_2.sql, post_charges_2.sql); this file adds up and passes arrays.
 */
import type { Micros } from '../../domain/money.ts';
import { cardVersionOf } from './charge-origin.ts';
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
  /** The version of the rate card that priced it; 0, or left out, for none. */
  readonly cardVersion?: number;
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
      readonly cardVersion: number;
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
  readonly amount: Micros;
  readonly balance: Micros;
  readonly signed_by: number;
  readonly card: number;
}

/** Bounds of the charge ids searched for an idempotency key. */
export interface ReplayWindow {
  readonly fromId: string;
  readonly toId: string;
}

/**
 * In one commit, makes the charges of consumers who can pay for all of theirs in this batch, whose budgets have room
 * for all of them, and whose keys are new. The outcome of the others is undefined: `postCharges` decides them, or
 * `postSpends` if one of them is by a spend key. Returns the outcomes in the order of the drafts. The caller ensures
 * that no idempotency hash occurs twice.
 */
export async function postFittingCharges(
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<(ChargeOutcome | undefined)[]> {
  if (drafts.some(({ needsApproval }) => needsApproval)) {
    return withoutExceptions(connection, drafts, receiptKey, replay);
  }
  const { groups, groupOf, through } = grouped(drafts);
  const nodes = nodesOf(drafts, groupOf);
  const spendKeys = nodes.length === 0 ? [] : drafts.map(({ spend }) => spend?.number ?? 0);
  const { balances } = await connection.one(sql.prepared(
    'post_fitting_groups_2',
    unchecked<Fitting>(),
  )`
    select farebox.post_fitting_groups_2(
      ${sql.binary(int2Array(groups.map((group) => group.ledger)))},
      ${sql.binary(uuidArray(groups.map((group) => group.consumerId)))},
      ${sql.binary(int8Array(groups.map((group) => group.totalMicros)))},
      ${sql.binary(int4Array(nodes.map((node) => node.group)))},
      ${sql.binary(int4Array(nodes.map((node) => node.number)))},
      ${sql.binary(int8Array(nodes.map((node) => node.totalMicros)))},
      ${sql.binary(int4Array(groupOf))},
      ${sql.binary(int8Array(through))},
      ${sql.binary(int4Array(spendKeys))},
      ${chargeColumns(drafts)},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid) as balances
  `);
  return drafts.map(({ id, amountMicros, cardVersion = 0 }, index) => {
    const balanceMicros = balances[index] ?? null;
    return balanceMicros === null
      ? undefined
      : { kind: 'posted', id, amountMicros, balanceMicros, cardVersion, receiptKey };
  });
}

/**
 * Leaves the charges that need an approval to `postSpends`, which alone reads approvals, and with them the
 * others of their consumers, so that their order stays.
 */
async function withoutExceptions(
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<(ChargeOutcome | undefined)[]> {
  const exceptions = drafts.filter(({ needsApproval }) => needsApproval);
  const left = new Set(exceptions.map(({ consumerId }) => consumerId));
  const others = drafts.filter(({ consumerId }) => !left.has(consumerId));
  const made =
    others.length === 0 ? [] : await postFittingCharges(connection, others, receiptKey, replay);
  const outcomeOfDraft = new Map(others.map((draft, index) => [draft, made[index]]));
  return drafts.map((draft) => outcomeOfDraft.get(draft));
}

interface Fitting {
  readonly balances: readonly (Micros | null)[];
}

interface Group {
  readonly ledger: number;
  readonly consumerId: string;
  totalMicros: number;
  number: number;
}

/** The charges by consumer, in the order in which every transaction locks consumers. Numbers begin at 1. */
function grouped(drafts: readonly ChargeDraft[]) {
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

interface Node {
  readonly group: number;
  readonly number: number;
  totalMicros: number;
}

/** What the charges add to each node on the paths of their keys. */
function nodesOf(drafts: readonly ChargeDraft[], groupOf: readonly number[]): readonly Node[] {
  const nodes = new Map<number, Node>();
  for (const [index, { spend, amountMicros }] of drafts.entries()) {
    if (!spend) continue;
    const group = groupOf[index] ?? 0;
    for (const number of spend.path) {
      // The number of a node is below 2 ** 31.
      const key = group * 2 ** 31 + number;
      const node = nodes.get(key);
      if (node) node.totalMicros += amountMicros;
      else nodes.set(key, { group, number, totalMicros: amountMicros });
    }
  }
  return [...nodes.values()];
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
  const rows = await connection.any(sql.prepared('post_charges_2', unchecked<OutcomeRow>())`
    select ord, outcome, charge_id, amount, balance, signed_by, card from farebox.post_charges_2(
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
  cardVersion: Type.Integer(),
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
      c.balance_micros as "balanceMicros", ${cardVersionOf('c')} as "cardVersion", c.receipt_key as "receiptKey"
    from asked a cross join lateral (
      select * from farebox.charges
      where idempotency_hash = a.hash and (request_fingerprint # a.fingerprint) >> 40 = 0
        and id >= ${replay.fromId} and id < ${replay.toId}
      limit 1
    ) c
  `);
  if (!found) return null;
  const { isSame, ...made } = found;
  return isSame ? { kind: 'replayed', ...made } : { kind: 'key_reused' };
}

/** The arguments about the charges that both statements share. */
function chargeColumns(drafts: readonly ChargeDraft[]) {
  const columns = [
    uuidArray(drafts.map((d) => d.id)),
    int4Array(drafts.map((d) => d.developerNumber)),
    textArray(drafts.map((d) => d.tool)),
    int8Array(drafts.map((d) => d.amountMicros)),
    int2Array(drafts.some((d) => d.cardVersion) ? drafts.map((d) => d.cardVersion ?? 0) : []),
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
        amountMicros: found.amount,
        balanceMicros: found.balance,
        cardVersion: found.card,
        receiptKey: found.signed_by,
      };
    case 'insufficient':
      return { kind: 'insufficient', balanceMicros: found.balance };
    case 'key_reused':
      return { kind: 'key_reused' };
  }
}
