-- As the previous release calls post_fitting_groups_2.sql: without rate cards.
create or replace function farebox.post_fitting_groups(
  p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[],
  p_node_group int[], p_node_number int[], p_node_total bigint[],
  p_group int[], p_through bigint[], p_spend_key int[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns bigint[] language plpgsql volatile as $$
begin
  return farebox.post_fitting_groups_2(p_group_ledger, p_group_consumer, p_group_total, p_node_group, p_node_number,
    p_node_total, p_group, p_through, p_spend_key, p_id, p_developer, p_tool, p_amount, '{}', p_idempotency,
    p_fingerprint, p_metadata, p_receipt_key, p_replay_from, p_replay_to);
end $$;
