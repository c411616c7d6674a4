-- A tool that is no longer offered: out of the list, its price out of force, its past as it was.
alter table farebox.tools add column archived_at timestamptz;
