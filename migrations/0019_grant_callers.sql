-- Says on the column who may use a grant: an id means nobody until it is registered, and whoever registers it later must
-- not get what an owner allowed to another.
-- Locks: farebox.grants, share update exclusive, for a moment.
comment on column farebox.grants.caller_id is
  'Free text. If it names an agent that was registered before the grant, its account may use the grant too.';
