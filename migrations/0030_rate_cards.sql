-- Prices by the unit, finer than a micro-dollar. A charge says how many units a call used; its origin has the version of the card.
-- Locks: farebox.tools and farebox.holds, access exclusive, for as long as it takes to add a column that no row has to be written for.
create table farebox.rate_cards (
  tool_id uuid not null,
  version smallint not null,
  units text[] not null,
  unit_picos bigint[] not null,
  created_at timestamptz not null default now(),
  constraint rate_cards_pkey primary key (tool_id, version),
  constraint rate_cards_tool foreign key (tool_id) references farebox.tools (id),
  constraint rate_cards_version_positive check (version > 0),
  constraint rate_cards_units_priced check (
    cardinality(units) > 0 and cardinality(units) = cardinality(unit_picos) and 0 <= all (unit_picos))
);
comment on table farebox.rate_cards is
  'The rate cards that tools have or had. Append-only (functions/refuse_change.sql), because charges and receipts name them.';
comment on column farebox.rate_cards.version is 'From 1, among the cards of the tool.';
comment on column farebox.rate_cards.unit_picos is 'The price of each unit, in the order of units: millionths of a micro-dollar.';

alter table farebox.tools add column card smallint;
comment on column farebox.tools.card is 'The version of its current card. Null: none.';
alter table farebox.tools add constraint tools_card foreign key (id, card) references farebox.rate_cards (tool_id, version);

alter table farebox.holds add column card smallint not null default 0;
comment on column farebox.holds.card is
  'The version of the rate card that priced it, which also prices its captures. 0: it was placed by an amount.';
