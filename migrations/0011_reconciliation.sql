-- Reconciliation: the processor's books are walked and held against ours, by the clock. What differs is kept
-- until it does not any more, for people to look at.
create table farebox.reconciliation (
  is_only boolean not null default true,
  walked_until timestamptz not null,
  constraint reconciliation_pkey primary key (is_only),
  constraint reconciliation_has_one_row check (is_only)
);
comment on column farebox.reconciliation.walked_until is
  'Whatever the processor booked before this was looked at. Moves only at the end of a walk.';

create table farebox.differences (
  top_up_id uuid not null,
  kind text not null,
  processor_micros bigint not null,
  ledger_micros bigint not null,
  payment_intent_ids text[] not null,
  since timestamptz not null default now(),
  constraint differences_pkey primary key (top_up_id, kind),
  constraint differences_kind_known check (kind in
    ('not_credited', 'not_paid', 'payment_mismatch', 'paid_twice', 'unknown_top_up', 'reversals'))
);
comment on column farebox.differences.top_up_id is
  'Names no row of top_ups when the processor has a payment for a top-up that we do not know.';
comment on column farebox.differences.payment_intent_ids is
  'The payments that were looked at, so that they are looked at again: our row of the top-up may not name them.';

-- Those that reconciliation asks the processor about, page by page.
create index top_ups_unsettled on farebox.top_ups (id)
  where status in ('pending', 'expired', 'failed', 'disputed');
