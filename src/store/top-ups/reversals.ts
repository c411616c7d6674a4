/**
 * Refunds and disputes of top-ups: the amounts that each has taken, holds and is owed. The processor's latest state
 * counts, no matter how often or in which order it is recorded. Every change is one transaction under the
 * consumer's lock, and derives the top-up's status from its reversals.
 */
import { Type, type Static } from 'typebox';
import { asMicros, type Micros } from '../../domain/money.ts';
import { netShare, type ClaimedShare } from '../../domain/tax.ts';
import {
  CLAIMS,
  REVERSAL_KINDS,
  REVERSAL_STATUSES,
  type DisputeStatus,
  type RefundStatus,
  type ReversalStatus,
  type WarningStatus,
} from '../../domain/reversal.ts';
import type { SuspectReason } from '../../domain/top-up.ts';
import { lockConsumer } from '../balance/consumers.ts';
import {
  type Connection,
  type Database,
  idRow,
  micros,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import { cover, repayDebts } from '../balance/debts.ts';
import { addLot } from '../balance/lots.ts';
import { turnOffSuspect } from './auto-top-ups.ts';
import { FailedRefund, failedRefundOf } from './failed-refunds.ts';

/** A refund, dispute or fraud warning as read from the processor. */
export type ReportedReversal = {
  readonly processorId: string;
  /** With tax. */
  readonly grossMicros: Micros;
} & (
  | {
      readonly kind: 'refund';
      readonly status: Exclude<RefundStatus, 'requested'>;
      /** The UUID of our refund request, if there is one. */
      readonly refundId?: string | undefined;
      /** Why it failed. */
      readonly failureMessage?: string | undefined;
    }
  | { readonly kind: 'dispute'; readonly status: DisputeStatus }
  | { readonly kind: 'warning'; readonly status: WarningStatus }
);

export const Reversal = Type.Object({
  id: Type.String(),
  kind: Type.Enum(REVERSAL_KINDS),
  status: Type.Enum(REVERSAL_STATUSES),
  /** Without tax: what is taken from the balance, or held. */
  amountMicros: micros,
  /** With tax: the amount at the processor. */
  grossMicros: micros,
  heldMicros: micros,
  takenMicros: micros,
  processorId: nullable(Type.String()),
  isDismissed: Type.Boolean(),
});
export type Reversal = Static<typeof Reversal>;

const ReversedTopUp = Type.Object({
  topUpId: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  method: Type.String(),
  status: Type.String(),
  amountMicros: micros,
  taxMicros: micros,
});
/** The fields of a top-up that its reversals need. */
export type ReversedTopUp = Static<typeof ReversedTopUp>;

const reversalRow = row(Reversal);
const reversedRow = row(ReversedTopUp);
const versionRow = row(Type.Object({ version: Type.Integer() }));
const shareRow = row(Type.Object({ netMicros: micros, grossMicros: micros }));

const Claims = Type.Object({
  heldMicros: micros,
  debtMicros: micros,
  /** The kinds of those that are open. */
  open: Type.Array(Type.Enum(['dispute', 'warning'])),
  failedRefund: nullable(FailedRefund),
});
const placeRow = row(Type.Object({ id: Type.String(), processorId: nullable(Type.String()) }));
const claimsRow = row(Claims);

export const reversalColumns = sql.fragment`
  id, kind, status, amount_micros as "amountMicros",
  coalesce(gross_micros, amount_micros) as "grossMicros", held_micros as "heldMicros",
  taken_micros as "takenMicros", processor_id as "processorId",
  dismissed_at is not null as "isDismissed"
`;

/** Makes the credit of a top-up report its reversals. False: it is already credited, or does not exist. */
export async function noteEarlyReversal(connection: Connection, topUpId: string): Promise<boolean> {
  const noted = await connection.maybeOne(sql.type(idRow)`
    update farebox.top_ups set reversal_reported = true
    where id = ${topUpId} and status in ('pending', 'expired', 'failed')
    returning id
  `);
  return noted !== null;
}

/** Read it before the processor, and pass it to `recordReversals`. */
export async function getReversalsVersion(
  connection: Connection,
  topUpId: string,
): Promise<number> {
  return connection.oneFirst(sql.type(versionRow)`
    select reversals_read as version from farebox.top_ups where id = ${topUpId}
  `);
}

/**
 * Records the reversals of a credited top-up as read from the processor. Returns false and records nothing if a later
 * read may have been recorded since `version`: then read again.
 */
export async function recordReversals(
  database: Database,
  topUpId: string,
  version: number,
  reported: readonly ReportedReversal[],
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const topUp = await lockConsumerOfTopUp(tx, topUpId);
    const current = await tx.maybeOne(sql.type(idRow)`
      update farebox.top_ups set reversals_read = reversals_read + 1
      where id = ${topUpId} and reversals_read = ${version}
        and status not in ('pending', 'expired', 'failed')
      returning id
    `);
    if (!current) return false;
    for (const reversal of await inOrderOfShares(tx, topUpId, reported)) {
      await recordOne(tx, topUp, reversal);
    }
    await updateAfterReversal(tx, topUp);
    return true;
  });
}

