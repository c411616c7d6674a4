-- Charges and their refunds. A charge debits one consumer and credits one developer, and never changes. Charges are
-- made by functions/post_fitting_groups.sql, post_charges.sql, post_entries.sql and settle_lease.sql.

create table farebox.charges (
  amount_micros bigint not null,
  spent_micros bigint not null,
  balance_micros bigint not null,
  idempotency_hash bigint,
  request_fingerprint bigint,
  id uuid not null,
  consumer_id uuid not null,
  developer int not null,
  ledger smallint not null,
  receipt_key smallint not null,
  tool text not null,
  metadata text not null default '',
  -- One byte when empty, which fits into the padding of most rows.
  origin bytea not null default '',
  constraint charges_pkey primary key (ledger, consumer_id, id),
  constraint charges_amount_positive check (amount_micros > 0),
  constraint charges_counters_plausible
    check (balance_micros >= 0 and spent_micros between amount_micros and 9007199254740991)
) partition by range (id);
comment on table farebox.charges is
  'Never changed, and without foreign keys: each would lock a popular developer''s row in every transaction. '
  'Partitioned by month of the id, a UUIDv7. There are more charges than anything else, so the columns are '
  'ordered to need no padding.';
comment on column farebox.charges.spent_micros is
  'The consumer''s spent counter after this charge: it paid for [spent - amount, spent) of the axis.';
comment on column farebox.charges.balance_micros is 'The balance after this charge.';
comment on column farebox.charges.idempotency_hash is
  'The first 64 bits of SHA-256 over consumer, developer and idempotency key.';
comment on column farebox.charges.request_fingerprint is
  'The next 24 bits of that hash, which tell apart the rare keys that share the first 64, then 40 bits of '
  'a hash of the request: the same key with another body is refused.';
comment on column farebox.charges.developer is 'accounts.developer_number.';
comment on column farebox.charges.receipt_key is 'The number of the master secret that signs the receipt.';
comment on column farebox.charges.metadata is 'JSON as it was sent. Empty: none was sent.';
comment on column farebox.charges.origin is
  'Where a charge comes from. Empty: a plain charge. Otherwise four bytes for the number of the spend key, two for '
  'the version of the rate card and sixteen for the hold that was captured, cut off after the last one that is not 0.';
create index charges_idempotency on farebox.charges (idempotency_hash)
  where idempotency_hash is not null;
-- The first eight bytes of the id as a number: the time, and the charge's place in its millisecond. Entries of the
-- developer's number and a UUID would be too wide for PostgreSQL to fill pages from left to right where each developer's
-- entries are appended (_bt_afternewitemoff in nbtsplitloc.c: at most two int8), so its pages would stay half empty.
create index charges_of_developer on farebox.charges (developer, (substr(uuid_send(id), 1, 8)::int8));

-- For charges of months without a partition. src/store/charges/partitions.ts creates partitions ahead of time.
create table farebox.charges_rest partition of farebox.charges default;

-- Rows that fell into a default partition are moved to their months by copying them first, beside traffic, into tables of
-- this schema. Rows that arrive or change meanwhile are copied by a trigger (functions/copy_from_rest.sql), so the switch
-- itself moves nothing (src/store/charges/move-rest.ts).
create schema if not exists farebox_moving;

create table farebox.charge_refunds (
  amount_micros bigint not null,
  refunded_micros bigint not null,
  charge_micros bigint not null,
  spent_micros bigint not null,
  asked_micros bigint,
  id uuid not null,
  consumer_id uuid not null,
  charge_id uuid not null,
  developer int not null,
  ledger smallint not null,
  tool text not null,
  idempotency_key text,
  spend_key int,
  constraint charge_refunds_pkey primary key (ledger, consumer_id, id),
  constraint charge_refunds_in_turn unique (ledger, consumer_id, charge_id, refunded_micros),
  constraint charge_refunds_idempotency_unique
    unique (ledger, consumer_id, charge_id, idempotency_key),
  constraint charge_refunds_amount_positive check (amount_micros > 0),
  constraint charge_refunds_within_charge
    check (refunded_micros between amount_micros and charge_micros)
);
comment on table farebox.charge_refunds is
  'Immutable: the charge stays as it is. Developer and tool are the charge''s; the time of the refund is in '
  '`id`, a UUIDv7.';
comment on column farebox.charge_refunds.refunded_micros is
  'The total refunded of the charge, by this refund and those before it.';
comment on column farebox.charge_refunds.spent_micros is
  'It gives back [spent - amount, spent) of the consumer''s axis: the end of what the charge paid for and no '
  'earlier refund has given back.';
comment on column farebox.charge_refunds.asked_micros is
  'The amount in the request. Null: everything that was left.';
comment on column farebox.charge_refunds.spend_key is
  'The spend key of the refunded charge, which may be archived by now. Null: a key of the account.';
create index charge_refunds_developer on farebox.charge_refunds (developer, id);
