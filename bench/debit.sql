-- The baseline: one debit by one statement in one commit, as a row of the same table with the same indexes.
\set n random(1, :consumers)
with debited as (
  update farebox.consumers set spent_micros = spent_micros + 100
  where ledger = 0 and id = ('00000000-0000-7000-8000-' || lpad(to_hex(:n::bigint), 12, '0'))::uuid
    and credited_micros - spent_micros - held_micros >= 100
  returning id, spent_micros, credited_micros - spent_micros - held_micros as balance
)
insert into farebox.charges
  (amount_micros, spent_micros, balance_micros, id, consumer_id, developer, ledger, receipt_key, tool)
select 100, spent_micros, balance, uuidv7(), id, :developer::int, 0, 1, 'search' from debited;
