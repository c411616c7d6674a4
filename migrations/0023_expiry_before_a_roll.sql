-- Keeps the expiry that a spend key had before it was rolled. A key can be rolled again during its overlap, and its
-- successors expire when the owner said, not when the overlap ends.
-- Locks: farebox.spend_keys, access exclusive, for a moment.
alter table farebox.spend_keys add column own_expires_at timestamptz;
comment on column farebox.spend_keys.own_expires_at is
  'Set when the key is rolled with an overlap, which may bring expires_at forward: the expiry that its owner gave it, or '
  'infinity for none. Null before that: expires_at is it.';
