/** Changes of a schema by hand: of its guarantees and its functions. */

interface Change {
  readonly what: string;
  readonly statement: string;
  readonly subject: string;
  readonly details: readonly RegExp[];
}

export const SCHEMA_CHANGES: readonly Change[] = [
  {
    what: 'the index by which a top-up is credited once',
    statement: 'drop index farebox.movements_top_up_once',
    subject: 'table farebox.movements',
    details: [/^missing: create unique index movements_top_up_once /],
  },
  {
    what: 'the constraint that keeps a balance from going below zero',
    statement: 'alter table farebox.consumers drop constraint consumers_not_overspent',
    subject: 'table farebox.consumers',
    details: [/^missing: constraint consumers_not_overspent /],
  },
  {
    what: 'the index by which a key is found',
    statement: 'drop index farebox.charges_idempotency',
    subject: 'table farebox.charges',
    details: [/^missing: create index charges_idempotency /],
  },
  {
    what: 'a primary key',
    statement: 'alter table farebox.earnings drop constraint earnings_pkey',
    subject: 'table farebox.earnings',
    details: [/^missing: constraint earnings_pkey /],
  },
  {
    what: 'a constraint that holds for new rows alone',
    statement: `alter table farebox.lots drop constraint lots_not_negative,
      add constraint lots_not_negative check (from_micros >= 0 and to_micros >= from_micros) not valid`,
    subject: 'table farebox.lots',
    details: [
      /^missing: constraint lots_not_negative .*\)$/,
      /^not in this release: constraint lots_not_negative .* not valid$/,
    ],
  },
  {
    what: 'a column that lost its not-null constraint',
    statement: 'alter table farebox.top_ups alter column account_id drop not null',
    subject: 'table farebox.top_ups',
    details: [/^missing: account_id uuid not null$/, /^not in this release: account_id uuid$/],
  },
  {
    what: 'the trigger that writes deliveries',
    statement: 'drop trigger events_posted on farebox.events',
    subject: 'table farebox.events',
    details: [/^missing: create trigger events_posted /],
  },
  {
    what: 'a trigger that is switched off',
    statement: 'alter table farebox.agents disable trigger agents_deleted',
    subject: 'table farebox.agents',
    details: [
      /^missing: .*agents_deleted.*;$/,
      /^not in this release: .*agents_deleted.*not enabled/,
    ],
  },
  {
    what: 'a foreign trigger',
    statement: `create trigger api_keys_other before update on farebox.api_keys
      for each row execute function suppress_redundant_updates_trigger()`,
    subject: 'table farebox.api_keys',
    details: [/^not in this release: create trigger api_keys_other /],
  },
  {
    what: 'a rule that throws rows away',
    statement: 'create rule lose as on insert to farebox.reversals do instead nothing',
    subject: 'table farebox.reversals',
    details: [/^not in this release: create rule lose /],
  },
  {
    what: 'row security, which hides rows',
    statement: 'alter table farebox.accounts enable row level security',
    subject: 'table farebox.accounts',
    details: [/^not in this release: enable row level security/],
  },
  {
    what: 'a foreign table',
    statement: 'create table farebox.notes (note text)',
    subject: 'table farebox.notes',
    details: [/^not in this release$/],
  },
  {
    what: 'a function that is gone',
    statement: 'drop function farebox.find_agent_candidates',
    subject: 'function farebox.find_agent_candidates',
    details: [/^missing$/],
  },
  {
    what: 'a function that accepts every charge',
    statement: `create or replace function farebox.accept_if_fits(accepted bigint, amount bigint, available bigint)
      returns bigint language sql immutable parallel safe as $$ select accepted + amount $$`,
    subject: 'function farebox.accept_if_fits',
    details: [/^its body differs from that of this release$/],
  },
  {
    what: 'a function without its planner settings',
    statement: (() => {
      const types =
        'smallint[], uuid[], uuid[], int[], text[], bigint[], smallint[], bigint[], bigint[], text[]';
      return `alter function farebox.post_charges_2(${types}, smallint, uuid, uuid) reset all`;
    })(),
    subject: 'function farebox.post_charges_2',
    details: [
      /^missing: set plan_cache_mode=force_generic_plan$/,
      /^missing: set enable_seqscan=off$/,
      /^missing: set enable_bitmapscan=off/,
      /^not in this release: language plpgsql volatile;$/,
      /^missing: language plpgsql volatile$/,
    ],
  },
];
