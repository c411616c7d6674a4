-- Money on its way into a balance, and out of it again. Postgres makes the decisions, with unique keys and conditions
-- on statuses; the workflow `top-up/tu_...` only remembers the next step.

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
  constraint top_ups_amount_positive check (amount_micros > 0),
  constraint top_ups_method_known check (method in ('checkout', 'direct', 'manual')),
  constraint top_ups_automatic_is_direct check (not automatic or method = 'direct'),
  constraint top_ups_status_known check (status in ('pending', 'completed', 'expired', 'failed',
    'partially_refunded', 'refunded', 'disputed', 'charged_back')),
  constraint top_ups_idempotency_unique unique (consumer_id, idempotency_key),
  constraint top_ups_session_unique unique (session_id),
  constraint top_ups_payment_intent_unique unique (payment_intent_id)
);
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
create index top_ups_consumer on farebox.top_ups (consumer_id, id);
create index top_ups_not_opened on farebox.top_ups (created_at) where opened_at is null;
-- At most one automatic top-up per consumer at a time.
create unique index top_ups_one_automatic on farebox.top_ups (consumer_id)
  where automatic and status = 'pending';
-- Reconciliation checks these with Stripe, page by page.
create index top_ups_unsettled on farebox.top_ups (id)
  where status in ('pending', 'expired', 'failed', 'disputed');

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
  constraint auto_top_ups_pkey primary key (ledger, consumer_id),
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

-- Refunds and disputes take the money of a top-up back. A reversal takes its amount from the consumer, or holds it
-- while a dispute is open. The part that the balance cannot cover becomes debt, which the next credit repays first.
create table farebox.reversals (
  id uuid primary key,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null references farebox.top_ups (id),
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
  constraint reversals_processor_unique unique (processor_id),
  constraint reversals_status_known check (
    case kind when 'refund' then status in ('requested', 'made', 'failed')
      when 'dispute' then status in ('open', 'lost', 'won') else false end
  ),
  constraint reversals_amount_positive check (amount_micros > 0),
  constraint reversals_cover_no_more_than_is_asked
    check (held_micros >= 0 and taken_micros >= 0 and held_micros + taken_micros <= amount_micros),
  constraint reversals_hold_while_open check (held_micros = 0 or status = 'open'),
  constraint reversals_take_for_good
    check (taken_micros = 0 or status in ('requested', 'made', 'lost')),
  constraint reversals_ours_are_covered check (status <> 'requested' or taken_micros = amount_micros),
  constraint reversals_processor_named
    check (processor_id is not null or status in ('requested', 'failed'))
);
comment on column farebox.reversals.status is
  'A refund: requested (by us; the processor may not know of it yet), made, failed. A dispute: open, lost, won.';
comment on column farebox.reversals.debt_micros is
  'The part that the balance did not cover. A consumer with debt has a balance of 0.';
create index reversals_top_up on farebox.reversals (top_up_id);
create index reversals_debt on farebox.reversals (ledger, consumer_id) where debt_micros > 0;
-- Every minute, a schedule looks for refunds that Stripe has not answered.
create index reversals_requested on farebox.reversals (updated_at) where status = 'requested';
