-- `farebox account adjust --idempotency-key`: a command whose connection was lost after the commit can be repeated without
-- a second adjustment. Operators of the console have keys of their own, in operator_actions.
-- Locks: none on existing tables. The previous release may run beside it.

create table farebox.adjustment_keys (
  idempotency_key text collate "C" not null,
  ledger smallint not null,
  consumer_id uuid not null,
  amount_micros bigint not null,
  reason text not null,
  created_at timestamptz not null default now(),
  constraint adjustment_keys_pkey primary key (idempotency_key)
);
comment on table farebox.adjustment_keys is
  'What commands adjusted under an idempotency key. Written in the transaction of the adjustment, and kept.';
