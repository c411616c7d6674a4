-- Budgets: a consumer's tree of limits, and the spend keys that belong to its nodes. A charge by a spend key counts at
-- the key's node and at every node above it, in the commit that moves the money. Counters are changed by
-- functions/post_fitting_groups.sql, post_entries.sql, expire_holds.sql, settle_lease.sql and give_back_to_budgets.sql
-- alone, and always under the lock of the consumer's row.

create table farebox.budgets (
  used_micros bigint not null default 0,
  limit_micros bigint,
  used_at_limit_micros bigint not null default 0,
  window_used_micros bigint not null default 0,
  window_limit_micros bigint,
  window_used_at_limit_micros bigint not null default 0,
  window_from_micros bigint not null default 0,
  window_began timestamptz not null default '-infinity',
  consumer_id uuid not null,
  number int not null,
  ledger smallint not null,
  window_unit smallint not null default 0,
  is_closed boolean not null default false,
  notice_at bigint,
  window_notice_at bigint,
  constraint budgets_pkey primary key (ledger, consumer_id, number),
  constraint budgets_window_whole check ((window_unit = 0) = (window_limit_micros is null)),
  constraint budgets_not_negative check (used_micros >= 0 and window_used_micros >= 0),
  constraint budgets_within_limits check (
    (used_micros <= limit_micros or used_micros <= used_at_limit_micros)
    and (window_used_micros <= window_limit_micros or window_used_micros <= window_used_at_limit_micros))
) with (fillfactor = 70);
comment on table farebox.budgets is
  'What each node has used. Narrow, and without an index on what changes, so that updates stay in place (HOT). What a '
  'charge does not change is in budget_details.';
comment on column farebox.budgets.number is 'Of the node, from 1, in its consumer''s tree. A child''s is larger than its parent''s.';
comment on column farebox.budgets.used_micros is
  'Charges by the keys of the node and of all nodes below, less their refunds, and what open holds by these keys hold.';
comment on column farebox.budgets.limit_micros is 'Null: no limit in all.';
comment on column farebox.budgets.used_at_limit_micros is
  'The use when the limit was set. A limit may be set below it, and then refuses every charge.';
comment on column farebox.budgets.window_from_micros is
  'consumers.spent_micros when the window began: a charge from there on was counted in it. Clocks cannot tell, '
  'because the id of a charge has the time of a process.';
comment on column farebox.budgets.window_began is
  'When the window began that window_used_micros is of. The next charge of a later window turns it.';
comment on column farebox.budgets.window_unit is '0 no window, 1 hour, 2 day, 3 week, 4 month: of the calendar, in UTC.';
-- The next mark of each limit, 80 % or 100 %: when a spend makes the use reach it, the account gets an event in the
-- spend's own commit (functions/note_budget_marks.sql).
comment on column farebox.budgets.notice_at is
  'The use of limit_micros that makes the next event. Null: all marks were reached, or there is no limit.';
comment on column farebox.budgets.window_notice_at is
  'As notice_at, of the window that began at window_began. The turn of the window arms all marks again.';

create table farebox.budget_details (
  id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  number int not null,
  path int[] not null,
  name text not null,
  max_per_call_micros bigint,
  tools text[],
  developers uuid[],
  may_delegate boolean not null default false,
  metadata text not null default '',
  expires_at timestamptz,
  closed_at timestamptz,
  changed_at timestamptz,
  approve_developers boolean not null default false,
  approved_developers uuid[] not null default '{}',
  idempotency_hash bytea,
  request_hash bytea,
  allow_leases boolean not null default false,
  max_lease_micros bigint,
  constraint budget_details_pkey primary key (ledger, consumer_id, number),
  constraint budget_details_id_unique unique (id),
  constraint budget_details_path_ends_here check (path[cardinality(path)] = number and cardinality(path) between 1 and 6)
);
comment on table farebox.budget_details is
  'What a charge does not change of a node. API processes keep it in memory and check it before the debit.';
comment on column farebox.budget_details.path is
  'The numbers of the nodes from the root to this one. A node never moves, so neither does what was counted.';
comment on column farebox.budget_details.tools is 'Names, or dev_.../name for the tool of one developer. Null: all.';
comment on column farebox.budget_details.metadata is 'JSON as it was sent. Empty: none was sent.';
comment on column farebox.budget_details.changed_at is 'As in api_keys: null until something changes.';
comment on column farebox.budget_details.approve_developers is
  'Whether a developer is refused until the owner has approved it.';
comment on column farebox.budget_details.allow_leases is
  'Whether its keys may be leased. Off by default: what is leased is spent before it is charged.';
comment on column farebox.budget_details.max_lease_micros is 'The most that one lease may reserve. Null: its limits alone.';
create index budget_details_changed on farebox.budget_details (changed_at) where changed_at is not null;
create unique index budget_details_idempotency on farebox.budget_details (ledger, consumer_id, idempotency_hash)
  where idempotency_hash is not null;

create table farebox.spend_keys (
  id uuid not null,
  hash bytea not null,
  account_id uuid not null references farebox.accounts (id),
  ledger smallint not null,
  consumer_id uuid not null,
  number int not null,
  budget int not null,
  path int[] not null,
  name text,
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  changed_at timestamptz,
  last_used_at timestamptz,
  developer int,
  idempotency_hash bytea,
  request_hash bytea,
  constraint spend_keys_pkey primary key (ledger, consumer_id, number),
  constraint spend_keys_budget_unique unique (ledger, consumer_id, budget, id),
  constraint spend_keys_id_unique unique (id),
  constraint spend_keys_hash_unique unique (hash),
  constraint spend_keys_hash_is_sha256 check (octet_length(hash) = 32)
) with (fillfactor = 90);
comment on table farebox.spend_keys is
  'Consumer keys that can be charged within a node''s limits and read that node. Not in api_keys: nothing that reads '
  'those can take one for a key of the account.';
comment on column farebox.spend_keys.number is 'Of the key, from 1, among its consumer''s. charges.origin has it in four bytes.';
comment on column farebox.spend_keys.budget is 'The number of its node.';
comment on column farebox.spend_keys.path is 'The path of its node, which never changes.';
comment on column farebox.spend_keys.changed_at is 'As in api_keys: null until something changes.';
-- So the ceiling for each developer and day needs no second mechanism, is as exact as any budget, and charges without a
-- ceiling pay nothing.
comment on column farebox.spend_keys.developer is
  'Nobody holds this key: under accounts.developer_day_micros, what this developer charges to keys of the account counts '
  'as its. Null: a key that was handed out.';
comment on column farebox.spend_keys.idempotency_hash is
  'Of the caller and its idempotency key. The key is derived from the idempotency key, so that a retry can show it again.';
create index spend_keys_changed on farebox.spend_keys (changed_at) where changed_at is not null;
create unique index spend_keys_developer on farebox.spend_keys (ledger, consumer_id, developer) where developer is not null;
create unique index spend_keys_idempotency on farebox.spend_keys (ledger, consumer_id, idempotency_hash)
  where idempotency_hash is not null;
