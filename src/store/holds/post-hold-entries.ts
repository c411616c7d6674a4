/** Changes holds. decide-entries.ts runs the statement, list-holds.ts reads holds. */
import { repayDebts } from '../balance/debts.ts';
import { approvalRequired, limitReached } from '../budgets/budget.ts';
import { identityValues, type Identity } from '../charges/identity.ts';
import type { ReplayWindow } from '../charges/post-charges.ts';
import { chargeOutcomeOf } from '../charges/post-spends.ts';
import { type Connection, idRow, sql } from '../database.ts';
import { holdOf, type Hold } from './hold.ts';
import { decideEntries, type EntryRow, type LedgerEntry } from './decide-entries.ts';
import type { HoldEntry, HoldOutcome, OfHold, Outcomes } from './hold-entry.ts';

/**
 * Decides the entries in order, in one commit. The caller ensures that no idempotency hash occurs twice. An entry that
 * would release money of a consumer with a debt has the outcome undefined: `postEntries` decides it.
 */
export async function postFittingEntries<Entry extends LedgerEntry>(
  connection: Connection,
  entries: readonly Entry[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<(Outcomes[Entry['kind']] | undefined)[]> {
  const decided = await decideEntries(connection, entries, receiptKey, replay, 'left');
  return decided.map(({ entry, found }) =>
    found.outcome === 'owing' ? undefined : outcomeOf(entry, found),
  );
}

/** Decides them all, and repays the debts of their consumers from the money that they release, in one transaction. */
export async function postEntries<Entry extends LedgerEntry>(
  connection: Connection,
  entries: readonly Entry[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<Outcomes[Entry['kind']][]> {
  return connection.transaction(async (tx) => {
    const decided = await decideEntries(tx, entries, receiptKey, replay, 'decided');
    const consumers = new Map(
      decided
        .filter(({ found }) => found.hold_id !== null)
        .map(({ found: { ledger, consumer } }) => [consumer, { ledger, consumerId: consumer }]),
    );
    if (consumers.size > 0) await repayDebts(tx, [...consumers.values()]);
    return decided.map(({ entry, found }) => outcomeOf(entry, found));
  });
}

/** Whether the idempotency key has placed a hold, for this request or another. */
export async function isHoldKey(
  connection: Connection,
  key: Identity,
  replay: ReplayWindow,
): Promise<boolean> {
  const [hash, fingerprint] = identityValues(key);
  const found = await connection.maybeOne(sql.type(idRow)`
    with asked as (select ${hash} as hash, ${fingerprint} as fingerprint)
    select h.id from asked a cross join lateral (
      select id from farebox.holds
      where idempotency_hash = a.hash and (request_fingerprint # a.fingerprint) >> 40 = 0
        and id >= ${replay.fromId} and id < ${replay.toId}
      limit 1
    ) h
  `);
  return found !== null;
}

/** The holds that another transaction has locked now, or whose consumer it has. Does not wait for locks. */
export async function findLockedHolds(
  connection: Connection,
  holds: readonly Pick<OfHold, 'developerNumber' | 'holdId'>[],
): Promise<readonly string[]> {
  return connection.anyFirst(sql.type(idRow)`
    with asked as (
      select h.ledger, h.consumer_id, h.id
      from ${sql.unnest(
        holds.map(({ developerNumber, holdId }) => [developerNumber, holdId]),
        ['int4', 'uuid'],
      )} as a (developer, id)
      join farebox.holds h on h.developer = a.developer and h.id = a.id
    ), free as materialized (
      select h.id from asked a
      join farebox.holds h on h.ledger = a.ledger and h.consumer_id = a.consumer_id and h.id = a.id
      join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
      for update of h, c skip locked
    )
    select distinct id from asked where id not in (select id from free)
  `);
}

/** The row of an entry has an outcome of the entry's kind. */
export function outcomeOf<Entry extends LedgerEntry>(
  entry: Entry,
  found: EntryRow,
): Outcomes[Entry['kind']];
export function outcomeOf(entry: LedgerEntry, found: EntryRow): Outcomes[LedgerEntry['kind']] {
  return entry.kind === 'charge'
    ? chargeOutcomeOf(found as EntryRow<'charge'>, entry.developerId)
    : holdOutcomeOf(entry, found);
}

function holdOutcomeOf(entry: HoldEntry, found: EntryRow): HoldOutcome {
  const { outcome, amount, balance } = found;
  switch (outcome) {
    case 'done':
    case 'replayed':
      return {
        kind: outcome,
        hold: shownHold(found),
        chargeId: found.charge_id,
        amountMicros: amount,
        balanceMicros: balance,
        cardVersion: found.card,
        receiptKey: found.signed_by,
      };
    case 'insufficient':
      return {
        kind: outcome,
        // A hold that was not placed has no row that could name its consumer.
        consumerId: entry.kind === 'place' ? entry.consumerId : found.consumer,
        balanceMicros: balance,
        requiredMicros: amount,
      };
    case 'limit_reached':
      return limitReached(found);
    case 'approval_required':
      return approvalRequired(found, entry.developerId);
    case 'exceeds_hold':
      return { kind: outcome, remainingMicros: amount };
    case 'hold_closed':
      return { kind: outcome, hold: shownHold(found) };
    case 'key_closed':
    case 'unknown_hold':
    case 'key_reused':
      return { kind: outcome };
    case 'owing':
      throw new Error('a debt was not repaid');
  }
}

function shownHold(found: EntryRow): Hold {
  if (found.hold_id === null) throw new Error('a hold was decided and not found');
  return holdOf({
    id: found.hold_id,
    consumerId: found.consumer,
    tool: found.tool,
    amountMicros: found.hold_amount,
    capturedMicros: found.captured,
    remainingMicros: found.remaining,
    state: found.state,
    placedAt: found.placed_at,
    expiresAt: found.expires_at,
  });
}
