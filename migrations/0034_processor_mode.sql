-- Test keys and live keys see different customers, cards and payments. A process that starts with a key of the other
-- mode would replace every customer and credit play money beside real money, so it is refused.

create table farebox.processor_mode (
  is_only boolean not null default true,
  is_live boolean not null,
  since timestamptz not null default now(),
  constraint processor_mode_pkey primary key (is_only),
  constraint processor_mode_has_one_row check (is_only)
);
comment on table farebox.processor_mode is
  'Whether this database belongs to live keys or to test keys of the processor: the mode of the first start.';
