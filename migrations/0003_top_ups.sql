-- Money on its way into a balance, and out of it again. Postgres makes the decisions, with unique keys and conditions
-- on statuses; the workflow `top-up/tu_...` only remembers the next step. What is unique among a consumer's rows has the
-- ledger in its key, so that a database that spreads ledgers over nodes can check it on one of them. What Stripe names is
-- unique over all ledgers.

create table farebox.top_ups (
  id uuid primary key,
  ledger smallint not null,
  consumer_id uuid not null,
  account_id uuid not null references farebox.accounts (id),
  method text not null,
  automatic boolean not null default false,
  status text not null default 'pending',
  amount_micros bigint not null,
  idempotency_key text,
  session_id text,
  session_url text,
  session_expires_at timestamptz,
  payment_intent_id text,
  failure_code text,
  failure_message text,
  consent_ceiling_micros bigint,
  automatic_ceiling_micros bigint,
  reversals_read int not null default 0,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  completed_at timestamptz,
  updated_at timestamptz not null default now(),
  -- Evidence: the state of a top-up as read from Stripe. Only the step that reads Stripe writes it, and the statements
  -- that credit, fail or expire a top-up require it. So somebody who can start steps but has not paid cannot move money.
  seen_verdict text,
  seen_micros bigint,
  seen_failure_code text,
  seen_at timestamptz,
  saves_card boolean not null default false,
  authentication_asked_at timestamptz,
  -- Tax, where STRIPE_TAX is on: the balance gets the net amount, and the payer pays the tax on top of it. The books
  -- have both, so that they can be compared with what Stripe took.
  is_taxed boolean,
  tax_micros bigint not null default 0,
  tax_calculation_id text,
  invoice_id text,
  reversal_reported boolean not null default false,
  refused_card_id text,
  by_link boolean not null default false,
  is_mail_due boolean not null default false,
  under_way_at timestamptz,
  accepted_at timestamptz,
  constraint top_ups_amount_positive check (amount_micros > 0),
  constraint top_ups_tax_not_negative check (tax_micros >= 0),
  constraint top_ups_method_known check (method in ('checkout', 'direct', 'manual', 'test')),
  constraint top_ups_automatic_is_direct check (not automatic or method = 'direct'),
  constraint top_ups_status_known check (status in ('pending', 'completed', 'expired', 'failed',
    'partially_refunded', 'refunded', 'disputed', 'charged_back')),
  constraint top_ups_test_reaches_no_processor check (
    case when ledger < 2048 then method <> 'test'
      else method = 'test' and not automatic and status in ('completed', 'failed')
        and num_nonnulls(session_id, session_url, session_expires_at, payment_intent_id, seen_verdict,
          consent_ceiling_micros) = 0 end),
  constraint top_ups_seen_verdict_known check (seen_verdict in ('paid', 'expired', 'failed')),
  constraint top_ups_seen_dated check ((seen_verdict is null) = (seen_at is null)),
  constraint top_ups_seen_failure_named
    check ((seen_verdict is not distinct from 'failed') = (seen_failure_code is not null)),
  constraint top_ups_seen_payment_is_ours check (
    case when seen_verdict is not distinct from 'paid'
      then seen_micros is not distinct from amount_micros + tax_micros and payment_intent_id is not null
      else seen_micros is null end
  ),
  constraint top_ups_idempotency_unique unique (ledger, consumer_id, idempotency_key),
  constraint top_ups_session_unique unique (session_id),
  constraint top_ups_payment_intent_unique unique (payment_intent_id)
);
comment on column farebox.top_ups.method is
  'checkout, direct: through Stripe. manual: by an operator. test: play money, which no processor knows of.';
comment on column farebox.top_ups.session_expires_at is
  'The expiry that the checkout asks for, stored so that a repeated call asks for the same. Null: Stripe''s 24 hours.';
comment on column farebox.top_ups.consent_ceiling_micros is
  'Direct top-ups: the monthly ceiling when this one was accepted. The owner may change it later, and doctor '
  'proves that no month took more than was allowed.';
comment on column farebox.top_ups.automatic_ceiling_micros is
  'Automatic top-ups: their own monthly ceiling when this one was accepted, within the other.';
comment on column farebox.top_ups.reversals_read is
  'How often its reversals were read at the processor and recorded: a reading that began before the last one is stale.';
comment on column farebox.top_ups.opened_at is
  'When the workflow took it up. A row that is not opened has had no effect anywhere and may be deleted.';
comment on column farebox.top_ups.seen_verdict is
  'What the processor showed when it was read last. ''paid'' is never overwritten. Null: nothing final yet.';
comment on column farebox.top_ups.seen_micros is
  'What payment_intent_id was seen to have paid, in full and in dollars, with tax.';
