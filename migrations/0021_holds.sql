-- Holds: money that a developer reserves for a call before it runs, captures when the price is known, and releases
-- when the call fails. Holds are written by functions/post_hold_entries.sql and functions/expire_holds.sql.

-- One byte when empty, which fits into the padding of most rows, so plain charges do not grow.
alter table farebox.charges add column origin bytea not null default '';
comment on column farebox.charges.origin is
  'Where a charge comes from. Empty: a plain charge. Otherwise four bytes for the number of the spend key, two for '
  'the version of the rate card and sixteen for the hold that was captured, cut off after the last one that is not 0.';

alter table farebox.consumers add column reserved_micros bigint not null default 0;
alter table farebox.consumers drop constraint consumers_counters_not_negative;
alter table farebox.consumers add constraint consumers_counters_not_negative
  check (credited_micros >= 0 and spent_micros >= 0 and reserved_micros >= 0 and held_micros >= reserved_micros);
comment on column farebox.consumers.reserved_micros is
  'The part of held_micros that open holds reserve. Open disputes hold the rest.';

create table farebox.holds (
  amount_micros bigint not null,
  held_micros bigint not null,
  captured_micros bigint not null default 0,
  balance_micros bigint not null,
  idempotency_hash bigint,
  request_fingerprint bigint,
  placed_at timestamptz not null default now(),
  expires_at timestamptz not null,
  id uuid not null,
  consumer_id uuid not null,
  developer int not null,
  captures int not null default 0,
  ledger smallint not null,
  state smallint not null default 0,
  tool text not null,
  metadata text not null default '',
  constraint holds_pkey primary key (ledger, consumer_id, id),
  constraint holds_amounts_not_negative check (amount_micros > 0 and captured_micros >= 0),
  constraint holds_hold_while_open check (case state
    when 0 then held_micros > 0 and held_micros = amount_micros - captured_micros else held_micros = 0 end)
) partition by range (id);
comment on table farebox.holds is
  'Partitioned by month of the id, a UUIDv7, as charges are. Updates touch no indexed column, so they stay in place '
  '(HOT).';
comment on column farebox.holds.amount_micros is 'What was asked for and reserved.';
comment on column farebox.holds.held_micros is 'What is still reserved. 0 once the hold is closed.';
comment on column farebox.holds.captured_micros is
  'The sum of its charges: more than amount_micros when a capture was allowed to overflow.';
comment on column farebox.holds.balance_micros is 'The balance after the hold was placed.';
comment on column farebox.holds.idempotency_hash is
  'As in charges. The idempotency keys of holds are a space of their own.';
comment on column farebox.holds.developer is 'accounts.developer_number.';
comment on column farebox.holds.captures is 'The number of its charges.';
comment on column farebox.holds.state is '0 open, 1 captured, 2 released, 3 expired.';
comment on column farebox.holds.metadata is 'JSON as it was sent. Empty: none was sent.';
create index holds_developer on farebox.holds (developer, id);
create index holds_idempotency on farebox.holds (idempotency_hash)
  where idempotency_hash is not null;

-- For holds of months without a partition, like charges_rest for charges.
create table farebox.holds_rest partition of farebox.holds default with (fillfactor = 55);

-- An index of open holds by expiry would change with every capture. One row per flush costs next to nothing.
create table farebox.hold_expiries (
  id bigint generated always as identity primary key,
  due_at timestamptz not null,
  developers int[] not null,
  holds uuid[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
comment on table farebox.hold_expiries is
  'Holds to look at when they are due: those of a flush that expire together, and each that was extended, again. '
  'functions/expire_holds.sql deletes the row, whatever became of the holds.';
create index hold_expiries_due on farebox.hold_expiries (due_at);

create table farebox.hold_extensions (
  hold_id uuid not null,
  idempotency_hash bigint not null,
  request_fingerprint bigint not null,
  made_at timestamptz not null default now(),
  constraint hold_extensions_pkey primary key (hold_id, idempotency_hash)
);
comment on table farebox.hold_extensions is
  'The idempotency keys that extended a hold, so that a repeated request does not extend it again.';
