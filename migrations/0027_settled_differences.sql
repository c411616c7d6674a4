-- An operator settles a difference from Stripe that stays, such as a payment that was kept and credited by an adjustment. Lists,
-- metrics and doctor leave out exactly that difference from then on, so that they show new ones, until one of its amounts changes.
-- farebox.differences keeps its row, which says what to compare again.
-- Locks: none that anything waits for: the table is new.
create table farebox.settled_differences (
  id uuid not null,
  top_up_id uuid not null,
  account_id uuid,
  kind text not null,
  processor_micros bigint not null,
  ledger_micros bigint not null,
  reason text not null,
  created_at timestamptz not null default now(),
  constraint settled_differences_pkey primary key (id),
  constraint settled_differences_once unique (top_up_id, kind, processor_micros, ledger_micros),
  constraint settled_differences_reason_given check (reason <> '')
);
comment on column farebox.settled_differences.account_id is
  'Null if the ledger does not know the top-up. No foreign key: a difference is about what Stripe has.';
create constraint trigger settled_differences_audit_insert after insert on farebox.settled_differences
  deferrable initially deferred for each row
  execute function farebox.audit_change('difference.settled', 'account_id', 'top_up_id', 'kind', 'processor_micros', 'ledger_micros', 'reason');
