-- Test mode. An account's test keys belong to a test account: a row with a consumer, a developer and play money of its
-- own, in ledgers from 2048 on. So every statement about money serves both modes, and none can add live and test money
-- together: a charge names one ledger, and everything that it writes leads with it.
-- Locks: ACCESS EXCLUSIVE on accounts, top_ups, reversals and auto_top_ups while their rows are checked, which takes a
-- moment for a million of them; charges do not touch these tables. The previous release runs beside it: it refuses test
-- keys by their form.
alter table farebox.accounts add column live_account_id uuid references farebox.accounts (id);
comment on column farebox.accounts.live_account_id is
  'The account whose test keys this test account has. Null: a live account.';
create unique index accounts_live_account on farebox.accounts (live_account_id)
  where live_account_id is not null;

alter table farebox.accounts
  add constraint accounts_mode_is_in_ledger check ((live_account_id is not null) = (ledger >= 2048)),
  -- No address looks like this, so nobody can sign in as a test account.
  add constraint accounts_test_has_no_address check (
    case when live_account_id is null then email not like 'test:%' else email = 'test:' || live_account_id end),
  add constraint accounts_test_moves_no_money check (
    live_account_id is null
      or num_nonnulls(consent_ceiling_micros, processor_customer_id, operator_since) = 0);
alter table console.users add constraint users_own_no_test_account check (email not like 'test:%');

alter table farebox.top_ups drop constraint top_ups_method_known;
alter table farebox.top_ups
  add constraint top_ups_method_known check (method in ('checkout', 'direct', 'manual', 'test')),
  add constraint top_ups_test_reaches_no_processor check (
    case when ledger < 2048 then method <> 'test'
      else method = 'test' and not automatic and status in ('completed', 'failed')
        and num_nonnulls(session_id, session_url, session_expires_at, payment_intent_id, seen_verdict,
          consent_ceiling_micros) = 0 end);
comment on column farebox.top_ups.method is
  'checkout, direct: through Stripe. manual: by an operator. test: play money, which no processor knows of.';
alter table farebox.reversals add constraint reversals_are_live check (ledger < 2048);
alter table farebox.auto_top_ups add constraint auto_top_ups_are_live check (ledger < 2048);