comment on column farebox.top_ups.saves_card is
  'Checkouts: the owner asked to save the card that pays, for top-ups without the owner. Part of the row, so that a '
  'repeated call to the processor has the same parameters.';
comment on column farebox.top_ups.authentication_asked_at is
  'Direct top-ups: when the bank first wanted the cardholder to confirm the payment. While it is pending, it waits for that.';
comment on column farebox.top_ups.is_taxed is
  'Whether tax is added to what the payer pays. Null until the first call to the processor decides it by STRIPE_TAX.';
comment on column farebox.top_ups.tax_micros is
  'The tax that the payer paid, or will pay, on top of amount_micros. A checkout''s tax is known once it is paid.';
comment on column farebox.top_ups.tax_calculation_id is
  'Direct top-ups: the processor''s calculation of the tax, which it reports for us.';
comment on column farebox.top_ups.invoice_id is 'The processor''s invoice of a taxed payment. Refunds add credit notes to it.';
comment on column farebox.top_ups.reversal_reported is
  'A refund or dispute was reported or seen before the credit, which then has it read.';
comment on column farebox.top_ups.refused_card_id is
  'The saved card (pm_...) that its bank declined permanently when this top-up was to be paid. It is never charged again.';
comment on column farebox.top_ups.by_link is
  'Checkouts: requested through a top-up link. Nobody is known there, so the payment has no customer of the account.';
comment on column farebox.top_ups.is_mail_due is
  'Automatic top-ups: the bank wants the payment confirmed, and no mail server has accepted the mail to the owner yet.';
comment on column farebox.top_ups.under_way_at is
  'Checkouts: when the session was first seen as complete and not yet paid. Its payer can do nothing more, and the bank takes days.';
comment on column farebox.top_ups.accepted_at is
  'When a request first answered 202 for a row that its workflow had not claimed. Such a row is no longer withdrawn.';
create unique index top_ups_of_consumer on farebox.top_ups (ledger, consumer_id, id);
create index top_ups_consumer on farebox.top_ups (consumer_id, id);
-- Each automatic top-up looks for what the month took, the last declines, the cards that a bank declined permanently, and the
-- time of the last checkout.
create index top_ups_direct on farebox.top_ups (consumer_id, created_at) where method = 'direct';
create index top_ups_refused_cards on farebox.top_ups (consumer_id, refused_card_id) where refused_card_id is not null;
create index top_ups_checkouts on farebox.top_ups (consumer_id, completed_at) where method = 'checkout' and not by_link;
create index top_ups_not_opened on farebox.top_ups (created_at) where opened_at is null;
-- At most one automatic top-up per consumer at a time.
create unique index top_ups_one_automatic on farebox.top_ups (ledger, consumer_id)
  where automatic and status = 'pending';
-- Operators and metrics look for what is still open, and reconciliation checks with Stripe what is open or ended without
-- evidence, page by page, however many ever expired.
create index top_ups_open on farebox.top_ups (id) where status in ('pending', 'disputed');
create index top_ups_ended_unseen on farebox.top_ups (updated_at)
  where status in ('expired', 'failed') and seen_verdict is null;
-- Taxed payments by the saved card get their invoice after the credit. The sweep looks for missing ones once a minute.
create index top_ups_without_invoice on farebox.top_ups (completed_at)
  where tax_calculation_id is not null and invoice_id is null;

-- A charge requests an automatic top-up through a notice in the outbox (consumers.auto_top_up_below_micros). The relay
-- turns the notice into a top-up and a notice for its workflow, in one transaction.
create table farebox.auto_top_ups (
  ledger smallint not null,
  consumer_id uuid not null,
  threshold_micros bigint not null,
  amount_micros bigint not null,
  ceiling_micros bigint not null,
  status text not null default 'on',
  reason text,
  declines int not null default 0,
  not_before timestamptz not null default now(),
  mail_owed_at timestamptz,
  mail_tried_at timestamptz,
  constraint auto_top_ups_pkey primary key (ledger, consumer_id),
  constraint auto_top_ups_are_live check (ledger < 2048),
  constraint auto_top_ups_threshold_positive check (threshold_micros > 0),
  constraint auto_top_ups_amount_within_ceiling
    check (amount_micros > 0 and amount_micros <= ceiling_micros),
  constraint auto_top_ups_status_known check (status in ('on', 'waiting', 'off')),
  constraint auto_top_ups_reason_named check ((status = 'on') = (reason is null)),
  constraint auto_top_ups_declines_not_negative check (declines >= 0)
);
comment on table farebox.auto_top_ups is
  'What an owner wants taken from the saved card without being asked. Only the owner adds or removes a row; '
  'no row: automatic top-ups are off.';
