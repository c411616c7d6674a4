/**
 * The part of the audit that proves the audit log: its chain of hashes is whole, and it has an entry for each change
 * that can be seen elsewhere. The chain finds entries that were changed, deleted or moved. The second check finds those
 * deleted from its end, and changes made while a trigger was off.
 */
import { sql } from '../database.ts';

/** Changes before this have no entries. */
const BEGINNING = sql.fragment`(select applied_at from farebox.migrations where name = '0033_audit_log')`;

export const AUDIT_LOG_CHECKS = {
  'the audit log is an unbroken chain': sql.fragment`
    select 'entry ' || e.number, case
      when e.number <> before + 1 then 'follows entry ' || before
      else 'its hash is not that of its content and the entry before it' end
    from (
      select entry, entry.number, entry.hash,
        coalesce(lag(entry.number) over chain, 0) as before,
        coalesce(lag(entry.hash) over chain, '') as hash_before
      from farebox.audit_entries entry window chain as (order by number)
    ) e
    where e.number <> before + 1 or e.hash <> farebox.audit_hash(hash_before, e.entry)`,

  'the audit log has every change': sql.fragment`
    select action || ' ' || id, 'at ' || changed_at || ', has no entry'
    from (
      select 'account.created' as action, id, created_at as changed_at from farebox.accounts
      union all select 'key.created', id, created_at from farebox.api_keys
      union all select 'key.revoked', id, revoked_at from farebox.api_keys
      union all select 'spend_key.created', id, created_at from farebox.spend_keys
      union all select 'spend_key.revoked', id, revoked_at from farebox.spend_keys
      union all select 'operator.acted', id, created_at from farebox.operator_actions
      union all select 'approval.decided', id, decided_at from farebox.approvals where decision is not null
      union all select 'balance.adjusted', id, created_at from farebox.movements where kind = 'adjustment'
      union all select 'balance.opened', id, created_at from farebox.top_ups where method = 'manual'
      union all select 'session.started', id, created_at from console.sessions
      union all select 'passkey.added', id, created_at from console.passkeys
    ) changes
    where changed_at > ${BEGINNING} and not exists (
      select from farebox.audit_entries e where e.subject_id = id and e.action = changes.action)`,
} as const;
