-- Drops what only earlier releases call: the charge statement that left a row for each spend key (before
-- 0081_key_spending_tail.sql), the statement of holds that knew no spend keys (before 0022_budgets.sql), and the triggers that
-- found the ledger of rows that did not say it (before 0079_rows_say_ledgers.sql). A release from before 0081 may not run
-- beside this one; the previous release may.
-- Locks: ACCESS EXCLUSIVE on the five tables, for the catalog alone.
drop trigger if exists consents_say_ledger on farebox.consents;
drop trigger if exists hold_expiries_say_ledger on farebox.hold_expiries;
drop trigger if exists hold_extensions_say_ledger on farebox.hold_extensions;
drop trigger if exists top_up_earnings_say_ledger on farebox.top_up_earnings;
drop trigger if exists archived_attribution_say_ledger on farebox.archived_attribution;
drop function if exists farebox.say_ledger;
drop function if exists farebox.post_hold_entries;
drop function if exists farebox.post_fitting_spends;
delete from farebox.functions where name in ('say_ledger', 'post_hold_entries', 'post_fitting_spends');
