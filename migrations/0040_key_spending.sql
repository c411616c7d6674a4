-- What each spend key spent, by tool, developer and day. Charges by spend keys name their key in the tail of earnings, and
-- the step that moves the tail adds to these sums too. So a budget's usage costs a charge no table of its own, and is
-- read like earnings: from sums plus a tail, in one statement.
-- Rows of plain charges leave the new columns null, which takes no space.
-- Locks: ACCESS EXCLUSIVE on the two tables, for the catalogue and the index of a short tail.

alter table farebox.earnings_tail add column consumer_id uuid, add column spend_key int;
comment on column farebox.earnings_tail.consumer_id is 'Of charges by a spend key. Null: keys of accounts.';
create index earnings_tail_consumer on farebox.earnings_tail (consumer_id) where consumer_id is not null;

alter table farebox.charge_refunds add column spend_key int;
comment on column farebox.charge_refunds.spend_key is
  'The spend key of the refunded charge, which may be archived by now. Null: a key of the account.';
update farebox.charge_refunds r set spend_key = substr(c.origin, 1, 4)::int4
from farebox.charges c
where c.ledger = r.ledger and c.consumer_id = r.consumer_id and c.id = r.charge_id and c.origin <> ''
  and substr(c.origin, 1, 4)::int4 > 0
  and exists (select from farebox.spend_keys k where k.ledger = r.ledger and k.consumer_id = r.consumer_id);

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

-- Charges by spend keys from before this migration. Of a consumer without such keys no charge is read.
insert into farebox.key_spending
  (ledger, consumer_id, spend_key, developer, tool, span, begins_at, amount_micros, charges)
select e.ledger, e.consumer_id, e.spend_key, e.developer, e.tool, s.span, s.begins_at, sum(e.amount_micros), sum(e.charges)
from (
  select c.ledger, c.consumer_id, substr(c.origin, 1, 4)::int4 as spend_key, c.developer, c.tool,
    uuid_extract_timestamp(c.id) as at, c.amount_micros, 1 as charges
  from (select distinct ledger, consumer_id from farebox.spend_keys) k
  join farebox.charges c using (ledger, consumer_id)
  where c.origin <> '' and substr(c.origin, 1, 4)::int4 > 0
  union all
  select ledger, consumer_id, spend_key, developer, tool, uuid_extract_timestamp(id), -amount_micros, 0
  from farebox.charge_refunds where spend_key is not null
) e
cross join lateral (values ('day', date_trunc('day', e.at, 'UTC')), ('all', '-infinity'::timestamptz)) as s (span, begins_at)
group by 1, 2, 3, 4, 5, 6, 7;
