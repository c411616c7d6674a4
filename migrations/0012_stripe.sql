-- Events from Stripe, and differences between its records and ours.

create table farebox.processor_events (
  id text primary key,
  type text not null,
  object_id text,
  top_up_id uuid,
  received_at timestamptz not null default now()
);
comment on table farebox.processor_events is
  'The log of webhooks, each stored before it is acknowledged, with a notice in the outbox for its top-up. An event '
  'is a nudge, never the truth, so only what is needed to find the top-up is stored.';
-- The log is pruned by age (src/store/prune-logs.ts).
create index processor_events_received on farebox.processor_events (received_at);

create table farebox.reconciliation (
  is_only boolean not null default true,
  walked_until timestamptz not null,
  constraint reconciliation_pkey primary key (is_only),
  constraint reconciliation_has_one_row check (is_only)
);
comment on table farebox.reconciliation is
  'How far the processor''s books have been compared with ours. A schedule goes on from there.';
comment on column farebox.reconciliation.walked_until is
  'Everything that the processor booked before this was compared. Moves only at the end of a walk.';

create table farebox.differences (
  top_up_id uuid not null,
  kind text not null,
  processor_micros bigint not null,
  ledger_micros bigint not null,
  payment_intent_ids text[] not null,
  since timestamptz not null default now(),
  constraint differences_pkey primary key (top_up_id, kind),
  constraint differences_kind_known check (kind in
    ('not_credited', 'not_paid', 'payment_mismatch', 'paid_twice', 'unknown_top_up', 'reversals'))
);
comment on table farebox.differences is
  'Where the processor and we disagree about a top-up: a row until we agree, for people to look at.';
comment on column farebox.differences.top_up_id is
  'Has no row in top_ups when the processor has a payment for a top-up that we do not know.';
comment on column farebox.differences.payment_intent_ids is
  'The payments that were compared, so that they are compared again: our row of the top-up may not name them.';

-- Test keys and live keys see different customers, cards and payments. A process that starts with a key of the other
-- mode would replace every customer and credit play money beside real money, so it is refused.
create table farebox.processor_mode (
  is_only boolean not null default true,
  is_live boolean not null,
  since timestamptz not null default now(),
  constraint processor_mode_pkey primary key (is_only),
  constraint processor_mode_has_one_row check (is_only)
);
comment on table farebox.processor_mode is
  'Whether this database belongs to live keys or to test keys of the processor: the mode of the first start.';
