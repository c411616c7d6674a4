-- Holds: money that a developer reserves for a call before it runs, captures when the price is known, and releases
-- when the call fails. Holds are written by functions/post_entries.sql and functions/expire_holds.sql. A lease is a hold
-- that a client of the developer spends by itself, call by call, and settles in batches.

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
  spend_key int not null default 0,
  overflow_charge uuid,
  constraint holds_pkey primary key (ledger, consumer_id, id),
  constraint holds_amounts_not_negative check (amount_micros > 0 and captured_micros >= 0),
  constraint holds_hold_while_open check (case state
    when 0 then held_micros > 0 and held_micros = amount_micros - captured_micros else held_micros = 0 end)
) partition by range (id);
comment on table farebox.holds is
  'Partitioned by month of the id, a UUIDv7, as charges are. Updates touch no indexed column, so they stay in place '
  '(HOT).';
comment on column farebox.holds.amount_micros is 'The amount that the request reserved.';
comment on column farebox.holds.held_micros is 'The amount that is still reserved. 0 once the hold is closed.';
comment on column farebox.holds.captured_micros is
  'The sum of its charges: more than amount_micros when a capture was allowed to overflow.';
comment on column farebox.holds.balance_micros is 'The balance after the hold was placed.';
comment on column farebox.holds.idempotency_hash is
  'As in charges. The idempotency keys of holds are a space of their own.';
comment on column farebox.holds.placed_at is
  'By the clock of PostgreSQL, under the lock of the consumer''s row, so that it is before or after the turn of a '
  'budget''s window, as the hold itself was.';
comment on column farebox.holds.developer is 'accounts.developer_number.';
comment on column farebox.holds.captures is 'The number of its charges.';
comment on column farebox.holds.state is '0 open, 1 captured, 2 released, 3 expired.';
comment on column farebox.holds.tool is 'Empty for a lease, whose charges each have a tool of their own.';
comment on column farebox.holds.metadata is 'JSON as it was sent. Empty: none was sent.';
comment on column farebox.holds.spend_key is 'The number of the spend key that reserved it. 0: a key of the account.';
comment on column farebox.holds.overflow_charge is
  'The capture that took more than was held. Budgets counted that excess when the capture was made, the rest when the '
  'hold was placed.';
create index holds_developer on farebox.holds (developer, id);
create index holds_idempotency on farebox.holds (idempotency_hash)
  where idempotency_hash is not null;

-- For holds of months without a partition, like charges_rest for charges.
create table farebox.holds_rest partition of farebox.holds default with (fillfactor = 55);

-- An index of open holds by expiry would change with every capture. One row per flush costs next to nothing.
create table farebox.hold_expiries (
  id bigint generated always as identity,
  due_at timestamptz not null,
  developers int[] not null,
  holds uuid[] not null,
  ledger smallint not null,
  constraint hold_expiries_pkey primary key (ledger, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
comment on table farebox.hold_expiries is
  'Holds to look at when they are due: those of a flush that expire together, and each that was extended, again. '
  'functions/expire_holds.sql deletes the row, whatever became of the holds.';
comment on column farebox.hold_expiries.ledger is 'Of all of its holds.';
create index hold_expiries_due on farebox.hold_expiries (due_at);

create table farebox.hold_extensions (
  hold_id uuid not null,
  idempotency_hash bigint not null,
  request_fingerprint bigint not null,
  made_at timestamptz not null default now(),
  ledger smallint not null,
  constraint hold_extensions_pkey primary key (hold_id, idempotency_hash, ledger)
);
comment on table farebox.hold_extensions is
  'The idempotency keys that extended a hold, so that a repeated request does not extend it again.';
comment on column farebox.hold_extensions.ledger is 'Of the hold.';

-- The money of a lease is in the hold's row; what else a lease needs is here. Written by functions/settle_lease.sql and
-- expire_holds.sql, and by src/store/leases, under the lock of the hold's row.
create table farebox.leases (
  id uuid not null,
  consumer_id uuid not null,
  released_micros bigint not null default 0,
  developer int not null,
  fence int not null default 1,
  ledger smallint not null,
  tools text[] not null,
  asked_prices bigint[] not null,
  prices bigint[] not null,
  highest_prices bigint[] not null,
  constraint leases_pkey primary key (ledger, consumer_id, id),
  constraint leases_id_unique unique (id),
  constraint leases_prices_whole check (cardinality(tools) between 1 and 100
    and cardinality(asked_prices) = cardinality(tools) and cardinality(prices) = cardinality(tools)
    and cardinality(highest_prices) = cardinality(tools))
);
comment on column farebox.leases.id is 'The id of its hold.';
comment on column farebox.leases.released_micros is 'What its release or expiry gave back to the balance.';
comment on column farebox.leases.developer is 'accounts.developer_number.';
comment on column farebox.leases.fence is 'Rises with each renewal. A request that names an older one is refused.';
comment on column farebox.leases.asked_prices is 'By tool: the price that the developer named. Null: the registered one.';
comment on column farebox.leases.prices is 'By tool, in micros: since the last renewal.';
comment on column farebox.leases.highest_prices is
  'By tool, since the lease was placed. A call that was decided before a renewal may be settled after it.';
create index leases_developer on farebox.leases (developer, id);
