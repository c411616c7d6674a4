-- Several tabs that set up two-factor authentication at the same moment each added a secret, and only one of them was shown
-- last: the others could be asked for at the next sign-in, so that no code was right. Now a person has one secret.
-- Locks: ACCESS EXCLUSIVE on console.two_factors, which has a row for each person with a second factor, for milliseconds.
delete from console.two_factors where id not in (
  select distinct on (user_id) id from console.two_factors order by user_id, verified is true desc, ctid
);
alter table console.two_factors add constraint two_factors_user_unique unique (user_id);
drop index console.two_factors_user;
