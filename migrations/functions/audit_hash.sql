-- The hash of an entry of the audit log: SHA-256 of the hash before it, then of the entry as a JSON array. Never change
-- it: `farebox doctor` calculates the hash of every entry again.
create or replace function farebox.audit_hash(previous bytea, entry farebox.audit_entries)
returns bytea language sql stable parallel safe as $$
  select sha256(previous || convert_to(jsonb_build_array(
    entry.number,
    -- As a number, since its text would depend on the session's time zone.
    extract(epoch from entry.happened_at),
    entry.action,
    entry.account_id,
    entry.subject_id,
    entry.details,
    entry.program,
    entry.database_role
  )::text, 'UTF8'))
$$;
