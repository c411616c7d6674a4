-- Approvals: what a payer or a tool server asks the owner of an account after a refusal, and the owner's answer. Asking
-- locks the account's row, so that what is pending is counted exactly. An answer locks the consumer's row, which every
-- debit locks, so a charge sees all of it or nothing.

create table farebox.approvals (
  id uuid not null,
  account_id uuid not null references farebox.accounts (id),
  ledger smallint not null,
  consumer_id uuid not null,
  spend_key int not null,
  developer int not null,
  developer_id uuid not null,
  tool text not null,
  amount_micros bigint not null,
  code text not null,
  budget int,
  scope text,
  limit_micros bigint,
  asked_by text not null,
  reason text not null default '',
  status text not null default 'pending',
  decision text,
  raised_to_micros bigint,
  is_raise_in_force boolean not null default false,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  begun_at timestamptz,
  mailed_at timestamptz,
  decided_at timestamptz,
  used_by uuid,
  constraint approvals_pkey primary key (ledger, consumer_id, id),
  constraint approvals_code_known check (code in ('approval_required', 'spend_limit_reached', 'insufficient_balance')),
  constraint approvals_scope_known check (scope in ('total', 'window', 'per_call')),
  constraint approvals_names_what_refused check (
    (budget is null) = (code = 'insufficient_balance') and (scope is null) = (code <> 'spend_limit_reached')
    and (limit_micros is null) = (scope is null)),
  constraint approvals_asked_by_known check (asked_by in ('payer', 'developer')),
  constraint approvals_status_known check (status in ('pending', 'approved', 'denied', 'expired')),
  constraint approvals_decision_known check (
    decision in ('once', 'always', 'raise', 'top_up', 'resolved', 'deny')),
  constraint approvals_decided_whole check (
    (status = 'pending') = (decided_at is null) and (status in ('pending', 'expired')) = (decision is null)
    and (status = 'denied') = (coalesce(decision, '') = 'deny')),
  constraint approvals_only_once_is_used check (used_by is null or decision = 'once'),
  constraint approvals_amount_positive check (amount_micros > 0),
  constraint approvals_within_a_week check (expires_at <= created_at + interval '7 days')
);
comment on column farebox.approvals.spend_key is 'The number of the key that was to pay. 0: a key of the account.';
comment on column farebox.approvals.budget is 'The number of the node that refused. Null: the balance did.';
comment on column farebox.approvals.limit_micros is 'The limit that refused, as it was then.';
comment on column farebox.approvals.asked_by is 'The holder of the key that was to pay, or the developer that it called.';
comment on column farebox.approvals.reason is 'Written by who asked. Never shown without escaping, and in no mail.';
comment on column farebox.approvals.decision is
  'resolved: what refused was changed by other means, such as a new window or a change of the budget.';
comment on column farebox.approvals.raised_to_micros is 'The limit that the decision set.';
comment on column farebox.approvals.is_raise_in_force is 'No later decision and no change of the budget has replaced that limit.';
comment on column farebox.approvals.begun_at is
  'When its workflow first read it, or was last started again because the owner was not mailed.';
comment on column farebox.approvals.used_by is 'The charge or hold that a decision of `once` allowed.';
create index approvals_id on farebox.approvals (id);
create unique index approvals_asked_once on farebox.approvals
  (ledger, consumer_id, spend_key, developer, tool, amount_micros, code, coalesce(budget, 0), coalesce(scope, ''))
  where status = 'pending';
create index approvals_of_account on farebox.approvals (account_id, id);
create index approvals_of_developer on farebox.approvals (developer, id) where asked_by = 'developer';
create index approvals_pending on farebox.approvals (expires_at) where status = 'pending';
-- The log of approvals that nobody answered is pruned by age (src/store/prune-logs.ts).
create index approvals_expired on farebox.approvals (id) where status = 'expired';
create index approvals_pending_of_account on farebox.approvals (account_id, id) where status = 'pending';
-- Rules of budgets, and refused charges, look for one-time approvals of the last hours, however many were never used.
create index approvals_unused on farebox.approvals (ledger, consumer_id, budget, decided_at)
  where decision = 'once' and used_by is null;
create unique index approvals_raises on farebox.approvals (ledger, consumer_id, budget, scope) where is_raise_in_force;
