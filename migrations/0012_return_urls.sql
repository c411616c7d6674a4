-- Where a developer wants people sent back to who topped up through a link of one of its refusals. One page of
-- its site; a link may name another page of the same origin.
alter table farebox.accounts
  add column return_url text
    constraint accounts_return_url_short check (length(return_url) <= 2000);
