-- Refunds of charges: what a developer gives back of a charge, in whole or in part. The charge stays as it is;
-- a refund is a row of its own, dated when it is made.

alter table farebox.consumers add column refunded_micros bigint not null default 0;
comment on column farebox.consumers.refunded_micros is
  'Of all that was ever spent, what came back by refunds of charges. It came back as credits, so the balance '
  'knows it already.';

create table farebox.charge_refunds (
  amount_micros bigint not null,
  refunded_micros bigint not null,
  charge_micros bigint not null,
  spent_micros bigint not null,
  asked_micros bigint,
  id uuid not null,
  consumer_id uuid not null,
  charge_id uuid not null,
  developer int not null,
  ledger smallint not null,
  tool text not null,
  idempotency_key text,
  constraint charge_refunds_pkey primary key (ledger, consumer_id, id),
  constraint charge_refunds_in_turn unique (ledger, consumer_id, charge_id, refunded_micros),
  constraint charge_refunds_idempotency_unique
    unique (ledger, consumer_id, charge_id, idempotency_key),
  constraint charge_refunds_amount_positive check (amount_micros > 0),
  constraint charge_refunds_within_charge
    check (refunded_micros between amount_micros and charge_micros)
);
comment on table farebox.charge_refunds is
  'Immutable. Developer and tool are the charge''s; the time is in `id`, a UUIDv7.';
comment on column farebox.charge_refunds.refunded_micros is
  'Of the charge, by this refund and those before it.';
comment on column farebox.charge_refunds.spent_micros is
  'It gives back [spent - amount, spent) of the consumer''s axis: the end of what the charge paid for and no '
  'earlier refund has given back.';
comment on column farebox.charge_refunds.asked_micros is 'Null: all that was left.';
create index charge_refunds_developer on farebox.charge_refunds (developer, id);

alter table farebox.movements
  drop constraint movements_kind_known,
  add constraint movements_kind_known check (kind in ('top_up', 'adjustment', 'refund',
    'refund_returned', 'dispute', 'dispute_returned', 'charge_refund')),
  drop constraint movements_top_up_named,
  add constraint movements_top_up_named
    check ((kind in ('adjustment', 'charge_refund')) = (top_up_id is null)),
  drop constraint movements_reversal_named,
  add constraint movements_reversal_named
    check ((kind in ('top_up', 'adjustment', 'charge_refund')) = (reversal_id is null));
