-- A request that makes a key or a webhook endpoint, or rolls the secret of one, shows a secret once. When its answer was
-- lost, a repetition made another key, or ended the secret that the receiver had. With an Idempotency-Key it gets the same
-- answer now, as spend keys do: the hash of the idempotency key with its account, and of what was asked for.
-- Locks: farebox.api_keys and farebox.webhook_endpoints exclusively, for a change of the catalog and for reading them once,
-- to make indexes without rows.

alter table farebox.api_keys add column idempotency_hash bytea, add column request_hash bytea;
create unique index api_keys_idempotency on farebox.api_keys (idempotency_hash)
  where idempotency_hash is not null;
comment on column farebox.api_keys.idempotency_hash is
  'Of the account and its idempotency key. The key itself is derived from it, so that a retry can show it again.';

alter table farebox.webhook_endpoints add column idempotency_hash bytea, add column request_hash bytea,
  add column roll_idempotency_hash bytea, add column roll_request_hash bytea;
create unique index webhook_endpoints_idempotency on farebox.webhook_endpoints (idempotency_hash)
  where idempotency_hash is not null;
comment on column farebox.webhook_endpoints.idempotency_hash is 'Of the account and its idempotency key.';
comment on column farebox.webhook_endpoints.roll_idempotency_hash is
  'Of the last roll of the secret: its repetition gets the same secret, and rolls nothing.';
