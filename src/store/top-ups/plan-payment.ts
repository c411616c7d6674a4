/**
 * What a top-up asks of the processor and what the processor then made. Both are in the row before the next call, so a
 * repeated call has the same parameters, and of two objects the first stays.
 */
import { CHECKOUT_MINUTES_MAX, CHECKOUT_MINUTES_MIN } from '../../domain/checkout.ts';
import type { Micros } from '../../domain/money.ts';
import { durationOf, type Connection, sql } from '../database.ts';
import { topUpColumns, topUpRow, type TopUp } from './top-ups.ts';

/** Decides once, by the setting of that time, so that a repeated call has the same parameters. */
export async function planTax(
  connection: Connection,
  id: string,
  isTaxed: boolean,
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set is_taxed = coalesce(is_taxed, ${isTaxed})
    where id = ${id} returning ${topUpColumns}
  `);
}

/** The first recorded calculation stays: its amount is what the payment intent asks for. */
export async function recordTaxCalculation(
  connection: Connection,
  id: string,
  tax: { readonly calculationId: string; readonly micros: Micros },
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set
      tax_micros = case when tax_calculation_id is null then ${tax.micros} else tax_micros end,
      tax_calculation_id = coalesce(tax_calculation_id, ${tax.calculationId})
    where id = ${id} returning ${topUpColumns}
  `);
}

/** Stripe requires a session to stay open for 30 minutes to 24 hours from its creation, and the call takes time. */
const SESSION_MS_MIN = CHECKOUT_MINUTES_MIN * 60_000;
const CALL_MS = 30_000;
/**
 * How far our clock and Stripe's may differ, in either direction: as far as those of a process and Postgres
 * for charges.
 */
const SKEW_MS = 300_000;

/**
 * Fixes the session's expiry before the session is created. The expiry stays while it is far enough away, so that a
 * repeated call has the same parameters. 24 hours are the processor's default, so they are not sent, nor is a
 * time so near to them that the processor might find it too late.
 */
export async function planSession(
  connection: Connection,
  id: string,
  minutes: number,
): Promise<TopUp> {
  const msMin = SESSION_MS_MIN + SKEW_MS;
  const ms = Math.max(minutes * 60_000, msMin) + CALL_MS;
  const isLongest = ms + SKEW_MS >= CHECKOUT_MINUTES_MAX * 60_000;
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set session_expires_at = case
      when ${isLongest} then null
      when session_expires_at > now() + ${durationOf(msMin)} then session_expires_at
      else date_trunc('second', now() + ${durationOf(ms)}) end
    where id = ${id} returning ${topUpColumns}
  `);
}

/** The first recorded session stays: nobody ever saw a later one. */
export async function recordSession(
  connection: Connection,
  id: string,
  /** Without a URL when it is paid or expired. */
  session: { readonly id: string; readonly url: string | null },
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      session_url = case when session_id is null then ${session.url} else session_url end,
      session_id = coalesce(session_id, ${session.id})
    where id = ${id} returning ${topUpColumns}
  `);
}

/**
 * The first recorded payment intent stays: only that one is ever confirmed. None is recorded after a verdict, such as
 * that of an operator's cancel.
 */
export async function recordPaymentIntent(
  connection: Connection,
  id: string,
  paymentIntentId: string,
): Promise<TopUp> {
  return connection.one(sql.type(topUpRow)`
    update farebox.top_ups set updated_at = now(),
      payment_intent_id = case when seen_verdict is null
        then coalesce(payment_intent_id, ${paymentIntentId}) else payment_intent_id end
    where id = ${id} returning ${topUpColumns}
  `);
}
