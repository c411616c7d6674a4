-- What Farebox notes about itself.

-- The last result of each part of `farebox doctor`, for the operators' page.
create table farebox.examinations (
  part text primary key,
  ended_at timestamptz not null,
  findings jsonb not null
);
comment on column farebox.examinations.findings is
  'Its first findings: [{"check": ..., "subject": ..., "detail": ..., "offenders": ...}]. Empty: all checks passed.';

-- Processes with different master secrets under one number refuse each other's receipts, links and sessions, and sign webhooks
-- with a secret that the receiver does not have. A process with another secret than the first is refused when it starts.
create table farebox.master_secrets (
  number smallint not null,
  fingerprint bytea not null,
  since timestamptz not null default now(),
  constraint master_secrets_pkey primary key (number),
  constraint master_secrets_fingerprint_is_sha256 check (octet_length(fingerprint) = 32)
);
comment on table farebox.master_secrets is
  'Which secret has which number in MASTER_SECRET. A secret that was removed keeps its row, so that no other takes its number.';
comment on column farebox.master_secrets.fingerprint is
  'Derived from the secret, which cannot be derived from it.';
