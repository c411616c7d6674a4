-- Evidence: the state of a top-up as read from Stripe. Only the step that reads Stripe writes it, and the statements
-- that credit, fail or expire a top-up require it. So somebody who can start steps but has not paid cannot move money.
alter table farebox.top_ups
  add column seen_verdict text,
  add column seen_micros bigint,
  add column seen_failure_code text,
  add column seen_at timestamptz,
  add constraint top_ups_seen_verdict_known check (seen_verdict in ('paid', 'expired', 'failed')),
  add constraint top_ups_seen_dated check ((seen_verdict is null) = (seen_at is null)),
  add constraint top_ups_seen_failure_named
    check ((seen_verdict is not distinct from 'failed') = (seen_failure_code is not null)),
  add constraint top_ups_seen_payment_is_ours check (
    case when seen_verdict is not distinct from 'paid'
      then seen_micros is not distinct from amount_micros and payment_intent_id is not null
      else seen_micros is null end
  );
comment on column farebox.top_ups.seen_verdict is
  'What the processor showed when it was read last. ''paid'' is never overwritten. Null: nothing final yet, or the '
  'top-up ended before evidence was kept.';
comment on column farebox.top_ups.seen_micros is
  'What payment_intent_id was seen to have paid, in full and in dollars.';