/** The total that the reversals of a top-up hold and are owed, and what an operator may have to act on. */
export async function getClaims(
  connection: Connection,
  topUpId: string,
): Promise<Static<typeof Claims>> {
  return connection.one(sql.type(claimsRow)`
    select coalesce(sum(held_micros), 0)::int8 as "heldMicros",
      coalesce(sum(debt_micros), 0)::int8 as "debtMicros",
      array(
        select distinct kind from farebox.reversals
        where top_up_id = ${topUpId} and status = 'open' order by kind
      ) as open,
      ${failedRefundOf(sql.fragment`${topUpId}`)} as "failedRefund"
    from farebox.reversals where top_up_id = ${topUpId}
  `);
}

export async function findReversedTopUp(
  connection: Connection,
  topUpId: string,
): Promise<ReversedTopUp | null> {
  return connection.maybeOne(sql.type(reversedRow)`
    select id as "topUpId", ledger, consumer_id as "consumerId", method, status,
      amount_micros as "amountMicros", tax_micros as "taxMicros"
    from farebox.top_ups where id = ${topUpId}
  `);
}

/** Locks the consumer of an existing top-up, and reads the top-up under the lock. */
export async function lockConsumerOfTopUp(
  tx: Transaction,
  topUpId: string,
): Promise<ReversedTopUp> {
  const topUp = await findReversedTopUp(tx, topUpId);
  if (!topUp) throw new Error(`Top-up ${topUpId} not found`);
  await lockConsumer(tx, topUp);
  return (await findReversedTopUp(tx, topUpId)) ?? topUp;
}

/**
 * What no longer claims anything leaves its share to the others, and refunds leave theirs to disputes and warnings.
 * Within a kind, the order is that of the rows, as a share depends on those before it.
 */
async function inOrderOfShares(
  tx: Transaction,
  topUpId: string,
  reported: readonly ReportedReversal[],
): Promise<ReportedReversal[]> {
  const known = await tx.any(sql.type(placeRow)`
    select id, processor_id as "processorId" from farebox.reversals
    where top_up_id = ${topUpId} order by id
  `);
  const claims = ({ status }: ReportedReversal) => Number(CLAIMS[status] !== 'nothing');
  const rank = ({ kind }: ReportedReversal) => REVERSAL_KINDS.indexOf(kind);
  const place = (reversal: ReportedReversal) => {
    const refundId = reversal.kind === 'refund' ? reversal.refundId : undefined;
    const index = known.findIndex(
      ({ id, processorId }) => processorId === reversal.processorId || id === refundId,
    );
    return index < 0 ? known.length : index;
  };
  return reported.toSorted(
    (a, b) => claims(a) - claims(b) || rank(a) - rank(b) || place(a) - place(b),
  );
}

