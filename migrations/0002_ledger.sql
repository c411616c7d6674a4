-- Money. A consumer has counters; every movement of money is an immutable row; each credit is a lot
-- [from, to) on the axis of what the consumer has ever spent, so that overlap says which top-up paid
-- for which charge, first in, first out. All amounts are micro-dollars.

create table farebox.consumers (
  ledger smallint not null,
  id uuid not null,
  credited_micros bigint not null default 0,
  spent_micros bigint not null default 0,
  held_micros bigint not null default 0,
  constraint consumers_pkey primary key (ledger, id),
  constraint consumers_not_overspent check (credited_micros - spent_micros - held_micros >= 0),
  constraint consumers_counters_not_negative
    check (credited_micros >= 0 and spent_micros >= 0 and held_micros >= 0)
) with (fillfactor = 80);
comment on table farebox.consumers is
  'Balance = credited - spent - held. No column here may be indexed but the key: charges rely on HOT updates.';

-- A charge debits one consumer and credits one developer, and never changes. It has no foreign keys:
-- each would lock a popular developer's row in every transaction. Partitioned by month of its id, a
-- UUIDv7; columns ordered so that none needs padding.
create table farebox.charges (
  amount_micros bigint not null,
  spent_micros bigint not null,
  balance_micros bigint not null,
  request_fingerprint bigint,
  id uuid not null,
  consumer_id uuid not null,
  developer_id uuid not null,
  idempotency_hash uuid,
  ledger smallint not null,
  receipt_key smallint not null,
  tool text not null,
  metadata jsonb,
  constraint charges_pkey primary key (ledger, consumer_id, id),
  constraint charges_amount_positive check (amount_micros > 0)
) partition by range (id);
comment on column farebox.charges.spent_micros is
  'The consumer''s spent counter after this charge: it paid for [spent - amount, spent) of the axis.';
comment on column farebox.charges.balance_micros is 'The balance after this charge.';
comment on column farebox.charges.idempotency_hash is
  'The first 16 bytes of SHA-256 over consumer, developer and idempotency key.';
comment on column farebox.charges.request_fingerprint is
  '48 bits of a hash of what was sent: the same key with another body is refused.';
comment on column farebox.charges.receipt_key is 'Number of the master secret that signs the receipt.';

create table farebox.charges_rest partition of farebox.charges default;
create index charges_developer on farebox.charges (developer_id, id);
create index charges_idempotency on farebox.charges (idempotency_hash)
  where idempotency_hash is not null;

create table farebox.movements (
  ledger smallint not null,
  consumer_id uuid not null,
  id uuid not null,
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid,
  reason text,
  created_at timestamptz not null default now(),
  constraint movements_pkey primary key (ledger, consumer_id, id),
  constraint movements_kind_known check (kind in ('top_up', 'adjustment')),
  constraint movements_not_nothing check (amount_micros <> 0),
  constraint movements_top_up_named check ((kind = 'top_up') = (top_up_id is not null))
);
comment on table farebox.movements is
  'Everything but charges that changes `credited`: rows of the same nature, rare, immutable.';
-- What makes a credit happen exactly once, whatever is delivered or retried how often.
create unique index movements_top_up_once on farebox.movements (ledger, top_up_id)
  where kind = 'top_up';

create table farebox.lots (
  ledger smallint not null,
  consumer_id uuid not null,
  movement_id uuid not null,
  from_micros bigint not null,
  to_micros bigint not null,
  top_up_id uuid,
  constraint lots_pkey primary key (ledger, consumer_id, movement_id),
  constraint lots_not_negative check (from_micros >= 0 and to_micros >= from_micros)
);
create index lots_position on farebox.lots (ledger, consumer_id, from_micros);
