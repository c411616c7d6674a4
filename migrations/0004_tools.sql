-- Priced operations of a developer. A name that was charged before anyone registered it has a row too,
-- with `registered_at` null, so that a registration is no hurdle before the first charge.
create table farebox.tools (
  id uuid primary key,
  developer_id uuid not null,
  name text not null,
  description text not null default '',
  price_micros bigint,
  created_at timestamptz not null default now(),
  registered_at timestamptz,
  changed_at timestamptz,
  constraint tools_name_unique unique (developer_id, name),
  constraint tools_name_length check (char_length(name) between 1 and 100),
  constraint tools_price_positive check (price_micros > 0)
);
create index tools_changed on farebox.tools (changed_at) where changed_at is not null;
comment on column farebox.tools.changed_at is
  'Null until something changes after the first insert; processes re-read recent changes, as for keys.';