comment on column farebox.auto_top_ups.ceiling_micros is
  'The most that automatic top-ups may take in a UTC month, within the owner''s consent for all direct ones.';
comment on column farebox.auto_top_ups.status is
  'waiting: asked for and put off, because of `reason`. off: turned itself off, because of `reason`.';
comment on column farebox.auto_top_ups.declines is 'In a row.';
comment on column farebox.auto_top_ups.not_before is 'After a decline: when the card may be tried again.';
comment on column farebox.auto_top_ups.mail_owed_at is
  'When automatic top-ups turned themselves off, until a mail server has the mail to the owner about it, or for three days. Null: no mail is owed.';
comment on column farebox.auto_top_ups.mail_tried_at is
  'When the last attempt to send that mail began.';
create index auto_top_ups_mail_owed on farebox.auto_top_ups (mail_tried_at nulls first) where mail_owed_at is not null;

-- Refunds, disputes and the bank's fraud warnings take the money of a top-up back. A reversal takes its amount from the
-- consumer, or holds it while a dispute or a warning is open. The part that the balance cannot cover becomes debt, which
-- the next credit repays first.
create table farebox.reversals (
  id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null,
  kind text not null,
  status text not null,
  amount_micros bigint not null,
  held_micros bigint not null default 0,
  taken_micros bigint not null default 0,
  debt_micros bigint not null generated always as (
    case when status in ('failed', 'won') then 0 else amount_micros - held_micros - taken_micros end
  ) stored,
  processor_id text,
  failure_message text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  dismissed_at timestamptz,
  gross_micros bigint,
  credit_note_id text,
  constraint reversals_pkey primary key (ledger, consumer_id, id),
  constraint reversals_top_up_of_consumer_fkey
    foreign key (ledger, consumer_id, top_up_id) references farebox.top_ups (ledger, consumer_id, id),
  constraint reversals_processor_unique unique (processor_id),
  constraint reversals_are_live check (ledger < 2048),
  constraint reversals_status_known check (
    case kind when 'refund' then status in ('requested', 'made', 'failed')
      when 'dispute' then status in ('open', 'lost', 'won')
      when 'warning' then status in ('open', 'won') else false end
  ),
  constraint reversals_amount_positive check (amount_micros > 0),
  constraint reversals_gross_covers_net check (gross_micros >= amount_micros),
  constraint reversals_cover_no_more_than_is_asked
    check (held_micros >= 0 and taken_micros >= 0 and held_micros + taken_micros <= amount_micros),
  constraint reversals_hold_while_open check (held_micros = 0 or status = 'open'),
  constraint reversals_take_for_good
    check (taken_micros = 0 or status in ('requested', 'made', 'lost')),
  constraint reversals_ours_are_covered check (status <> 'requested' or taken_micros = amount_micros),
  constraint reversals_processor_named
    check (processor_id is not null or status in ('requested', 'failed')),
  constraint reversals_only_warnings_dismissed
    check (dismissed_at is null or (kind = 'warning' and status = 'won'))
);
comment on column farebox.reversals.status is
  'A refund: requested (by us; the processor may not know of it yet), made, failed. A dispute: open, lost, won. '
  'A fraud warning: open, and won once it is over.';
comment on column farebox.reversals.debt_micros is
  'The part that the balance did not cover. A consumer with debt has a balance of 0.';
comment on column farebox.reversals.dismissed_at is
  'When an operator decided that a fraud warning holds nothing, or requested a refund, which has the same time as created_at. '
  'It never holds again, unless that refund fails.';
comment on column farebox.reversals.gross_micros is
  'The amount at the processor, with tax. Null: there was no tax, so it is amount_micros.';
comment on column farebox.reversals.credit_note_id is 'The processor''s credit note for a refund of an invoiced top-up.';
-- Not unique: an id is random, and the key has it once in its consumer.
create index reversals_id on farebox.reversals (id);
create index reversals_top_up on farebox.reversals (top_up_id);
create index reversals_debt on farebox.reversals (ledger, consumer_id) where debt_micros > 0;
-- Every minute, a schedule looks for refunds that Stripe has not answered.
create index reversals_requested on farebox.reversals (updated_at) where status = 'requested';
-- Operators list disputed top-ups, and metrics count them every few seconds.
create index reversals_open on farebox.reversals (top_up_id) where status = 'open';

-- A command whose connection was lost after the commit can be repeated without a second refund. Operators of the console
-- have keys of their own, in operator_actions.
create table farebox.refund_keys (
  idempotency_key text collate "C" not null,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null,
  reversal_id uuid not null,
  amount_micros bigint not null,
  created_at timestamptz not null default now(),
  constraint refund_keys_pkey primary key (idempotency_key)
);
comment on table farebox.refund_keys is
  'What commands refunded under an idempotency key. Written in the transaction of the refund, and kept.';
