-- The opening balance of a statement and an operator's page of an account added up all movements of a consumer, of all time,
-- and a statement read them again to find those of its month. The sums of each month now are kept, by the trigger of
-- functions/add_to_movement_sums.sql, whichever release makes a movement, and two indexes find the rest.
-- Locks: SHARE ROW EXCLUSIVE on movements, for as long as it takes to read them three times: credits and refunds wait. Charges
-- and reads do not. The previous release may run beside it.

lock table farebox.movements in share row exclusive mode;

create table farebox.movement_sums (
  amount_micros bigint not null,
  movements bigint not null,
  consumer_id uuid not null,
  month date not null,
  ledger smallint not null,
  kind text not null,
  constraint movement_sums_pkey primary key (ledger, consumer_id, month, kind)
) with (fillfactor = 80);
comment on table farebox.movement_sums is
  'What moved the credits of a consumer in each UTC month, by kind. Changed in the transaction of the movement, under the lock of '
  'the consumer''s row.';

insert into farebox.movement_sums (ledger, consumer_id, month, kind, movements, amount_micros)
select ledger, consumer_id, date_trunc('month', created_at at time zone 'UTC')::date, kind, count(*), sum(amount_micros)
from farebox.movements group by 1, 2, 3, 4;

create index movements_made on farebox.movements (ledger, consumer_id, created_at);
create index movements_of_reversal on farebox.movements (ledger, consumer_id, reversal_id, kind, id)
  where reversal_id is not null;
