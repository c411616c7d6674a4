-- As the previous release calls post_charges_2.sql: without rate cards.
create or replace function farebox.post_charges(
  p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint
) language plpgsql volatile as $$
#variable_conflict use_column
begin
  return query
  select a.ord, a.outcome, a.charge_id, a.amount, a.balance, a.signed_by
  from farebox.post_charges_2(p_ledger, p_consumer, p_id, p_developer, p_tool, p_amount, '{}', p_idempotency,
    p_fingerprint, p_metadata, p_receipt_key, p_replay_from, p_replay_to) a;
end $$;
