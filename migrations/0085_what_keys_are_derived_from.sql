-- Corrects two comments: since keys are derived from the idempotency key itself, which is not stored, the hash in the
-- database does not give them away together with the master secret.
-- Locks: none but those of a comment.

comment on column farebox.api_keys.idempotency_hash is
  'Of the account and its idempotency key. The key is derived from the idempotency key, so that a retry can show it again.';
comment on column farebox.spend_keys.idempotency_hash is
  'Of the caller and its idempotency key. The key is derived from the idempotency key, so that a retry can show it again.';
