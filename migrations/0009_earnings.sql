-- Developers' earnings, the top-ups that paid for them, and what spend keys spent: three tails and their sums. Charges
-- append to the tails and never wait for each other there; if they updated a row instead, all of them would wait for it. A
-- schedule deletes rows of a tail and adds them to its sum in one transaction. So a sum and its tail, read in one
-- statement, are exact at any time and in any order of commits, with ten charges or ten million.

create table farebox.earnings_tail (
  ledger smallint not null,
  developer int not null,
  minute timestamptz not null,
  tool text not null,
  amount_micros bigint not null,
  charges int not null,
  consumer_id uuid,
  spend_key int
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_threshold = -1);
comment on table farebox.earnings_tail is
  'One row for each developer, tool and minute (of the charges'' ids, UTC) of a flush. Charges by spend keys that are '
  'decided one by one, and refunds, have a row each, which names the key.';
comment on column farebox.earnings_tail.ledger is
  'The ledger of one of the flush''s consumers. It decides where the row is kept and says nothing else.';
comment on column farebox.earnings_tail.consumer_id is 'Of charges by a spend key. Null: keys of accounts.';
create index earnings_tail_developer on farebox.earnings_tail (developer);
create index earnings_tail_consumer on farebox.earnings_tail (consumer_id) where consumer_id is not null;
-- A publication for all tables refuses to delete from a table whose rows it cannot name, and this one has no key: rollups
-- would stop. Its rows are narrow and live for seconds, so the log may hold them whole.
alter table farebox.earnings_tail replica identity full;

create table farebox.earnings (
  developer int not null,
  span text not null,
  tool text not null,
  begins_at timestamptz not null,
  amount_micros bigint not null,
  charges bigint not null,
  charged_minutes bigint not null default 0,
  constraint earnings_pkey primary key (developer, span, tool, begins_at),
  constraint earnings_span_known check (span in ('hour', 'day', 'all'))
) with (fillfactor = 80);
comment on table farebox.earnings is
  'A row for each developer, tool and UTC hour that has earnings, for each UTC day, and one for all time. Net '
  'of refunds of charges, which count when they are made, so an amount may be negative.';
comment on column farebox.earnings.begins_at is
  'The beginning of the hour or the day, in UTC; -infinity for all time.';
-- Lists find the charges of a tool through these minutes: an hour of a busy developer has thousands of charges, and a
-- tool may have just one charge in each of many hours.
comment on column farebox.earnings.charged_minutes is
  'Of an hour: bit n is set when a charge was made in its minute n. Of other spans 0.';

create table farebox.attribution_tail (
  id bigint generated always as identity primary key,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  spent_before bigint[] not null,
  charge_group int[] not null,
  through bigint[] not null,
  developers int[] not null,
  amounts bigint[] not null
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1);
-- Arrays, because one row per flush costs next to nothing, and nothing looks up a single charge here.
comment on table farebox.attribution_tail is
  'Which stretch of whose money a flush spent on which developer, from which follows which top-up paid. '
  'ledgers, consumers, spent_before: by group, a consumer; null in spent_before: it was not debited. '
  'charge_group, through, developers, amounts: by charge, which covers [spent_before of its group + through - '
  'amount, spent_before + through) of the axis.';
comment on column farebox.attribution_tail.amounts is
  'Negative: a refund of a charge gave back the stretch that begins at spent_before + through. It is no charge.';

create table farebox.top_up_earnings (
  developer int not null,
  top_up_id uuid not null,
  charged_micros bigint not null,
  charges bigint not null,
  ledger smallint not null,
  constraint top_up_earnings_pkey primary key (developer, top_up_id, ledger)
) with (fillfactor = 80);
comment on table farebox.top_up_earnings is
  'What each top-up paid to each developer, first in, first out, net of refunds of charges, and in how many '
  'charges. May be negative until the tail is added.';

create table farebox.key_spending_tail (
  id bigint generated always as identity,
  ledger smallint not null,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  charge_group int[] not null,
  spend_keys int[] not null,
  developers int[] not null,
  tools text[] not null,
  days date[] not null,
  amounts bigint[] not null,
  constraint key_spending_tail_pkey primary key (id, ledger)
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_threshold = -1);
-- Arrays, as in attribution_tail: a flush of many keys writes as many rows as one of plain charges. Reads of usage look
-- through all rows, which are moved within seconds.
comment on table farebox.key_spending_tail is
  'What each flush with spend keys spent by them. ledgers, consumers: by group, a consumer; a consumer that is null was '
  'not debited. charge_group, spend_keys, developers, tools, days, amounts: by charge. A key of 0 is one of the account, '
  'which does not count here. Days are in UTC, by the ids of the charges.';
comment on column farebox.key_spending_tail.ledger is
  'The ledger of one of the flush''s consumers. It decides where the row is kept and says nothing else.';

create table farebox.key_spending (
  amount_micros bigint not null,
  charges bigint not null,
  begins_at timestamptz not null,
  consumer_id uuid not null,
  spend_key int not null,
  developer int not null,
  ledger smallint not null,
  span text not null,
  tool text not null,
  constraint key_spending_pkey primary key (ledger, consumer_id, spend_key, span, begins_at, developer, tool),
  constraint key_spending_span_known check (span in ('day', 'all'))
) with (fillfactor = 80);
comment on table farebox.key_spending is
  'A row for each spend key, developer, tool and UTC day with charges or refunds, and one for all time. Net of refunds, '
  'which count when they are made, so an amount may be negative.';
comment on column farebox.key_spending.begins_at is 'The beginning of the day, in UTC; -infinity for all time.';

-- The usage of a budget is read from these sums, so it takes no longer with many keys than with one. The trigger of
-- functions/add_to_budget_spending.sql keeps them at each change of the sums of keys.
create table farebox.budget_spending (
  amount_micros bigint not null,
  charges bigint not null,
  begins_at timestamptz not null,
  consumer_id uuid not null,
  budget int not null,
  ledger smallint not null,
  span text not null,
  grouped_by text not null,
  mark text not null,
  constraint budget_spending_pkey primary key (ledger, consumer_id, budget, grouped_by, span, begins_at, mark),
  constraint budget_spending_grouped_by_known check (grouped_by in ('tool', 'developer')),
  constraint budget_spending_span_known check (span in ('day', 'all'))
) with (fillfactor = 80);
comment on table farebox.budget_spending is
  'What the keys of a budget and of all below it spent: the sums of key_spending, by tool and by developer. A charge counts '
  'once in each of the two groupings.';
comment on column farebox.budget_spending.budget is 'The number of the node.';
comment on column farebox.budget_spending.mark is 'The name of a tool, or the number of a developer.';
