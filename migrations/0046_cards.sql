-- Cards as Stripe and the card networks want them charged without their owner: saved with the owner's agreement, chosen by
-- the owner, and confirmed by the payer when the bank asks for it. And the bank's fraud warnings, which hold the money of
-- a payment as a dispute does.
-- Locks: ACCESS EXCLUSIVE on top_ups and accounts for the catalogue alone, and on reversals while its rows, a few for each
-- refund and dispute, are checked.

alter table farebox.top_ups
  add column saves_card boolean not null default false,
  add column authentication_asked_at timestamptz;
comment on column farebox.top_ups.saves_card is
  'Checkouts: the owner asked to save the card that pays, for top-ups without the owner. Part of the row, so that a '
  'repeated call to the processor has the same parameters.';
comment on column farebox.top_ups.authentication_asked_at is
  'Direct top-ups: when the bank first wanted the cardholder to confirm the payment. While it is pending, it waits for that.';

alter table farebox.accounts add column processor_card_id text;
comment on column farebox.accounts.processor_card_id is
  'The saved card that its owner chose. Null, or a card that is no longer saved: the newest one is charged.';
create constraint trigger accounts_audit_card after update of processor_card_id on farebox.accounts
  deferrable initially deferred for each row
  when (old.processor_card_id is distinct from new.processor_card_id)
  execute function farebox.audit_change('card.chosen', 'id', 'processor_card_id');

alter table farebox.reversals add column dismissed_at timestamptz,
  drop constraint reversals_status_known,
  add constraint reversals_status_known check (
    case kind when 'refund' then status in ('requested', 'made', 'failed')
      when 'dispute' then status in ('open', 'lost', 'won')
      when 'warning' then status in ('open', 'won') else false end
  ),
  add constraint reversals_only_warnings_dismissed
    check (dismissed_at is null or (kind = 'warning' and status = 'won'));
create constraint trigger reversals_audit_dismissal after update of dismissed_at on farebox.reversals
  deferrable initially deferred for each row when (old.dismissed_at is distinct from new.dismissed_at)
  execute function farebox.audit_change('warning.dismissed', 'consumer_id', 'amount_micros', 'top_up_id');
comment on column farebox.reversals.status is
  'A refund: requested (by us; the processor may not know of it yet), made, failed. A dispute: open, lost, won. '
  'A fraud warning: open, and won once it is over.';
comment on column farebox.reversals.dismissed_at is
  'When an operator decided that a fraud warning holds nothing. It never holds again.';
