-- Archived months. The partition of a closed month's charges is detached and moved to the schema farebox_archive, where
-- it can be dumped and dropped: nothing here reads it any more. What reads, statements and doctor need of its charges
-- stays in these tables. Months are archived in order, the oldest first. All sums are before refunds of charges: refunds
-- keep their rows, so one that is made while its month is archived is neither missed nor counted twice.

create schema if not exists farebox_archive;

create table farebox.archived_months (
  month date not null,
  charges bigint not null,
  amount_micros bigint not null,
  archived_at timestamptz not null default now(),
  constraint archived_months_pkey primary key (month),
  constraint archived_months_begin check (month = date_trunc('month', month))
);
comment on table farebox.archived_months is
  'All months before the end of the newest one are archived, or had no charges.';

create table farebox.archived_charges (
  amount_micros bigint not null,
  charges bigint not null,
  consumer_id uuid not null,
  month date not null,
  developer int not null,
  ledger smallint not null,
  tool text not null,
  constraint archived_charges_pkey primary key (ledger, consumer_id, month, developer, tool)
);
comment on table farebox.archived_charges is
  'The archived charges of a month by consumer, developer and tool, before refunds of charges.';

create table farebox.archived_spending (
  ledger smallint not null,
  consumer_id uuid not null,
  stretches int8multirange not null,
  constraint archived_spending_pkey primary key (ledger, consumer_id)
);
comment on column farebox.archived_spending.stretches is
  'Which parts of the axis of the consumer''s spending the archived charges cover. More than one when charges at the '
  'end of a month lie behind some of the next.';

create table farebox.archived_attribution (
  developer int not null,
  top_up_id uuid not null,
  micros bigint not null,
  charges bigint not null,
  ledger smallint not null,
  constraint archived_attribution_pkey primary key (developer, top_up_id, ledger)
);
comment on table farebox.archived_attribution is
  'What each top-up paid to each developer in archived charges, before refunds of charges, and in how many charges.';

create table farebox.archived_key_spending (
  micros bigint not null,
  consumer_id uuid not null,
  spend_key int not null,
  ledger smallint not null,
  constraint archived_key_spending_pkey primary key (ledger, consumer_id, spend_key)
);
comment on table farebox.archived_key_spending is
  'What each spend key charged in archived charges, before their refunds: doctor compares budgets with it.';
