-- Thresholds: balances that an account wants to be told of when a charge leaves less. consumers.notice_below_micros has the
-- highest that is armed, so a charge needs one comparison for all of them, and notes a crossing in its own commit
-- (functions/note_crossings.sql).
-- Locks: ACCESS EXCLUSIVE on the consumers, for the catalogue alone; SHARE ROW EXCLUSIVE on movements and webhook endpoints,
-- which get triggers. The previous release runs beside it, and its charges make events too. It writes
-- auto_top_up_below_micros, so the threshold of automatic top-ups stays there.

alter table farebox.consumers add column notice_below_micros bigint;
comment on column farebox.consumers.notice_below_micros is
  'The highest of its thresholds that is armed (functions/set_notice.sql). Null: none is.';

create table farebox.thresholds (
  ledger smallint not null,
  consumer_id uuid not null,
  purpose text not null,
  below_micros bigint not null,
  crossed_at timestamptz,
  constraint thresholds_pkey primary key (ledger, consumer_id, purpose),
  constraint thresholds_purpose_known check (purpose in ('low_balance', 'exhausted')),
  constraint thresholds_below_positive check (below_micros > 0),
  constraint thresholds_exhausted_means_nothing_left check (purpose <> 'exhausted' or below_micros = 1)
);
comment on table farebox.thresholds is 'Changed only under the consumer''s lock.';
comment on column farebox.thresholds.purpose is
  'low_balance: set by the owner. exhausted: of every account that has had a webhook endpoint; a refused charge crosses it '
  'too, at any balance.';
comment on column farebox.thresholds.crossed_at is
  'Null: armed. Otherwise it was crossed, or already was when it was set, and waits for a credit (functions/arm_thresholds.sql).';

with listening as (
  insert into farebox.thresholds (ledger, consumer_id, purpose, below_micros, crossed_at)
  select c.ledger, c.id, 'exhausted', 1,
    case when c.credited_micros - c.spent_micros - c.held_micros < 1 then now() end
  from farebox.accounts a join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
  where exists (select from farebox.webhook_endpoints e where e.account_id = a.id)
  returning ledger, consumer_id, crossed_at
)
update farebox.consumers c set notice_below_micros = 1
from listening l where c.ledger = l.ledger and c.id = l.consumer_id and l.crossed_at is null;
