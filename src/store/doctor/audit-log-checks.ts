/**
 * The checks that prove the audit log: its chain of hashes is whole, it has an entry for each
 * change that can be seen elsewhere, and manual changes match it. The chain finds entries that were changed,
 * deleted or moved. The other checks find those deleted from its end, and changes made while a trigger was
 * off.
 */
import { sql } from '../database.ts';

/** Changes before this have no entries: rows that were imported are older than their database. */
const BEGINNING = sql.fragment`(select applied_at from farebox.migrations where name = '0018_audit_log')`;

/**
 * Whether refund `r` was requested here, as far as rows say: once the processor has made it, only a key or an operator
 * tells it from a refund in the processor's dashboard.
 */
const IS_REQUESTED = sql.fragment`
  r.kind = 'refund' and (
    r.status = 'requested' or r.processor_id is null
    or r.id in (select reversal_id from farebox.refund_keys)
    or r.id in (select id from farebox.operator_actions where kind = 'refund')
  )
`;

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
      union all select 'budget.created', id, uuid_extract_timestamp(id) from farebox.budget_details
      union all select 'operator.acted', id, created_at from farebox.operator_actions
      union all select 'approval.decided', id, decided_at from farebox.approvals where decision is not null
      union all select 'balance.adjusted', id, created_at from farebox.movements where kind = 'adjustment'
      union all select 'balance.opened', id, created_at from farebox.top_ups where method = 'manual'
      union all select 'refund.requested', r.id, r.created_at from farebox.reversals r where ${IS_REQUESTED}
      union all select 'difference.settled', id, created_at from farebox.settled_differences
      union all select 'warning.dismissed', id, dismissed_at from farebox.reversals where dismissed_at is not null
      union all select 'session.started', id, created_at from console.sessions
      union all select 'passkey.added', id, created_at from console.passkeys
      union all select 'webhook_endpoint.created', id, created_at from farebox.webhook_endpoints
    ) changes
    where changed_at > ${BEGINNING} and not exists (
      select from farebox.audit_entries e where e.subject_id = id and e.action = changes.action)`,

  'the audit log has the current consents, operators and closed budgets': sql.fragment`
    select action || ' ' || id, 'the newest entry has ' || coalesce(logged, 'none') || ', the row has ' || coalesce(present, 'none')
    from (
      select 'consent.changed' as action, a.id, a.consent_ceiling_micros::text as present, (
        select e.details ->> 'consent_ceiling_micros' from farebox.audit_entries e
        where e.account_id = a.id and e.action in ('account.created', 'consent.changed')
        order by e.number desc limit 1) as logged
      from farebox.accounts a where a.created_at > ${BEGINNING}
      -- As times: the entry has the text of the time zone in which it was written.
      union all select 'operator.changed', a.id, a.operator_since::text, (
        select (e.details ->> 'operator_since')::timestamptz::text from farebox.audit_entries e
        where e.account_id = a.id and e.action = 'operator.changed'
        order by e.number desc limit 1)
      from farebox.accounts a where a.created_at > ${BEGINNING}
      union all select 'budget.closed', d.id, d.closed_at::text, (
        select (e.details ->> 'closed_at')::timestamptz::text from farebox.audit_entries e
        where e.subject_id = d.id and e.action in ('budget.closed', 'budget.reopened')
        order by e.number desc limit 1)
      from farebox.budget_details d where (d.closed_at > ${BEGINNING}) is not false
    ) states
    where present is distinct from logged`,

  // Nobody edits them, so only this shows an amount that was changed together with its movement and its counter.
  'manual changes match the audit log': sql.fragment`
    select subject, 'the entry has ' || e.details::text || ', the row has ' || present::text
    from (
      select 'balance.adjusted' as action, id, 'movement ' || id as subject,
        jsonb_build_object('amount_micros', amount_micros, 'reason', reason) as present
      from farebox.movements where kind = 'adjustment'
      union all select 'balance.opened', id, 'top-up ' || id, jsonb_build_object('amount_micros', amount_micros)
      from farebox.top_ups where method = 'manual'
      union all select 'operator.acted', id, 'operator action ' || id, jsonb_build_object('kind', kind,
        'operator_account_id', operator_account_id, 'amount_micros', amount_micros, 'top_up_id', top_up_id,
        'reason', reason)
      from farebox.operator_actions
      union all select 'refund.requested', reversal_id, 'key ' || idempotency_key,
        jsonb_build_object('amount_micros', amount_micros)
      from farebox.refund_keys
    ) changes join farebox.audit_entries e on e.subject_id = changes.id and e.action = changes.action
    where not e.details @> present`,
} as const;
