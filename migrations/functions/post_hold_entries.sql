-- Calls post_entries.sql with the signature of the previous release, which has no spend keys.
create or replace function farebox.post_hold_entries(
  p_kind smallint[], p_id uuid[], p_hold uuid[], p_ledger smallint[], p_consumer uuid[],
  p_developer int[], p_tool text[], p_amount bigint[], p_seconds int[], p_final smallint[],
  p_over smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid, p_settles_debts boolean
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint,
  hold_id uuid, ledger smallint, consumer uuid, tool text, hold_amount bigint, captured bigint,
  remaining bigint, state smallint, placed_at timestamptz, expires_at timestamptz
)
language sql volatile
as $$
  -- A capture that a budget refuses the excess of: it has to make do with what the hold has.
  select e.ord, case e.outcome when 'limit_reached' then 'exceeds_hold' else e.outcome end, e.charge_id,
    case e.outcome when 'limit_reached' then e.remaining else e.amount end, e.balance, e.signed_by, e.hold_id, e.ledger,
    e.consumer, e.tool, e.hold_amount, e.captured, e.remaining, e.state, e.placed_at, e.expires_at
  from farebox.post_entries(p_kind, p_id, p_hold, p_ledger, p_consumer, array_fill(0, array[cardinality(p_kind)]),
    p_developer, p_tool, p_amount, p_seconds, p_final, p_over, p_idempotency, p_fingerprint, p_metadata,
    p_receipt_key, p_replay_from, p_replay_to, p_settles_debts) e;
$$;
