-- Top-ups and what the payment processor reported about them. Postgres decides (unique keys, status
-- conditions); the workflow `top-up/tu_…` only remembers which step comes next.
create table farebox.top_ups (
  id uuid primary key,
  ledger smallint not null,
  consumer_id uuid not null,
  account_id uuid not null references farebox.accounts (id),
  method text not null,
  status text not null default 'pending',
  amount_micros bigint not null,
  idempotency_key text,
  session_id text,
  session_url text,
  payment_intent_id text,
  failure_code text,
  failure_message text,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  completed_at timestamptz,
  updated_at timestamptz not null default now(),
  constraint top_ups_amount_positive check (amount_micros > 0),
  constraint top_ups_method_known check (method in ('checkout', 'direct', 'manual')),
  constraint top_ups_status_known check (status in ('pending', 'completed', 'expired', 'failed',
    'partially_refunded', 'refunded', 'disputed', 'charged_back')),
  constraint top_ups_idempotency_unique unique (consumer_id, idempotency_key),
  constraint top_ups_session_unique unique (session_id),
  constraint top_ups_payment_intent_unique unique (payment_intent_id)
);
comment on column farebox.top_ups.opened_at is
  'When the workflow took it up. A row that is not opened has had no effect anywhere and may be deleted.';
create index top_ups_consumer on farebox.top_ups (consumer_id, id);
create index top_ups_not_opened on farebox.top_ups (created_at) where opened_at is null;

-- The inbox: what the processor told us, kept before it is acknowledged, handed to workflows after.
-- An event is a nudge, never the truth, so only what is needed to find the top-up is kept.
create table farebox.processor_events (
  id text primary key,
  type text not null,
  object_id text,
  top_up_id uuid,
  received_at timestamptz not null default now(),
  handed_over_at timestamptz,
  attempts int not null default 0,
  next_attempt_at timestamptz not null default now()
);
create index processor_events_waiting on farebox.processor_events (next_attempt_at)
  where handed_over_at is null;
comment on column farebox.processor_events.next_attempt_at is
  'Before this, no relay takes the event: one has it in hand, or a failed attempt is backing off.';
