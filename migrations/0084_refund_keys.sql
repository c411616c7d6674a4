-- `farebox refund --idempotency-key`: a command whose connection was lost after the commit can be repeated without a
-- second refund, as `farebox account adjust` can since 0072.
-- Locks: none on existing tables. The previous release may run beside it.

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
