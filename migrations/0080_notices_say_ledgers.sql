-- A notice, an event and its deliveries say the ledger whose change they tell of, in their keys, so they can be written
-- beside it. -1: of a global row, such as a grant, a key of an account or a tool; and of rows of the previous release. The
-- ledger comes last in the keys, since these rows are looked up by their ids.
-- Locks: ACCESS EXCLUSIVE on the three tables while their keys are built: a charge that would write a notice waits. The
-- previous release may run beside it.
alter table farebox.outbox add column ledger smallint not null default -1,
  drop constraint outbox_pkey, add constraint outbox_pkey primary key (id, ledger);
comment on column farebox.outbox.ledger is 'Of the subject. -1: it is a global row.';
alter table farebox.events add column ledger smallint not null default -1,
  drop constraint events_pkey, add constraint events_pkey primary key (id, ledger);
comment on column farebox.events.ledger is
  'Of the change that it tells of, which is not always that of its account. -1: a global row changed.';
alter table farebox.webhook_deliveries add column ledger smallint not null default -1,
  drop constraint webhook_deliveries_pkey,
  add constraint webhook_deliveries_pkey primary key (endpoint_id, event_id, ledger);
comment on column farebox.webhook_deliveries.ledger is 'Of the event.';