async function recordOne(
  tx: Transaction,
  topUp: ReversedTopUp,
  reported: ReportedReversal,
): Promise<void> {
  const { kind, status, grossMicros, processorId } = reported;
  const refundId = kind === 'refund' ? (reported.refundId ?? null) : null;
  const before = await tx.maybeOne(sql.type(reversalRow)`
    select ${reversalColumns} from farebox.reversals
    where top_up_id = ${topUp.topUpId} and kind = ${kind}
      and (processor_id = ${processorId} or id = ${refundId}::uuid and processor_id is null)
    order by processor_id nulls last limit 1
  `);
  if (before?.isDismissed) return;
  // Our request fixed both amounts. Other shares depend on what else is claimed, and change with it.
  const isOurs = before?.id === refundId && before.grossMicros === grossMicros;
  const amountMicros = isOurs
    ? before.amountMicros
    : netShare(topUp, grossMicros, await getShareClaimedBefore(tx, topUp, reported, before?.id));
  if (before) {
    const failureMessage = kind === 'refund' ? reported.failureMessage : undefined;
    const state = { status, amountMicros, grossMicros, processorId, failureMessage };
    return changeReversal(tx, topUp, before, state);
  }
  if (CLAIMS[status] === 'nothing' || amountMicros === 0) return;
  const id = await tx.oneFirst(sql.type(idRow)`
    insert into farebox.reversals
      (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, gross_micros, processor_id)
    values (${newIdOf(topUp.consumerId)}, ${topUp.ledger}, ${topUp.consumerId}, ${topUp.topUpId}, ${kind}, ${status},
      ${amountMicros}, ${grossOf(amountMicros, grossMicros)}, ${processorId})
    returning id
  `);
  await cover(tx, topUp, id);
  // Only here, once: after the owner has turned them on again, only another dispute or warning turns them off.
  if (kind !== 'refund') await turnOffSuspect(tx, topUp, SUSPECT_REASONS[kind]);
}

const SUSPECT_REASONS: Readonly<Record<'dispute' | 'warning', SuspectReason>> = {
  dispute: 'payment_disputed',
  warning: 'fraud_warning',
};

/** Null where there is no tax. */
export function grossOf(amountMicros: Micros, grossMicros: Micros): Micros | null {
  return grossMicros === amountMicros ? null : grossMicros;
}

/**
 * The part of a payment that earlier reversals of the same kind have claimed. If a dispute or fraud warning fits into
 * what the refunds have left, their part counts as claimed too.
 */
async function getShareClaimedBefore(
  tx: Transaction,
  topUp: ReversedTopUp,
  { kind, grossMicros }: ReportedReversal,
  id: string | undefined,
): Promise<ClaimedShare> {
  const claimed = await getClaimedShare(tx, topUp, kind, id);
  if (kind === 'refund') return claimed;
  const refunded = await getClaimedShare(tx, topUp, 'refund');
  const both = {
    netMicros: asMicros(claimed.netMicros + refunded.netMicros),
    grossMicros: asMicros(claimed.grossMicros + refunded.grossMicros),
  };
  return both.grossMicros + grossMicros <= topUp.amountMicros + topUp.taxMicros ? both : claimed;
}

/** The part of a payment that its refunds, or its disputes, claim; given an id, those before it. */
export async function getClaimedShare(
  tx: Transaction,
  { topUpId }: ReversedTopUp,
  kind: Reversal['kind'],
  beforeId?: string,
): Promise<ClaimedShare> {
  return tx.one(sql.type(shareRow)`
    select coalesce(sum(amount_micros), 0)::int8 as "netMicros",
      coalesce(sum(coalesce(gross_micros, amount_micros)), 0)::int8 as "grossMicros"
    from farebox.reversals
    where top_up_id = ${topUpId} and kind = ${kind} and status not in ('failed', 'won')
      and (${beforeId ?? null}::uuid is null or id < ${beforeId ?? null}::uuid)
  `);
}

export interface ReversalState {
  readonly status: ReversalStatus;
  readonly amountMicros: Micros;
  readonly grossMicros: Micros;
  readonly processorId: string | null;
  readonly failureMessage?: string | undefined;
}

/**
 * Gives back what the reversal no longer claims, and covers what it claims now. What a failed refund had lifted is
 * held again in the same transaction, so that nothing can be spent in between.
 */
