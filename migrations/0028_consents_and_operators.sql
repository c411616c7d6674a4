-- What owners agreed to and what operators did, kept for as long as the books: a card network asks for the terms that a
-- cardholder accepted, and an owner asks who changed a balance.
create table farebox.consents (
  id uuid primary key,
  account_id uuid not null references farebox.accounts (id),
  ceiling_micros bigint,
  given_by text not null,
  terms_version text,
  terms text,
  created_at timestamptz not null default now(),
  constraint consents_ceiling_positive check (ceiling_micros > 0),
  constraint consents_given_by_known check (given_by in ('owner', 'operator')),
  constraint consents_owner_agrees_to_terms
    check (given_by = 'operator' or ceiling_micros is null or (terms_version is not null and terms is not null))
);
comment on table farebox.consents is
  'Every change of accounts.consent_ceiling_micros, never edited. A null ceiling withdraws the consent.';
comment on column farebox.consents.given_by is
  'owner: in the console, who agreed to these terms. operator: with the farebox command, on the owner''s behalf.';
create index consents_account on farebox.consents (account_id, id);

alter table farebox.accounts add column operator_since timestamptz;
comment on column farebox.accounts.operator_since is
  'Null: not an operator. An operator may use /v1/operator once two-factor authentication is on.';

create table farebox.operator_actions (
  id uuid primary key,
  operator_account_id uuid not null references farebox.accounts (id),
  account_id uuid not null references farebox.accounts (id),
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid references farebox.top_ups (id),
  reason text not null,
  idempotency_key text not null,
  created_at timestamptz not null default now(),
  constraint operator_actions_kind_known check (kind in ('adjustment', 'refund')),
  constraint operator_actions_refund_names_top_up check ((kind = 'refund') = (top_up_id is not null)),
  constraint operator_actions_once unique (operator_account_id, idempotency_key)
);
comment on table farebox.operator_actions is
  'Who changed whose balance in the console, and why. Written in the transaction of the change.';
create index operator_actions_account on farebox.operator_actions (account_id, id);

-- The last result of each part of `farebox doctor`, for the operators' page.
create table farebox.examinations (
  part text primary key,
  ended_at timestamptz not null,
  findings jsonb not null
);
comment on column farebox.examinations.findings is
  'Its first findings: [{"check": ..., "subject": ..., "detail": ..., "offenders": ...}]. Empty: all checks passed.';
