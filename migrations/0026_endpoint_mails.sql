-- An endpoint that somebody made with a leaked secret key gets events even after the key is revoked. So the owner gets a
-- mail about a new endpoint, or a new address of one (functions/owe_endpoint_mail.sql), as about a new passkey.
-- Locks: console.owed_mails for its comment, which keeps neither reads nor writes waiting.
comment on table console.owed_mails is
  'Mails that no mail server has accepted yet, about changes to who has access to an account. Deleted once accepted, or after three days.';
