-- How far the order of a consumer's charges on the axis of its spending differs from the order of their ids, so that a
-- total up to an instant reads only the charges within that distance of it (src/store/balance/spent.ts). Every function
-- that makes charges keeps both columns, in the update that it makes anyway.
-- Consumers that exist may have charges that were swapped unnoticed, by a minute at the most.
-- Locks: ACCESS EXCLUSIVE on the consumers, for the catalog alone. The previous release runs beside it.
alter table farebox.consumers
  add column charged_at timestamptz not null default '-infinity',
  add column disorder interval not null default '1 minute';
alter table farebox.consumers alter column disorder set default '0';
comment on column farebox.consumers.charged_at is 'The time of the latest charge by its id, or of another charge in its flush.';
comment on column farebox.consumers.disorder is
  'No charge lies behind one whose id is later by more than this.';
