-- Developers' earnings, and the top-ups that paid for them: two tails and two sums. Charges append to the tails and
-- never wait for each other there; if they updated a row instead, all of them would wait for it. A schedule deletes
-- rows of a tail and adds them to its sum in one transaction. So a sum and its tail, read in one statement, are exact
-- at any time and in any order of commits, with ten charges or ten million.

create table farebox.earnings_tail (
  ledger smallint not null,
  developer int not null,
  minute timestamptz not null,
  tool text not null,
  amount_micros bigint not null,
  charges int not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_threshold = -1);
comment on table farebox.earnings_tail is
  'One row for each developer, tool and minute (of the charges'' ids, UTC) of a flush.';
comment on column farebox.earnings_tail.ledger is
  'The ledger of one of the flush''s consumers. It decides where the row is kept and says nothing else.';
create index earnings_tail_developer on farebox.earnings_tail (developer);

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
  constraint top_up_earnings_pkey primary key (developer, top_up_id)
) with (fillfactor = 80);
comment on table farebox.top_up_earnings is
  'What each top-up paid to each developer, first in, first out, net of refunds of charges, and in how many '
  'charges. May be negative until the tail is added.';
