-- Anyone may hold a top-up link: a tool server has it first. Its checkout is opened without the account's customer at
-- the processor, so that its page shows, uses and saves no card of the account.
-- Locks: ACCESS EXCLUSIVE on top_ups, for the catalogue alone. The previous release runs beside it, and opens the checkouts
-- of its links with the customer until it ends.
alter table farebox.top_ups add column by_link boolean not null default false;
comment on column farebox.top_ups.by_link is
  'Checkouts: requested through a top-up link. Nobody is known there, so the payment has no customer of the account.';
