-- Automatic top-ups: what an owner wants to have taken from the saved card without being asked, and how that
-- stands. A charge asks for one by a notice in the outbox (consumers.auto_top_up_below_micros); the relay
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
  'Only its owner writes a row here or takes it away; no row: automatic top-ups are off.';
comment on column farebox.auto_top_ups.ceiling_micros is
  'What automatic top-ups may take in a UTC month, within what the owner consented to for all direct ones.';
comment on column farebox.auto_top_ups.status is
  'waiting: asked for and put off, because of `reason`. off: turned itself off, because of `reason`.';
comment on column farebox.auto_top_ups.declines is 'In a row.';
comment on column farebox.auto_top_ups.not_before is 'After a decline: when the card may be tried again.';

alter table farebox.top_ups
  add column automatic boolean not null default false,
  add column session_expires_at timestamptz,
  add constraint top_ups_automatic_is_direct check (not automatic or method = 'direct');
comment on column farebox.top_ups.session_expires_at is
  'What the checkout is asked to expire at, so that a repeated call asks the same; null: the processor''s 24 h.';
create unique index top_ups_one_automatic on farebox.top_ups (consumer_id)
  where automatic and status = 'pending';
