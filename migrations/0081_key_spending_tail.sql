-- What a flush spent by spend keys, in one row. Before, each key of a flush had a row of its own in the tail of earnings, so a
-- flush of many keys wrote as many rows and twice as many entries of indexes. Now its earnings take as few rows as those of plain
-- charges. Charges that are decided one by one and refunds still name their key in the tail of earnings.
-- Locks: none. The previous release may run beside it: it calls the function that it knows, and this release moves what either
-- leaves. But its usage of budgets lacks what this release charged until that is moved, so its doctor may not run meanwhile.

create table farebox.key_spending_tail (
  id bigint generated always as identity,
  ledger smallint not null,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  charge_group int[] not null,
  spend_keys int[] not null,
  developers int[] not null,
  tools text[] not null,
  days date[] not null,
  amounts bigint[] not null,
  constraint key_spending_tail_pkey primary key (id, ledger)
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_threshold = -1);
-- Arrays, as in attribution_tail. Reads of usage look through all rows, which are moved within seconds.
comment on table farebox.key_spending_tail is
  'What each flush with spend keys spent by them. ledgers, consumers: by group, a consumer; a consumer that is null was '
  'not debited. charge_group, spend_keys, developers, tools, days, amounts: by charge. A key of 0 is one of the account, '
  'which does not count here. Days are in UTC, by the ids of the charges.';
comment on column farebox.key_spending_tail.ledger is
  'The ledger of one of the flush''s consumers. It decides where the row is kept and says nothing else.';
