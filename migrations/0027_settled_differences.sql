-- An operator settles a difference from Stripe that stays, such as a payment that was kept and credited by an adjustment. Lists,
-- metrics and doctor leave it out while its amounts are those of the latest settlement of its top-up and kind, so that they show new
-- ones. If it changes or ends, it shows again. farebox.differences keeps its row, which says what to compare again.
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
  constraint settled_differences_reason_given check (reason <> '')
);
comment on column farebox.settled_differences.account_id is
  'Null if the ledger does not know the top-up. No foreign key: a difference is about what Stripe has.';
create index settled_differences_latest on farebox.settled_differences (top_up_id, kind, id desc);
create constraint trigger settled_differences_audit_insert after insert on farebox.settled_differences
  deferrable initially deferred for each row
  execute function farebox.audit_change('difference.settled', 'account_id', 'top_up_id', 'kind', 'processor_micros', 'ledger_micros', 'reason');
