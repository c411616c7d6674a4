-- Refunds, disputes and approvals have the ledger in their keys, and what is unique among a consumer's top-ups and approvals
-- has it too, so an engine that spreads ledgers over nodes can check them where they are. Ids of refunds, disputes and
-- approvals are looked up by indexes that are not unique: an id is random, and its key still has it once in its
-- consumer. Top-ups keep the id as their key as long as the previous release groups rows by it; (ledger, consumer_id, id)
-- is unique already. What Stripe names stays unique over all ledgers. An operator's action no longer refers to its top-up
-- by a foreign key, from a global row to one of a ledger: `farebox doctor` compares them instead.
-- Locks: SHARE on top_ups, reversals and approvals while indexes are built; ACCESS EXCLUSIVE on them and on operator_actions
-- for the catalog alone. The previous release may run beside it: the constraints keep their names.
create unique index top_ups_idempotency on farebox.top_ups (ledger, consumer_id, idempotency_key);
create unique index top_ups_automatic on farebox.top_ups (ledger, consumer_id) where automatic and status = 'pending';
create index reversals_id on farebox.reversals (id);
create unique index approvals_of_consumer on farebox.approvals (ledger, consumer_id, id);
create index approvals_id on farebox.approvals (id);
create unique index approvals_asked on farebox.approvals
  (ledger, consumer_id, spend_key, developer, tool, amount_micros, code, coalesce(budget, 0), coalesce(scope, ''))
  where status = 'pending';

alter table farebox.operator_actions drop constraint operator_actions_top_up_id_fkey;
alter table farebox.top_ups drop constraint top_ups_idempotency_unique,
  add constraint top_ups_idempotency_unique unique using index top_ups_idempotency;
drop index farebox.top_ups_one_automatic;
alter index farebox.top_ups_automatic rename to top_ups_one_automatic;
alter table farebox.reversals drop constraint reversals_pkey,
  add constraint reversals_pkey primary key using index reversals_of_consumer;
alter table farebox.approvals drop constraint approvals_pkey,
  add constraint approvals_pkey primary key using index approvals_of_consumer;
drop index farebox.approvals_asked_once;
alter index farebox.approvals_asked rename to approvals_asked_once;
