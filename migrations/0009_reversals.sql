-- What takes the money of a top-up back: refunds and disputes, together "reversals". What a reversal asks
-- for is taken from the consumer, or held while a dispute is open; what the balance cannot cover is debt,
-- which the next credit settles before any of it can be spent.
create table farebox.reversals (
  id uuid primary key,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null references farebox.top_ups (id),
  kind text not null,
  status text not null,
  amount_micros bigint not null,
  held_micros bigint not null default 0,
  taken_micros bigint not null default 0,
  debt_micros bigint not null generated always as (
    case when status in ('failed', 'won') then 0 else amount_micros - held_micros - taken_micros end
  ) stored,
  processor_id text,
  failure_message text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint reversals_processor_unique unique (processor_id),
  constraint reversals_status_known check (
    case kind when 'refund' then status in ('requested', 'made', 'failed')
      when 'dispute' then status in ('open', 'lost', 'won') else false end
  ),
  constraint reversals_amount_positive check (amount_micros > 0),
  constraint reversals_cover_no_more_than_is_asked
    check (held_micros >= 0 and taken_micros >= 0 and held_micros + taken_micros <= amount_micros),
  constraint reversals_hold_while_open check (held_micros = 0 or status = 'open'),
  constraint reversals_take_for_good
    check (taken_micros = 0 or status in ('requested', 'made', 'lost')),
  constraint reversals_ours_are_covered check (status <> 'requested' or taken_micros = amount_micros),
  constraint reversals_processor_named
    check (processor_id is not null or status in ('requested', 'failed'))
);
comment on column farebox.reversals.status is
  'A refund: requested (of us; the processor may not know yet), made, failed. A dispute: open, lost, won.';
comment on column farebox.reversals.debt_micros is
  'What the balance did not cover. Where a consumer has debt, the balance is 0.';
create index reversals_top_up on farebox.reversals (top_up_id);
create index reversals_debt on farebox.reversals (ledger, consumer_id) where debt_micros > 0;

alter table farebox.top_ups add column reversals_read int not null default 0;
comment on column farebox.top_ups.reversals_read is
  'How often its reversals were read at the processor and recorded: what was read before that is stale.';

-- Signed: what a reversal took, and what came back when it did not last.
alter table farebox.movements add column reversal_id uuid references farebox.reversals (id),
  drop constraint movements_kind_known,
  add constraint movements_kind_known check (kind in
    ('top_up', 'adjustment', 'refund', 'refund_returned', 'dispute', 'dispute_returned')),
  drop constraint movements_top_up_named,
  add constraint movements_top_up_named check ((kind = 'adjustment') = (top_up_id is null)),
  add constraint movements_reversal_named
    check ((kind in ('top_up', 'adjustment')) = (reversal_id is null));

alter table farebox.outbox drop constraint outbox_workflow_known,
  add constraint outbox_workflow_known
    check (workflow in ('grant', 'invocation', 'auto_top_up', 'top_up'));
