-- The page to which people return after they topped up through the link of a developer's refusal. One page of the
-- developer's site; a link may name another page of the same origin.
alter table farebox.accounts
  add column return_url text
    constraint accounts_return_url_short check (length(return_url) <= 2000);