export async function changeReversal(
  tx: Transaction,
  topUp: ReversedTopUp,
  before: Reversal,
  { status, amountMicros, grossMicros, processorId, failureMessage }: ReversalState,
): Promise<void> {
  const claimsTheSame =
    CLAIMS[before.status] === CLAIMS[status] &&
    before.amountMicros === amountMicros &&
    before.grossMicros === grossMicros;
  if (!claimsTheSame) await giveBackClaim(tx, topUp, before);
  await tx.query(sql.typeAlias('nothing')`
    update farebox.reversals
    set status = ${status}, amount_micros = ${amountMicros},
      gross_micros = ${grossOf(amountMicros, grossMicros)}, processor_id = ${processorId},
      held_micros = ${claimsTheSame ? before.heldMicros : 0},
      taken_micros = ${claimsTheSame ? before.takenMicros : 0},
      failure_message = ${failureMessage ?? null}, updated_at = now()
    where id = ${before.id}
  `);
  if (!claimsTheSame) await cover(tx, topUp, before.id);
  if (status === 'failed' && before.status !== 'failed') await holdAgain(tx, topUp, before.id);
}

/** Lifts the hold, and credits the amount taken again, as a new lot of the same top-up. */
async function giveBackClaim(
  tx: Transaction,
  topUp: ReversedTopUp,
  { id, kind, heldMicros, takenMicros }: Reversal,
): Promise<void> {
  if (heldMicros > 0) {
    await tx.query(sql.typeAlias('nothing')`
      update farebox.consumers set held_micros = held_micros - ${heldMicros}::int8
      where ledger = ${topUp.ledger} and id = ${topUp.consumerId}
    `);
  }
  if (takenMicros > 0) {
    await addLot(tx, topUp, {
      kind: kind === 'refund' ? 'refund_returned' : 'dispute_returned',
      amountMicros: takenMicros,
      topUpId: topUp.topUpId,
      reversalId: id,
    });
  }
}

/** An operator's decision that a payment is not fraud. Undefined: there is no such top-up. */
export async function dismissFraudWarnings(
  database: Database,
  topUpId: string,
): Promise<number | undefined> {
  return database.transaction(async (tx) => {
    if (!(await findReversedTopUp(tx, topUpId))) return undefined;
    const topUp = await lockConsumerOfTopUp(tx, topUpId);
    const dismissed = await dismissWarnings(tx, topUp);
    if (dismissed > 0) await updateAfterReversal(tx, topUp);
    return dismissed;
  });
}

/** Lifts the holds of a top-up's open fraud warnings, even if they are reported again. Returns how many there were. */
export async function dismissWarnings(tx: Transaction, topUp: ReversedTopUp): Promise<number> {
  const open = await tx.any(sql.type(reversalRow)`
    select ${reversalColumns} from farebox.reversals
    where top_up_id = ${topUp.topUpId} and kind = 'warning' and status = 'open' order by id
  `);
  for (const warning of open) {
    await changeReversal(tx, topUp, warning, { ...warning, status: 'won' });
    await tx.query(sql.typeAlias('nothing')`
      update farebox.reversals set dismissed_at = now() where id = ${warning.id}
    `);
  }
  return open.length;
}

/**
 * Opens the fraud warnings again that the request of this refund dismissed: both have the time of that
 * transaction. What the processor says next about them counts.
 */
async function holdAgain(tx: Transaction, topUp: ReversedTopUp, refundId: string): Promise<void> {
  const lifted = await tx.any(sql.type(reversalRow)`
    update farebox.reversals set dismissed_at = null
    where top_up_id = ${topUp.topUpId} and kind = 'warning'
      and dismissed_at = (select created_at from farebox.reversals where id = ${refundId})
    returning ${reversalColumns}
  `);
  for (const warning of lifted)
    await changeReversal(tx, topUp, warning, { ...warning, status: 'open' });
}

/** Ends every change of a reversal: repays debts and derives the top-up's status. */
export async function updateAfterReversal(tx: Transaction, topUp: ReversedTopUp): Promise<void> {
  await repayDebts(tx, [topUp]);
  await tx.query(sql.typeAlias('nothing')`
    update farebox.top_ups t set updated_at = now(), status = case
        when r.open > 0 then 'disputed'
        when r.lost > 0 then 'charged_back'
        when r.refunded >= t.amount_micros then 'refunded'
        when r.refunded > 0 then 'partially_refunded'
        else 'completed'
      end
    from (
      select count(*) filter (where status = 'open') as open,
        count(*) filter (where status = 'lost') as lost,
        coalesce(sum(amount_micros) filter (where status in ('requested', 'made')), 0) as refunded
      from farebox.reversals where top_up_id = ${topUp.topUpId}
    ) r
    where t.id = ${topUp.topUpId}
  `);
}
