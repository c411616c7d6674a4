-- What spend keys charged in archived months counts before refunds, like every other sum of archived charges: refunds keep
-- their rows, so one that is made while its month is archived is neither missed nor counted twice.
-- Locks: ROW EXCLUSIVE on the sums. Neither charges nor refunds touch them. The previous release may run beside it, but its
-- doctor and its `farebox archive` may not.

update farebox.archived_key_spending a set micros = a.micros + r.micros
from (
  select ledger, consumer_id, spend_key, sum(amount_micros) as micros
  from farebox.charge_refunds
  where spend_key is not null and uuid_extract_timestamp(charge_id)
    < (select (max(month) + interval '1 month')::timestamp at time zone 'UTC' from farebox.archived_months)
  group by 1, 2, 3
) r where r.ledger = a.ledger and r.consumer_id = a.consumer_id and r.spend_key = a.spend_key;

comment on table farebox.archived_key_spending is
  'What each spend key charged in archived charges, before their refunds: doctor compares budgets with it.';
