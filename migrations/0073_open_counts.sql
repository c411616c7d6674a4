-- What an account has open is counted before it may open more: its active grants and its invocations in progress.
-- Locks: SHARE on grants and invocations, for as long as it takes to read them: requests that use grants wait. Charges use
-- neither. The previous release may run beside it.

create index grants_active_of_account on farebox.grants (account_id) where status = 'active';
create index invocations_open_of_account on farebox.invocations (account_id)
  where status in ('pending', 'running');
