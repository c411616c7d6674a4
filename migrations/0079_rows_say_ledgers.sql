-- Rows that belonged to consumers without saying to which ledger say it now, in their keys: consents, what is left of holds
-- for their expiry and their extensions, and what top-ups paid of earnings. A row of hold_expiries has holds of one ledger. What
-- was written before is -1 there and in hold_extensions: it is of no use after a day, when the longest hold has ended.
-- The previous release writes no ledger; triggers find it (functions/say_ledger.sql).
-- Locks: ACCESS EXCLUSIVE on the five tables while their keys are built, and while the rows of top_up_earnings,
-- archived_attribution and consents are filled in: holds, roll-ups, consents and lists of what top-ups paid wait, charges
-- do not. The previous release may run beside it.
alter table farebox.hold_expiries add column ledger smallint not null default -1;
alter table farebox.hold_expiries alter ledger drop default,
  drop constraint hold_expiries_pkey, add constraint hold_expiries_pkey primary key (ledger, id);
comment on column farebox.hold_expiries.ledger is 'Of all of its holds. -1: of several, before this was recorded.';

alter table farebox.hold_extensions add column ledger smallint not null default -1;
alter table farebox.hold_extensions alter ledger drop default,
  drop constraint hold_extensions_pkey,
  add constraint hold_extensions_pkey primary key (hold_id, idempotency_hash, ledger);
comment on column farebox.hold_extensions.ledger is 'Of the hold. -1: it was extended before this was recorded.';

alter table farebox.consents add column ledger smallint;
update farebox.consents c set ledger = a.ledger from farebox.accounts a where a.id = c.account_id;
alter table farebox.consents alter ledger set not null,
  drop constraint consents_pkey, add constraint consents_pkey primary key (ledger, account_id, id);
drop index farebox.consents_account;

alter table farebox.top_up_earnings add column ledger smallint;
update farebox.top_up_earnings e set ledger = t.ledger from farebox.top_ups t where t.id = e.top_up_id;
alter table farebox.top_up_earnings alter ledger set not null,
  drop constraint top_up_earnings_pkey,
  add constraint top_up_earnings_pkey primary key (developer, top_up_id, ledger);

alter table farebox.archived_attribution add column ledger smallint;
update farebox.archived_attribution e set ledger = t.ledger from farebox.top_ups t where t.id = e.top_up_id;
alter table farebox.archived_attribution alter ledger set not null,
  drop constraint archived_attribution_pkey,
  add constraint archived_attribution_pkey primary key (developer, top_up_id, ledger);
