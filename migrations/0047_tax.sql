-- Tax on top-ups, where STRIPE_TAX is on: the balance gets the net amount, and the payer pays the tax on top of it. The books
-- have both, so that they can be compared with what Stripe took: paid = amount + tax. A refund or dispute is an amount with
-- tax at Stripe and one without tax here.
-- Locks: ACCESS EXCLUSIVE on top_ups while its rows are checked once, and on reversals for the catalogue alone.

alter table farebox.top_ups
  add column is_taxed boolean,
  add column tax_micros bigint not null default 0,
  add column tax_calculation_id text,
  add column invoice_id text,
  add constraint top_ups_tax_not_negative check (tax_micros >= 0),
  drop constraint top_ups_seen_payment_is_ours,
  add constraint top_ups_seen_payment_is_ours check (
    case when seen_verdict is not distinct from 'paid'
      then seen_micros is not distinct from amount_micros + tax_micros and payment_intent_id is not null
      else seen_micros is null end
  );
comment on column farebox.top_ups.is_taxed is
  'Whether tax is added to what the payer pays. Null until the first call to the processor decides it by STRIPE_TAX.';
comment on column farebox.top_ups.tax_micros is
  'The tax that the payer paid, or will pay, on top of amount_micros. A checkout''s tax is known once it is paid.';
comment on column farebox.top_ups.tax_calculation_id is
  'Direct top-ups: the processor''s calculation of the tax, which it reports for us.';
comment on column farebox.top_ups.invoice_id is 'The processor''s invoice of a paid checkout. Refunds add credit notes to it.';
comment on column farebox.top_ups.seen_micros is
  'What payment_intent_id was seen to have paid, in full and in dollars, with tax.';

alter table farebox.reversals
  add column gross_micros bigint,
  add column credit_note_id text,
  add constraint reversals_gross_covers_net check (gross_micros >= amount_micros);
comment on column farebox.reversals.gross_micros is
  'The amount at the processor, with tax. Null: there was no tax, so it is amount_micros.';
comment on column farebox.reversals.credit_note_id is 'The processor''s credit note for a refund of an invoiced top-up.';
