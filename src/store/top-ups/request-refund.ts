/**
 * Refunds requested by an operator. The transaction that checks the amount removes it from the balance before the
 * processor is called, so that no charge can spend the refunded money meanwhile.
 */
import { Type } from 'typebox';
import { isTest } from '../../domain/mode.ts';
import { asMicros, MICROS_PER_CENT, type Micros } from '../../domain/money.ts';
import { grossShare } from '../../domain/tax.ts';
import {
  durationOf,
  idRow,
  micros,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import {
  findRepeated,
  getAction,
  KEY_REUSED,
  lockActionKey,
  recordAction,
  type KeyReused,
  type OperatorRequest,
} from '../operators/operator-actions.ts';
import { lockCommandKey, type CommandRequest } from '../balance/adjustment-keys.ts';
import { balanceOf, type ConsumerRef } from '../balance/consumers.ts';
import { unspentLots } from '../balance/first-lot.ts';
import { cutLots } from '../balance/lots.ts';
import { postNotice } from '../outbox.ts';
import { findKeyedRefund, recordKeyedRefund } from './refund-keys.ts';
import {
  changeReversal,
  dismissWarnings,
  findReversedTopUp,
  getClaimedShare,
  grossOf,
  lockConsumerOfTopUp,
  Reversal,
  reversalColumns,
  updateAfterReversal,
  type ReversedTopUp,
} from './reversals.ts';

export type RefundResult =
  | KeyReused
  | {
      readonly kind: 'requested';
      /** It was requested by an earlier request. */
      readonly isReplay: boolean;
      readonly refundId: string;
      readonly amountMicros: Micros;
    }
  | { readonly kind: 'not_found' }
  /** Credited manually: there is no payment to refund. */
  | { readonly kind: 'no_payment' }
  /** Not credited, disputed or charged back: the processor would refuse. */
  | { readonly kind: 'not_refundable'; readonly status: string }
  | { readonly kind: 'exceeds_unspent'; readonly refundableMicros: Micros };

/** Who asks, with a key: an operator in the console, who gives a reason, or a command. */
type By = (OperatorRequest & { readonly reason: string }) | CommandRequest;

const refundRow = row(Reversal);
const refundableRow = row(Type.Object({ topUpId: Type.String(), micros }));

/**
 * Requests a refund of at most the unspent part of the top-up, in whole cents; of all of it if no amount is given. The
 * workflow `reversals` then makes the refund at the processor.
 */
export async function requestRefund(
  database: Database,
  topUpId: string,
  askedMicros: Micros | undefined,
  by?: By,
): Promise<RefundResult> {
  try {
    return await database.transaction((tx) => request(tx, topUpId, askedMicros, by));
  } catch (error) {
    if (error instanceof Refused) return error.result;
    throw error;
  }
}

/** Rolls back, so that a refused refund leaves everything as it was. */
class Refused extends Error {
  readonly result: RefundResult;

  constructor(result: RefundResult) {
    super(result.kind);
    this.result = result;
  }
}

async function request(
  tx: Transaction,
  topUpId: string,
  askedMicros: Micros | undefined,
  by: By | undefined,
): Promise<RefundResult> {
  const found = await findReversedTopUp(tx, topUpId);
  if (!found || isTest(found)) return { kind: 'not_found' };
  if (found.method === 'manual') return { kind: 'no_payment' };
  if (by) await lockKey(tx, by);
  const topUp = await lockConsumerOfTopUp(tx, topUpId);
  const repeated = by && (await findRequested(tx, topUpId, askedMicros, by));
  if (repeated) return repeated;
  // A fraud warning calls for a refund, so it does not block one.
  const dismissed = await dismissWarnings(tx, topUp);
  if (dismissed > 0) await updateAfterReversal(tx, topUp);
  const { status } = dismissed > 0 ? ((await findReversedTopUp(tx, topUpId)) ?? topUp) : topUp;
  if (status !== 'completed' && status !== 'partially_refunded') {
    throw new Refused({ kind: 'not_refundable', status });
  }
  const refundableMicros = await getRefundable(tx, topUp);
  const amountMicros = askedMicros ?? refundableMicros;
  if (amountMicros > refundableMicros || amountMicros === 0) {
    throw new Refused({ kind: 'exceeds_unspent', refundableMicros });
  }
  const claimed = await getClaimedShare(tx, topUp, 'refund');
  const grossMicros = grossShare(topUp, amountMicros, claimed);
  const refundId = await tx.oneFirst(sql.type(idRow)`
    insert into farebox.reversals
      (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, taken_micros, gross_micros)
    values (${newIdOf(topUp.consumerId)}, ${topUp.ledger}, ${topUp.consumerId}, ${topUpId}, 'refund', 'requested',
      ${amountMicros}, ${amountMicros}, ${grossOf(amountMicros, grossMicros)})
    returning id
  `);
  await cutLots(tx, topUp, { kind: 'refund', amountMicros, topUpId, reversalId: refundId });
  await updateAfterReversal(tx, topUp);
  await postNotice(tx, 'reversal_reported', topUpId, { ledger: topUp.ledger });
  if (by && 'operatorAccountId' in by) {
    await recordAction(tx, { ...by, kind: 'refund', topUpId, id: refundId, amountMicros });
  } else if (by) {
    const { ledger, consumerId } = topUp;
    await recordKeyedRefund(tx, { ...by, ledger, consumerId, topUpId, refundId, amountMicros });
  }
  return { kind: 'requested', isReplay: false, refundId, amountMicros };
}

function lockKey(tx: Transaction, by: By): Promise<void> {
  return 'operatorAccountId' in by ? lockActionKey(tx, by) : lockCommandKey(tx, by);
}

/** The answer of the first request with this key, if there was one. A request without an amount matches any amount. */
async function findRequested(
  tx: Transaction,
  topUpId: string,
  askedMicros: Micros | undefined,
  by: By,
): Promise<RefundResult | undefined> {
  if ('operatorAccountId' in by) {
    const asked = { ...by, kind: 'refund' as const, topUpId, amountMicros: askedMicros ?? null };
    const known = await findRepeated(tx, asked);
    if (known !== 'same') return known === 'other' ? KEY_REUSED : undefined;
    const { id, amountMicros } = await getAction(tx, by);
    return { kind: 'requested', isReplay: true, refundId: id, amountMicros };
  }
  const known = await findKeyedRefund(tx, by);
  if (known === null) return undefined;
  if (known === 'adjustment' || known.topUpId !== topUpId) return KEY_REUSED;
  const { refundId, amountMicros } = known;
  if (askedMicros !== undefined && askedMicros !== amountMicros) return KEY_REUSED;
  return { kind: 'requested', isReplay: true, refundId, amountMicros };
}

/**
 * How much of each top-up a refund could return now, in whole cents; of one with nothing unspent, nothing is returned.
 * An open fraud warning of it counts as dismissed: what it holds would first repay the consumer's other debts. These
 * may take more of this top-up than is counted here; then the refund is refused, with how much is left.
 */
export async function listRefundable(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  topUpIds: readonly string[],
): Promise<ReadonlyMap<string, Micros>> {
  const own = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const rows = await connection.any(sql.type(refundableRow)`
    with consumer as (
      select ${balanceOf('c')} as balance, (
        select coalesce(sum(debt_micros), 0) from farebox.reversals where ${own} and debt_micros > 0
      ) as debt
      from farebox.consumers c where c.ledger = ${ledger} and c.id = ${consumerId}
    ), unspent as (
      select top_up_id, sum(micros) as micros from ${unspentLots({ ledger, consumerId })} l
      where top_up_id = any(${sql.array(topUpIds, 'uuid')}) group by top_up_id
    )
    select u.top_up_id as "topUpId", (f.micros - f.micros % ${MICROS_PER_CENT}::int8)::int8 as micros
    from consumer c, unspent u, lateral (
      select coalesce(sum(held_micros), 0) as held, coalesce(sum(debt_micros), 0) as debt
      from farebox.reversals r
      where r.top_up_id = u.top_up_id and kind = 'warning' and status = 'open'
    ) w, lateral (
      select least(u.micros, greatest(c.balance + w.held - (c.debt - w.debt), 0)) as micros
    ) f
  `);
  return new Map(rows.map(({ topUpId, micros: left }) => [topUpId, left]));
}

async function getRefundable(tx: Transaction, topUp: ReversedTopUp): Promise<Micros> {
  const refundable = await listRefundable(tx, topUp, [topUp.topUpId]);
  return refundable.get(topUp.topUpId) ?? asMicros(0);
}

/** Refunds not yet confirmed by the processor, oldest first. */
export async function listRequestedRefunds(
  connection: Connection,
  topUpId: string,
): Promise<readonly Reversal[]> {
  return connection.any(sql.type(refundRow)`
    select ${reversalColumns} from farebox.reversals
    where top_up_id = ${topUpId} and status = 'requested' order by id
  `);
}

/**
 * Writes notices for refunds that were requested this long ago and have no outcome, since their workflow may have been
 * terminated. Returns how many.
 */
export async function noteWaitingRefunds(
  connection: Connection,
  olderThanMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with waiting as (
      update farebox.reversals set updated_at = now()
      where status = 'requested' and updated_at < now() - ${durationOf(olderThanMs)}
      returning ledger, top_up_id
    )
    insert into farebox.outbox (ledger, topic, subject_id)
    select distinct ledger, 'reversal_reported', top_up_id from waiting
  `);
  return rowCount;
}

/** Records that the processor refused the refund, and credits the amount again, once. Then read the reversals again. */
export async function failRefund(
  database: Database,
  topUpId: string,
  refundId: string,
  failureMessage: string,
): Promise<void> {
  await database.transaction(async (tx) => {
    const topUp = await lockConsumerOfTopUp(tx, topUpId);
    const requested = await listRequestedRefunds(tx, topUpId);
    const refund = requested.find(({ id }) => id === refundId);
    if (!refund) return;
    await changeReversal(tx, topUp, refund, { ...refund, status: 'failed', failureMessage });
    await updateAfterReversal(tx, topUp);
  });
}
