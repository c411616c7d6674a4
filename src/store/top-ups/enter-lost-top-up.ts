/**
 * Enters a top-up that a restored database does not have, because it was made after the restored moment. Its id, which
 * Stripe kept with the payment, says when.
 */
import type { Micros } from '../../domain/money.ts';
import { type Connection, idRow, sql } from '../database.ts';
import { countsThisMonth } from './monthly-ceiling.ts';

export interface LostTopUp {
  readonly id: string;
  /** The account, of a checkout by a top-up link; else Stripe's customer, which names it. */
  readonly payer: { readonly accountId: string } | { readonly customerId: string | null };
  readonly amountMicros: Micros;
  /** The tax that a direct top-up paid on top of it. Null: not taxed. A checkout's is read again once it is paid. */
  readonly taxMicros: Micros | null;
  /** Stripe's calculation of that tax, which the invoice of a direct top-up is made of. */
  readonly taxCalculationId: string | null;
  /** Null: the saved card was charged. */
  readonly session: {
    readonly id: string;
    readonly url: string | null;
    /** ISO 8601. */
    readonly expiresAt: string;
  } | null;
}

/**
 * Enters it as claimed and not yet paid. False: no account has this customer, or the id has no time, so it is not one
 * of ours.
 *
 * The consent at the time is lost as well. The ceiling is at least what the month then took, as it was when the top-up
 * was accepted.
 */
export async function enterLostTopUp(connection: Connection, lost: LostTopUp): Promise<boolean> {
  const { id, payer, amountMicros, taxMicros, taxCalculationId, session } = lost;
  const byLink = 'accountId' in payer;
  const isPayer = byLink
    ? sql.fragment`a.id = ${payer.accountId}`
    : sql.fragment`a.processor_customer_id = ${payer.customerId}`;
  const entered = await connection.maybeOne(sql.type(idRow)`
    insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
      session_id, session_url, session_expires_at, consent_ceiling_micros, created_at, opened_at, is_taxed, tax_micros,
      tax_calculation_id, by_link)
    select l.id, a.ledger, a.consumer_id, a.id, l.method, l.amount_micros,
      l.session_id, l.session_url, l.session_expires_at,
      case when l.method = 'direct' then greatest(coalesce(a.consent_ceiling_micros, 0),
        l.amount_micros + taken.micros) end,
      l.made_at, now(), ${taxMicros}::int8 is not null, coalesce(${session ? 0 : taxMicros}::int8, 0),
      ${taxCalculationId}, ${byLink}
    from (values (${id}::uuid, ${session ? 'checkout' : 'direct'}, ${amountMicros}::int8,
        ${session?.id ?? null}, ${session?.url ?? null}, ${session?.expiresAt ?? null}::timestamptz,
        uuid_extract_timestamp(${id}::uuid)))
      as l (id, method, amount_micros, session_id, session_url, session_expires_at, made_at)
    join farebox.accounts a on ${isPayer}
    cross join lateral (
      select coalesce(sum(t.amount_micros), 0)::int8 as micros from farebox.top_ups t
      where t.consumer_id = a.consumer_id and ${countsThisMonth}
    ) taken
    where l.made_at is not null
    on conflict do nothing
    returning id
  `);
  return entered !== null;
}
