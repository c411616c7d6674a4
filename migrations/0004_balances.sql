-- A consumer's money. Counters record how much there is, movements record why, and lots record which top-up pays for
-- which charge: each credit is a lot [from, to) on the axis of the consumer's total spending, first in, first out. All
-- amounts are micro-dollars.

-- Amounts are exact in JavaScript up to 2^53 - 1. A charge beyond that would commit but could not be answered, and neither
-- could the others in its flush. So the step that would exceed it is refused. A balance is credited - spent - held and
-- never negative, so the bound on credited bounds all of them.
create table farebox.consumers (
  ledger smallint not null,
  id uuid not null,
  credited_micros bigint not null default 0,
  spent_micros bigint not null default 0,
  held_micros bigint not null default 0,
  auto_top_up_below_micros bigint,
  refunded_micros bigint not null default 0,
  reserved_micros bigint not null default 0,
  notice_below_micros bigint,
  charged_at timestamptz not null default '-infinity',
  disorder interval not null default '0',
  constraint consumers_pkey primary key (ledger, id),
  constraint consumers_not_overspent check (credited_micros - spent_micros - held_micros >= 0),
  constraint consumers_counters_not_negative
    check (credited_micros >= 0 and spent_micros >= 0 and reserved_micros >= 0 and held_micros >= reserved_micros),
  constraint consumers_credited_is_exact check (credited_micros <= 9007199254740991)
) with (fillfactor = 80);
comment on table farebox.consumers is
  'Balance = credited - spent - held. Only the key may be indexed: charges rely on in-place (HOT) updates.';
comment on column farebox.consumers.auto_top_up_below_micros is
  'A charge that leaves less, or does not fit, asks for an automatic top-up and sets this to null, so that '
  'it asks once. Null: switched off, or asked for.';
comment on column farebox.consumers.refunded_micros is
  'The part of everything ever spent that refunds of charges gave back. Each is a credit too, so the balance '
  'already has it.';
comment on column farebox.consumers.reserved_micros is
  'The part of held_micros that open holds reserve. Open disputes and fraud warnings hold the rest.';
comment on column farebox.consumers.notice_below_micros is
  'The highest of its thresholds that is armed (functions/set_notice.sql). Null: none is.';
-- A total up to an instant reads only the charges within this distance of it (src/store/balance/spent.ts). Every function
-- that makes charges keeps both columns, in the update that it makes anyway.
comment on column farebox.consumers.charged_at is 'The time of the latest charge by its id, or of another charge in its flush.';
comment on column farebox.consumers.disorder is
  'No charge lies behind one whose id is later by more than this.';

-- Balances that an account wants to be told of when a charge leaves less. consumers.notice_below_micros has the highest
-- that is armed, so a charge needs one comparison for all of them, and notes a crossing in its own commit
-- (functions/note_crossings.sql).
create table farebox.thresholds (
  ledger smallint not null,
  consumer_id uuid not null,
  purpose text not null,
  below_micros bigint not null,
  crossed_at timestamptz,
  constraint thresholds_pkey primary key (ledger, consumer_id, purpose),
  constraint thresholds_purpose_known check (purpose in ('low_balance', 'exhausted')),
  constraint thresholds_below_positive check (below_micros > 0),
  constraint thresholds_exhausted_means_nothing_left check (purpose <> 'exhausted' or below_micros = 1)
);
comment on table farebox.thresholds is 'Changed only under the consumer''s lock.';
comment on column farebox.thresholds.purpose is
  'low_balance: set by the owner. exhausted: of every account that has had a webhook endpoint; a refused charge crosses it '
  'too, at any balance.';
comment on column farebox.thresholds.crossed_at is
  'Null: armed. Otherwise it was crossed, or already was when it was set, and waits for a credit (functions/arm_thresholds.sql).';

create table farebox.movements (
  ledger smallint not null,
  consumer_id uuid not null,
  id uuid not null,
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid,
  reversal_id uuid,
  reason text,
  created_at timestamptz not null default now(),
  constraint movements_pkey primary key (ledger, consumer_id, id),
  constraint movements_reversal_of_consumer_fkey
    foreign key (ledger, consumer_id, reversal_id) references farebox.reversals (ledger, consumer_id, id),
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
-- A statement reads the movements of its month.
create index movements_made on farebox.movements (ledger, consumer_id, created_at);
create index movements_of_reversal on farebox.movements (ledger, consumer_id, reversal_id, kind, id)
  where reversal_id is not null;

-- An opening balance is read from these sums, so it takes no longer after years. The trigger of
-- functions/add_to_movement_sums.sql keeps them.
create table farebox.movement_sums (
  amount_micros bigint not null,
  movements bigint not null,
  consumer_id uuid not null,
  month date not null,
  ledger smallint not null,
  kind text not null,
  constraint movement_sums_pkey primary key (ledger, consumer_id, month, kind)
) with (fillfactor = 80);
comment on table farebox.movement_sums is
  'What moved the credits of a consumer in each UTC month, by kind. Changed in the transaction of the movement, under the lock of '
  'the consumer''s row.';

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

-- As refund_keys.
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
