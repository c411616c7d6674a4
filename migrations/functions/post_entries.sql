-- As the previous release calls post_entries_2.sql: without rate cards.
create or replace function farebox.post_entries(
  p_kind smallint[], p_id uuid[], p_hold uuid[], p_ledger smallint[], p_consumer uuid[],
  p_spend_key int[], p_developer int[], p_tool text[], p_amount bigint[], p_seconds int[],
  p_final smallint[], p_over smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid, p_settles_debts boolean
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint,
  hold_id uuid, ledger smallint, consumer uuid, tool text, hold_amount bigint, captured bigint,
  remaining bigint, state smallint, placed_at timestamptz, expires_at timestamptz,
  budget_id uuid, limit_scope text, limit_micros bigint, limit_left bigint, window_unit smallint,
  window_began timestamptz
) language plpgsql volatile as $$
#variable_conflict use_column
begin
  return query
  select a.ord, a.outcome, a.charge_id, a.amount, a.balance, a.signed_by, a.hold_id, a.ledger, a.consumer, a.tool,
    a.hold_amount, a.captured, a.remaining, a.state, a.placed_at, a.expires_at, a.budget_id, a.limit_scope,
    a.limit_micros, a.limit_left, a.window_unit, a.window_began
  from farebox.post_entries_2(p_kind, p_id, p_hold, p_ledger, p_consumer, p_spend_key, p_developer, p_tool, p_amount,
    p_seconds, p_final, p_over, array_fill(0::smallint, array[cardinality(p_kind)]), p_idempotency, p_fingerprint,
    p_metadata, p_receipt_key, p_replay_from, p_replay_to, p_settles_debts) a;
end $$;
