-- Leases: holds that a client of the developer spends by itself, call by call, and settles in batches. The money is in
-- the hold's row; what else a lease needs is here. Written by functions/settle_lease.sql and expire_holds.sql, and by
-- src/store/leases, under the lock of the hold's row.

alter table farebox.budget_details add column allow_leases boolean not null default false,
  add column max_lease_micros bigint;
comment on column farebox.budget_details.allow_leases is
  'Whether its keys may be leased. Off by default: what is leased is spent before it is charged.';
comment on column farebox.budget_details.max_lease_micros is 'The most that one lease may reserve. Null: its limits alone.';

comment on column farebox.holds.tool is 'Empty for a lease, whose charges each have a tool of their own.';

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
