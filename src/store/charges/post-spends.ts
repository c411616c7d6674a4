/**
 * Charges of a batch in which some are by spend keys. As with plain charges one statement makes those that fit, and
 * another one decides the rest. Everything that decides about money is in migrations/functions
 * (post_fitting_spends.sql, post_entries.sql).
 */
import { approvalRequired, limitReached } from '../budgets/budget.ts';
import { sql, unchecked, type Connection } from '../database.ts';
import { decideEntries, type EntryRow } from '../holds/decide-entries.ts';
import { int2Array, int4Array, int8Array, uuidArray } from './binary-arrays.ts';
import {
  chargeColumns,
  grouped,
  posted,
  type ChargeDraft,
  type ChargeOutcome,
  type Fitting,
  type ReplayWindow,
} from './post-charges.ts';

/**
 * Makes those charges whose consumer can pay for all of its charges here, whose budgets have room for all of them, and
 * whose keys are new; of the others, undefined: `postSpends` decides these. In one commit, in the order of the drafts.
 * The caller ensures that no idempotency hash occurs twice.
 */
export async function postFittingSpends(
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
  const { balances } = await connection.one(sql.prepared(
    'post_fitting_spends',
    unchecked<Fitting>(),
  )`
    select farebox.post_fitting_spends(
      ${sql.binary(int2Array(groups.map((group) => group.ledger)))},
      ${sql.binary(uuidArray(groups.map((group) => group.consumerId)))},
      ${sql.binary(int8Array(groups.map((group) => group.totalMicros)))},
      ${sql.binary(int4Array(nodes.map((node) => node.group)))},
      ${sql.binary(int4Array(nodes.map((node) => node.number)))},
      ${sql.binary(int8Array(nodes.map((node) => node.totalMicros)))},
      ${sql.binary(int4Array(groupOf))},
      ${sql.binary(int8Array(through))},
      ${sql.binary(int4Array(drafts.map(({ spend }) => spend?.number ?? 0)))},
      ${chargeColumns(drafts)},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid) as balances
  `);
  return posted(drafts, balances, receiptKey);
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
  const plain = drafts.filter(({ consumerId }) => !left.has(consumerId));
  const made =
    plain.length === 0 ? [] : await postFittingSpends(connection, plain, receiptKey, replay);
  const outcomeOfDraft = new Map(plain.map((draft, index) => [draft, made[index]]));
  return drafts.map((draft) => outcomeOfDraft.get(draft));
}

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
