/**
 * Refunds of charges. A refund is a separate row, so the charge and its receipt never change. The consumer's row is
 * locked throughout, so refunds of a charge run one after another and never exceed it.
 */
import { Type, type Static } from 'typebox';
import { wireId } from '../../domain/ids.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { lockConsumer } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import { repayDebts } from '../balance/debts.ts';
import { addLot, hasRoomFor } from '../balance/lots.ts';
import { giveBackToBudgets } from '../budgets/give-back.ts';
import { notePaidBack } from '../earnings/top-up-attribution.ts';
import { holdIdOf, spendKeyOf } from './charge-origin.ts';
import { developersChargeIs } from './list-charges.ts';

export interface ChargeRefundRequest {
  /** The developer that must have made the charge. */
  readonly developerNumber: number;
  readonly chargeId: string;
  /** Null: everything that is left. */
  readonly askedMicros: Micros | null;
  readonly idempotencyKey: string | undefined;
}

const ChargeRefund = Type.Object({
  id: Type.String(),
  chargeId: Type.String(),
  amountMicros: micros,
  /** Refunded by this refund and all earlier ones of the charge. */
  refundedMicros: micros,
  askedMicros: nullable(micros),
});

/** A row of `charge_refunds`; ids are UUIDs, and its time is in its id, by Postgres's clock. */
export type ChargeRefund = Static<typeof ChargeRefund>;

type NewRefund = Pick<ChargeRefund, 'id' | 'amountMicros' | 'refundedMicros'> & {
  /** Its end on the axis of the consumer's total spending. */
  readonly spentMicros: number;
};

export type ChargeRefundResult =
  | { readonly kind: 'refunded'; readonly refund: ChargeRefund }
  /** The idempotency key already made this refund. */
  | { readonly kind: 'known'; readonly refund: ChargeRefund }
  /** The idempotency key already made a refund of this charge with another amount. */
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'unknown_charge' }
  | { readonly kind: 'exceeds_charge'; readonly refundableMicros: Micros }
  /** The sum of all credits to the consumer would exceed the largest safe integer. */
  | { readonly kind: 'too_much_credited' };

const Charge = Type.Object({
  id: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  developer: Type.Integer(),
  tool: Type.String(),
  amountMicros: micros,
  spentMicros: micros,
  spendKey: Type.Integer(),
  holdId: nullable(Type.String()),
});
type Charge = Static<typeof Charge>;

const chargeRow = row(Charge);
const refundRow = row(ChargeRefund);
const standingRow = row(Type.Object({ refundedMicros: micros, newId: Type.String() }));

const columns = sql.fragment`
  id, charge_id as "chargeId", amount_micros as "amountMicros", refunded_micros as "refundedMicros",
  asked_micros as "askedMicros"
`;

/**
 * Once this resolves, the consumer can spend the money again, except for the part that repaid a debt. It comes back as
 * a lot without a top-up: the top-up that paid for the charge is spent, and must not count twice.
 */
export async function refundCharge(
  database: Database,
  request: ChargeRefundRequest,
): Promise<ChargeRefundResult> {
  const { askedMicros, idempotencyKey } = request;
  const charge = await findCharge(database, request);
  if (!charge) return { kind: 'unknown_charge' };
  return database.transaction(async (tx) => {
    await lockConsumer(tx, charge);
    const known = idempotencyKey && (await findByKey(tx, charge, idempotencyKey));
    if (known) {
      return known.askedMicros === askedMicros
        ? { kind: 'known', refund: known }
        : { kind: 'key_reused' };
    }
    const { refundedMicros, newId } = await readStanding(tx, charge);
    const refundableMicros = asMicros(charge.amountMicros - refundedMicros);
    const amountMicros = askedMicros ?? refundableMicros;
    if (amountMicros > refundableMicros || refundableMicros === 0)
      return { kind: 'exceeds_charge', refundableMicros };
    if (!(await hasRoomFor(tx, charge, amountMicros))) return { kind: 'too_much_credited' };
    // The last money first: the end of the part of the charge that has not been refunded yet.
    const toMicros = charge.spentMicros - refundedMicros;
    const fromMicros = toMicros - amountMicros;
    const refund = await insert(tx, charge, request, {
      id: newId,
      amountMicros,
      refundedMicros: asMicros(refundedMicros + amountMicros),
      spentMicros: toMicros,
    });
    const reason = wireId('charge', charge.id);
    await addLot(tx, charge, { kind: 'charge_refund', amountMicros, reason, datedBy: refund.id });
    await giveBackToBudgets(tx, { ...charge, fromMicros, toMicros });
    await repayDebts(tx, [charge]);
    await notePaidBack(tx, { ...charge, developerNumber: charge.developer, fromMicros, toMicros });
    return { kind: 'refunded', refund };
  });
}

