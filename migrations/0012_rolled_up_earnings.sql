-- What developers earned, summed, so that it reads the same with ten million charges as with ten. Charges
-- append to the two tails; a step deletes rows there and adds them to the sums here in one transaction. So
-- a sum and its tail, read in one statement, are exact at every moment, in whatever order charges commit.

create table farebox.earnings (
  developer int not null,
  span text not null,
  tool text not null,
  begins_at timestamptz not null,
  amount_micros bigint not null,
  charges bigint not null,
  constraint earnings_pkey primary key (developer, span, tool, begins_at),
  constraint earnings_span_known check (span in ('hour', 'day', 'all'))
) with (fillfactor = 80);
comment on table farebox.earnings is
  'A row for each developer, tool and UTC hour that has earnings, for each UTC day, and one for all time; net '
  'of refunds of charges, which count when they are made, so an amount may be negative.';
comment on column farebox.earnings.begins_at is 'Of the hour or the day, by the clock of UTC; -infinity for all time.';

create table farebox.top_up_earnings (
  developer int not null,
  top_up_id uuid not null,
  charged_micros bigint not null,
  charges bigint not null,
  constraint top_up_earnings_pkey primary key (developer, top_up_id)
) with (fillfactor = 80);
comment on table farebox.top_up_earnings is
  'What each top-up paid to each developer, first in, first out, net of refunds of charges, and in how many '
  'charges. Until the tail is moved, what is there may be less than nothing.';

comment on column farebox.attribution_tail.amounts is
  'Negative: that stretch, whose beginning is spent_before + through, was paid back, and is no charge.';
