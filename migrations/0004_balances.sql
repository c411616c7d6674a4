-- A consumer's money. Counters record how much there is, movements record why, and lots record which top-up pays for
-- which charge: each credit is a lot [from, to) on the axis of the consumer's total spending, first in, first out. All
-- amounts are micro-dollars.

create table farebox.consumers (
  ledger smallint not null,
  id uuid not null,
  credited_micros bigint not null default 0,
  spent_micros bigint not null default 0,
  held_micros bigint not null default 0,
  auto_top_up_below_micros bigint,
  refunded_micros bigint not null default 0,
  constraint consumers_pkey primary key (ledger, id),
  constraint consumers_not_overspent check (credited_micros - spent_micros - held_micros >= 0),
  constraint consumers_counters_not_negative
    check (credited_micros >= 0 and spent_micros >= 0 and held_micros >= 0)
) with (fillfactor = 80);
comment on table farebox.consumers is
  'Balance = credited - spent - held. Only the key may be indexed: charges rely on in-place (HOT) updates.';
comment on column farebox.consumers.auto_top_up_below_micros is
  'A charge that leaves less, or does not fit, asks for an automatic top-up and sets this to null, so that '
  'it asks once. Null: switched off, or asked for.';
comment on column farebox.consumers.refunded_micros is
  'The part of everything ever spent that refunds of charges gave back. Each is a credit too, so the balance '
  'already has it.';

create table farebox.movements (
  ledger smallint not null,
  consumer_id uuid not null,
  id uuid not null,
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid,
  reversal_id uuid references farebox.reversals (id),
  reason text,
  created_at timestamptz not null default now(),
  constraint movements_pkey primary key (ledger, consumer_id, id),
  constraint movements_kind_known check (kind in ('top_up', 'adjustment', 'refund',
    'refund_returned', 'dispute', 'dispute_returned', 'charge_refund')),
  constraint movements_not_nothing check (amount_micros <> 0),
  constraint movements_top_up_named
    check ((kind in ('adjustment', 'charge_refund')) = (top_up_id is null)),
  constraint movements_reversal_named
    check ((kind in ('top_up', 'adjustment', 'charge_refund')) = (reversal_id is null))
);
comment on table farebox.movements is
  'Every change of consumers.credited_micros: one signed, immutable row each. Charges change spent_micros instead.';
-- A credit happens once, no matter how often events are delivered or steps retried.
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
comment on table farebox.lots is
  'A credit of $10.00 after $25.00 of credits is the lot [25, 35): it pays what the consumer spends from the '
  '25th dollar to the 35th.';
create index lots_position on farebox.lots (ledger, consumer_id, from_micros);
