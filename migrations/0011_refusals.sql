-- Refused calls by hour: for the developer whose tools were called, and for the owner who handed out a spend key. API
-- processes gather refusals in memory and write them together, off the path of charges; a process that is killed loses
-- seconds.

create table farebox.refusals (
  developer_id uuid not null,
  hour timestamptz not null,
  code text not null,
  tool text not null,
  count bigint not null,
  last_at timestamptz not null,
  request_ids text[] not null,
  constraint refusals_pkey primary key (developer_id, hour, code, tool),
  constraint refusals_count_positive check (count > 0),
  constraint refusals_few_request_ids check (cardinality(request_ids) between 1 and 5)
);
comment on table farebox.refusals is
  'Kept for 30 days. An API process adds at most a hundred rows for a developer and an hour.';
comment on column farebox.refusals.tool is 'Empty: the refusal concerns no registered tool.';
comment on column farebox.refusals.request_ids is 'Of the last ones, the newest first.';
create index refusals_hour on farebox.refusals (hour);

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
