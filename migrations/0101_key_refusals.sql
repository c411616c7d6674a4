-- What the spend keys of an account were refused, by hour, so that the owner who handed them out sees that an agent is refused.
-- Only the developer who charged saw it before. API processes write it together with the refusals of developers.
-- Locks: none, the table is new. The previous release may run beside it, and counts nothing here.
create table farebox.key_refusals (
  ledger smallint not null,
  consumer_id uuid not null,
  hour timestamptz not null,
  spend_key int not null,
  code text not null,
  count bigint not null,
  last_at timestamptz not null,
  constraint key_refusals_pkey primary key (ledger, consumer_id, hour, spend_key, code),
  constraint key_refusals_count_positive check (count > 0)
);
comment on table farebox.key_refusals is
  'Kept for 30 days. Once an account has a thousand rows in an hour, only these are counted up.';
comment on column farebox.key_refusals.spend_key is
  'The number of the key, which may have ended. What names no spend key has no row.';
create index key_refusals_hour on farebox.key_refusals (hour);
