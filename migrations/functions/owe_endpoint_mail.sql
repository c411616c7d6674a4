-- Notes, in the transaction that sends an account's events to another address, that its owner must get a mail about it: an
-- endpoint that somebody made with a leaked secret key gets events even after the key is revoked. A person has one such row
-- (owe_security_mail.sql). A further change leaves its times, so that many changes neither put the mail off nor send more than one in
-- five minutes. Nobody signs in to a test account, so its endpoints owe none.
create or replace function farebox.owe_endpoint_mail() returns trigger language plpgsql as $$
begin
  insert into console.owed_mails (user_id, kind)
    select id, 'webhook_endpoint' from console.users where account_id = new.account_id
  on conflict (user_id, kind) do update set id = excluded.id;
  return null;
end $$;

create or replace trigger webhook_endpoints_mail_insert after insert on farebox.webhook_endpoints
  for each row execute function farebox.owe_endpoint_mail();
create or replace trigger webhook_endpoints_mail_url after update of url on farebox.webhook_endpoints
  for each row when (old.url <> new.url) execute function farebox.owe_endpoint_mail();