async function findCharge(
  connection: Connection,
  { developerNumber, chargeId }: ChargeRefundRequest,
): Promise<Charge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select id, ledger, consumer_id as "consumerId", developer, tool,
      amount_micros as "amountMicros", spent_micros as "spentMicros",
      ${spendKeyOf('charges')} as "spendKey", ${holdIdOf('charges')} as "holdId"
    from farebox.charges where developer = ${developerNumber} and ${developersChargeIs(chargeId)}
  `);
}

async function findByKey(
  tx: Transaction,
  charge: Charge,
  idempotencyKey: string,
): Promise<ChargeRefund | null> {
  return tx.maybeOne(sql.type(refundRow)`
    select ${columns} from farebox.charge_refunds
    where ${ofCharge(charge)} and idempotency_key = ${idempotencyKey}
  `);
}

/**
 * The amount of the charge refunded so far, and the id of its next refund. The id has the time of Postgres under the
 * lock: the clock of this machine may be wrong, and a refund that waited for the lock across the end of a month belongs
 * to the month that it is made in. The statements of both parties date the refund by it.
 */
async function readStanding(tx: Transaction, charge: Charge) {
  return tx.one(sql.type(standingRow)`
    select coalesce(max(refunded_micros), 0) as "refundedMicros", ${newIdOf(charge.consumerId)} as "newId"
    from farebox.charge_refunds
    where ${ofCharge(charge)}
  `);
}

const ofCharge = ({ ledger, consumerId, id }: Charge) => sql.fragment`
  ledger = ${ledger} and consumer_id = ${consumerId} and charge_id = ${id}
`;

/**
 * Writes the refund's row, the reduction of the developer's earnings in the minute of the refund, and the consumer's
 * counter.
 */
async function insert(
  tx: Transaction,
  charge: Charge,
  { askedMicros, idempotencyKey }: ChargeRefundRequest,
  { id, amountMicros, refundedMicros, spentMicros }: NewRefund,
): Promise<ChargeRefund> {
  const spendKey = charge.spendKey || null;
  return tx.one(sql.type(refundRow)`
    with counted as (
      update farebox.consumers set refunded_micros = refunded_micros + ${amountMicros}::int8
      where ledger = ${charge.ledger} and id = ${charge.consumerId}
    ),
    earned as (
      insert into farebox.earnings_tail
        (ledger, developer, minute, tool, amount_micros, charges, consumer_id, spend_key)
      values (${charge.ledger}, ${charge.developer},
        date_bin('1 minute', uuid_extract_timestamp(${id}::uuid), 'epoch'), ${charge.tool},
        -${amountMicros}::int8, 0, ${spendKey && charge.consumerId}, ${spendKey})
    )
    insert into farebox.charge_refunds (id, ledger, consumer_id, charge_id, developer, tool,
      charge_micros, amount_micros, refunded_micros, spent_micros, asked_micros, idempotency_key, spend_key)
    values (${id}, ${charge.ledger}, ${charge.consumerId}, ${charge.id}, ${charge.developer},
      ${charge.tool}, ${charge.amountMicros}, ${amountMicros}, ${refundedMicros}, ${spentMicros},
      ${askedMicros}, ${idempotencyKey ?? null}, ${spendKey})
    returning ${columns}
  `);
}
