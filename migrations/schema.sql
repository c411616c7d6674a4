-- The schema that the files of this folder make, for reading: written by `npm run schema`, never edited, and
-- compared with a fresh database by test/migrations/schema.spec.ts. Above a table or a column is its comment in the
-- database. The bodies of functions are in functions/, the reasons for indexes and constraints in the numbered files.

create extension pg_trgm;

create table farebox.accounts (
  id uuid not null,
  email text not null,
  -- Leads the keys of every table on the charge path, so that these can be spread over databases by it.
  ledger smallint not null,
  consumer_id uuid not null,
  developer_id uuid not null,
  -- The developer in four bytes: every charge names it, and so does an index of charges.
  developer_number integer not null generated always as identity,
  -- The most that direct top-ups may take from the saved card in a UTC month. Null: the owner has not consented.
  consent_ceiling_micros bigint,
  processor_customer_id text,
  created_at timestamp with time zone not null default now(),
  -- The page to which people return after they topped up through the link of the developer's refusal. A link may
  -- name another page of the same origin.
  return_url text,
  -- Null: not an operator. An operator may use /v1/operator once two-factor authentication is on.
  operator_since timestamp with time zone,
  -- The account whose test keys this test account has. Null: a live account.
  live_account_id uuid,
  -- Whether consumer keys of the account can be charged. Spend keys always can.
  keys_charge text not null default 'open',
  -- What one developer can charge to consumer keys of the account in one UTC day. Null: no ceiling.
  developer_day_micros bigint,
  -- The saved card that its owner chose. Null, or a card that is no longer saved: the newest one is charged.
  processor_card_id text,
  -- Whether the budget of a single developer (spend_keys.developer) is closed. Keys of the account do not pay that
  -- developer until it is reopened.
  blocks_developers boolean not null default false,
  constraint accounts_pkey primary key (id),
  constraint accounts_consumer_unique unique (consumer_id),
  constraint accounts_developer_number_unique unique (developer_number),
  constraint accounts_developer_unique unique (developer_id),
  constraint accounts_email_unique unique (email),
  constraint accounts_live_account_id_fkey foreign key (live_account_id) references farebox.accounts(id),
  constraint accounts_consent_ceiling_positive check (consent_ceiling_micros > 0),
  constraint accounts_developer_day_not_negative check (developer_day_micros >= 0),
  constraint accounts_email_is_lower_case check (email = lower(email)),
  constraint accounts_keys_charge_known check (keys_charge = any (array['open', 'closed'])),
  constraint accounts_mode_is_in_ledger check ((live_account_id is not null) = (ledger >= 2048)),
  constraint accounts_return_url_short check (length(return_url) <= 2000),
  constraint accounts_test_has_no_address check ( case when live_account_id is null then email !~~ 'test:%' else email = ('test:' || live_account_id) end),
  constraint accounts_test_moves_no_money check (live_account_id is null or num_nonnulls(consent_ceiling_micros, processor_customer_id, operator_since) = 0)
);
create unique index accounts_live_account on farebox.accounts using btree (live_account_id) where (live_account_id is not null);
create constraint trigger accounts_audit_card after update of processor_card_id on farebox.accounts deferrable initially deferred for each row when (old.processor_card_id is distinct from new.processor_card_id) execute function farebox.audit_change('card.chosen', 'id', 'processor_card_id');
create constraint trigger accounts_audit_consent after update of consent_ceiling_micros on farebox.accounts deferrable initially deferred for each row when (old.consent_ceiling_micros is distinct from new.consent_ceiling_micros) execute function farebox.audit_change('consent.changed', 'id', 'consent_ceiling_micros');
create constraint trigger accounts_audit_insert after insert on farebox.accounts deferrable initially deferred for each row execute function farebox.audit_change('account.created', 'id', 'consent_ceiling_micros');
create constraint trigger accounts_audit_keys_charge after update of keys_charge, developer_day_micros on farebox.accounts deferrable initially deferred for each row when (old.keys_charge is distinct from new.keys_charge or old.developer_day_micros is distinct from new.developer_day_micros) execute function farebox.audit_change('account_keys.changed', 'id', 'keys_charge', 'developer_day_micros');
create constraint trigger accounts_audit_operator after update of operator_since on farebox.accounts deferrable initially deferred for each row when (old.operator_since is distinct from new.operator_since) execute function farebox.audit_change('operator.changed', 'id', 'operator_since');

-- What commands adjusted under an idempotency key. Written in the transaction of the adjustment, and kept.
create table farebox.adjustment_keys (
  idempotency_key text collate "C" not null,
  ledger smallint not null,
  consumer_id uuid not null,
  amount_micros bigint not null,
  reason text not null,
  created_at timestamp with time zone not null default now(),
  constraint adjustment_keys_pkey primary key (idempotency_key)
);

-- Every stem that an agent has, and about how many agents have it. Rarity is read here, and words with typing
-- errors are compared with these. Much smaller than `agents`.
create table farebox.agent_words (
  word text collate "C" not null,
  agents integer not null,
  constraint agent_words_pkey primary key (word)
) with (fillfactor=70);
create index agent_words_alike on farebox.agent_words using gin (word farebox.gin_trgm_ops) with (fastupdate=off) where (word !~ '[0-9]');

-- Triggers keep agent_words in step (functions/agents_changed.sql).
create table farebox.agents (
  id text not null,
  -- The account that registered the agent first. No other may change it.
  account_id uuid not null,
  name text not null,
  protocol text not null,
  endpoint text not null,
  description text not null default '',
  capabilities text[] not null default '{}'::text[],
  intents text[] not null default '{}'::text[],
  -- The name as searches compare it: plain words in lower case.
  name_words text not null,
  -- Stems, by weight: A id and name, B intents and capabilities, C protocol, D description.
  search tsvector not null,
  created_at timestamp with time zone not null default now(),
  changed_at timestamp with time zone not null default now(),
  constraint agents_pkey primary key (id),
  constraint agents_account_id_fkey foreign key (account_id) references farebox.accounts(id)
);
create index agents_account on farebox.agents using btree (account_id, id);
create index agents_search on farebox.agents using gin (search) with (fastupdate=off);
create index agents_search_names on farebox.agents using gin (ts_filter(search, '{a}'::"char"[])) with (fastupdate=off);
create trigger agents_deleted after delete on farebox.agents referencing old table as old_agents for each statement execute function farebox.agents_changed();
create trigger agents_inserted after insert on farebox.agents referencing new table as new_agents for each statement execute function farebox.agents_changed();
create trigger agents_updated after update on farebox.agents referencing old table as old_agents new table as new_agents for each statement execute function farebox.agents_changed();

-- Keys are stored as SHA-256 only.
create table farebox.api_keys (
  id uuid not null,
  hash bytea not null,
  kind text not null,
  account_id uuid not null,
  last_four text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  -- Null until something about the key changes. Processes read recent changes several times a second, so a revoked
  -- key stops working everywhere within a second without a look-up on every charge.
  changed_at timestamp with time zone,
  last_used_at timestamp with time zone,
  -- The name that its owner gave it, to tell keys apart.
  name text,
  -- Of the account and its idempotency key. The key is derived from the idempotency key, so that a retry can show
  -- it again.
  idempotency_hash bytea,
  request_hash bytea,
  constraint api_keys_pkey primary key (id),
  constraint api_keys_hash_unique unique (hash),
  constraint api_keys_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint api_keys_hash_is_sha256 check (octet_length(hash) = 32),
  constraint api_keys_kind_known check (kind = any (array['consumer', 'developer', 'legacy'])),
  constraint api_keys_name_short check (length(name) <= 100)
) with (fillfactor=90);
create index api_keys_account on farebox.api_keys using btree (account_id);
create index api_keys_changed on farebox.api_keys using btree (changed_at) where (changed_at is not null);
create unique index api_keys_idempotency on farebox.api_keys using btree (idempotency_hash) where (idempotency_hash is not null);
create constraint trigger api_keys_audit_expiry after update of expires_at on farebox.api_keys deferrable initially deferred for each row when (old.expires_at is distinct from new.expires_at) execute function farebox.audit_change('key.expiry_set', 'account_id', 'kind', 'last_four', 'expires_at');
create constraint trigger api_keys_audit_insert after insert on farebox.api_keys deferrable initially deferred for each row execute function farebox.audit_change('key.created', 'account_id', 'kind', 'last_four');
create constraint trigger api_keys_audit_revoke after update of revoked_at on farebox.api_keys deferrable initially deferred for each row when (old.revoked_at is distinct from new.revoked_at) execute function farebox.audit_change('key.revoked', 'account_id', 'kind', 'last_four', 'revoked_at');
create trigger api_keys_event_insert after insert on farebox.api_keys for each row execute function farebox.post_key_event();
create trigger api_keys_event_update after update of expires_at, revoked_at on farebox.api_keys for each row when (old.expires_at is distinct from new.expires_at or old.revoked_at is distinct from new.revoked_at) execute function farebox.post_key_event();

create table farebox.approvals (
  id uuid not null,
  account_id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  -- The number of the key that was to pay. 0: a key of the account.
  spend_key integer not null,
  developer integer not null,
  developer_id uuid not null,
  tool text not null,
  amount_micros bigint not null,
  code text not null,
  -- The number of the node that refused. Null: the balance did.
  budget integer,
  scope text,
  -- The limit that refused, as it was then.
  limit_micros bigint,
  -- The holder of the key that was to pay, or the developer that it called.
  asked_by text not null,
  -- Written by who asked. Never shown without escaping, and in no mail.
  reason text not null default '',
  status text not null default 'pending',
  -- resolved: what refused was changed by other means, such as a new window or a change of the budget.
  decision text,
  -- The limit that the decision set.
  raised_to_micros bigint,
  -- No later decision and no change of the budget has replaced that limit.
  is_raise_in_force boolean not null default false,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  -- When its workflow first read it, or was last started again because the owner was not mailed.
  begun_at timestamp with time zone,
  mailed_at timestamp with time zone,
  decided_at timestamp with time zone,
  -- The charge or hold that a decision of `once` allowed.
  used_by uuid,
  constraint approvals_pkey primary key (ledger, consumer_id, id),
  constraint approvals_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint approvals_amount_positive check (amount_micros > 0),
  constraint approvals_asked_by_known check (asked_by = any (array['payer', 'developer'])),
  constraint approvals_code_known check (code = any (array['approval_required', 'spend_limit_reached', 'insufficient_balance'])),
  constraint approvals_decided_whole check ((status = 'pending') = (decided_at is null) and (status = any (array['pending', 'expired'])) = (decision is null) and (status = 'denied') = (coalesce(decision, '') = 'deny')),
  constraint approvals_decision_known check (decision = any (array['once', 'always', 'raise', 'top_up', 'resolved', 'deny'])),
  constraint approvals_names_what_refused check ((budget is null) = (code = 'insufficient_balance') and (scope is null) = (code <> 'spend_limit_reached') and (limit_micros is null) = (scope is null)),
  constraint approvals_only_once_is_used check (used_by is null or decision = 'once'),
  constraint approvals_scope_known check (scope = any (array['total', 'window', 'per_call'])),
  constraint approvals_status_known check (status = any (array['pending', 'approved', 'denied', 'expired'])),
  constraint approvals_within_a_week check (expires_at <= (created_at + '7 days'::interval))
);
create unique index approvals_asked_once on farebox.approvals using btree (ledger, consumer_id, spend_key, developer, tool, amount_micros, code, coalesce(budget, 0), coalesce(scope, '')) where (status = 'pending');
create index approvals_expired on farebox.approvals using btree (id) where (status = 'expired');
create index approvals_id on farebox.approvals using btree (id);
create index approvals_of_account on farebox.approvals using btree (account_id, id);
create index approvals_of_developer on farebox.approvals using btree (developer, id) where (asked_by = 'developer');
create index approvals_pending on farebox.approvals using btree (expires_at) where (status = 'pending');
create index approvals_pending_of_account on farebox.approvals using btree (account_id, id) where (status = 'pending');
create unique index approvals_raises on farebox.approvals using btree (ledger, consumer_id, budget, scope) where is_raise_in_force;
create index approvals_unused on farebox.approvals using btree (ledger, consumer_id, budget, decided_at) where ((decision = 'once') and (used_by is null));
create constraint trigger approvals_audit_decision after update of status on farebox.approvals deferrable initially deferred for each row when (old.status is distinct from new.status and new.status <> 'expired') execute function farebox.audit_change('approval.decided', 'account_id', 'code', 'budget', 'scope', 'amount_micros', 'decision', 'limit_micros', 'raised_to_micros');

-- What each top-up paid to each developer in archived charges, before refunds of charges, and in how many
-- charges.
create table farebox.archived_attribution (
  developer integer not null,
  top_up_id uuid not null,
  micros bigint not null,
  charges bigint not null,
  ledger smallint not null,
  constraint archived_attribution_pkey primary key (developer, top_up_id, ledger)
);

-- The archived charges of a month by consumer, developer and tool, before refunds of charges.
create table farebox.archived_charges (
  amount_micros bigint not null,
  charges bigint not null,
  consumer_id uuid not null,
  month date not null,
  developer integer not null,
  ledger smallint not null,
  tool text not null,
  constraint archived_charges_pkey primary key (ledger, consumer_id, month, developer, tool)
);

-- What each spend key charged in archived charges, before their refunds: doctor compares budgets with it.
create table farebox.archived_key_spending (
  micros bigint not null,
  consumer_id uuid not null,
  spend_key integer not null,
  ledger smallint not null,
  constraint archived_key_spending_pkey primary key (ledger, consumer_id, spend_key)
);

-- All months before the end of the newest one are archived, or had no charges.
create table farebox.archived_months (
  month date not null,
  charges bigint not null,
  amount_micros bigint not null,
  archived_at timestamp with time zone not null default now(),
  constraint archived_months_pkey primary key (month),
  constraint archived_months_begin check (month = date_trunc('month', month::timestamp with time zone))
);

create table farebox.archived_spending (
  ledger smallint not null,
  consumer_id uuid not null,
  -- Which parts of the axis of the consumer's spending the archived charges cover. More than one when charges at
  -- the end of a month lie behind some of the next.
  stretches int8multirange not null,
  constraint archived_spending_pkey primary key (ledger, consumer_id)
);

-- Which stretch of whose money a flush spent on which developer, from which follows which top-up paid. ledgers,
-- consumers, spent_before: by group, a consumer; null in spent_before: it was not debited. charge_group,
-- through, developers, amounts: by charge, which covers [spent_before of its group + through - amount,
-- spent_before + through) of the axis.
create table farebox.attribution_tail (
  id bigint not null generated always as identity,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  spent_before bigint[] not null,
  charge_group integer[] not null,
  through bigint[] not null,
  developers integer[] not null,
  -- Negative: a refund of a charge gave back the stretch that begins at spent_before + through. It is no charge.
  amounts bigint[] not null,
  constraint attribution_tail_pkey primary key (id)
) with (toast_tuple_target=8160, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_insert_threshold=-1);

-- Append-only (functions/refuse_change.sql). No foreign keys: an entry outlives what it is about.
create table farebox.audit_entries (
  -- 1, 2, 3, ... in the order of commits, without gaps.
  number bigint not null,
  -- When the transaction began: entries of one transaction have the same time.
  happened_at timestamp with time zone not null,
  action text not null,
  account_id uuid,
  -- The row that changed; the action says of which table.
  subject_id uuid,
  -- Some columns of that row. `before` has the earlier values of those that changed.
  details jsonb not null,
  -- application_name of the connection: `farebox api`, `farebox key revoke`, `psql`.
  program text not null,
  database_role text not null,
  -- Made from the hash before it and this entry (functions/audit_hash.sql).
  hash bytea not null,
  constraint audit_entries_pkey primary key (number),
  constraint audit_entries_hash_is_sha256 check (octet_length(hash) = 32)
);
create index audit_entries_account on farebox.audit_entries using btree (account_id, number);
create trigger audit_entries_append_only before delete or update or truncate on farebox.audit_entries for each statement execute function farebox.refuse_change();

-- What an owner wants taken from the saved card without being asked. Only the owner adds or removes a row; no
-- row: automatic top-ups are off.
create table farebox.auto_top_ups (
  ledger smallint not null,
  consumer_id uuid not null,
  threshold_micros bigint not null,
  amount_micros bigint not null,
  -- The most that automatic top-ups may take in a UTC month, within the owner's consent for all direct ones.
  ceiling_micros bigint not null,
  -- waiting: asked for and put off, because of `reason`. off: turned itself off, because of `reason`.
  status text not null default 'on',
  reason text,
  -- In a row.
  declines integer not null default 0,
  -- After a decline: when the card may be tried again.
  not_before timestamp with time zone not null default now(),
  -- When automatic top-ups turned themselves off, until a mail server has the mail to the owner about it, or for
  -- three days. Null: no mail is owed.
  mail_owed_at timestamp with time zone,
  -- When the last attempt to send that mail began.
  mail_tried_at timestamp with time zone,
  constraint auto_top_ups_pkey primary key (ledger, consumer_id),
  constraint auto_top_ups_amount_within_ceiling check (amount_micros > 0 and amount_micros <= ceiling_micros),
  constraint auto_top_ups_are_live check (ledger < 2048),
  constraint auto_top_ups_declines_not_negative check (declines >= 0),
  constraint auto_top_ups_reason_named check ((status = 'on') = (reason is null)),
  constraint auto_top_ups_status_known check (status = any (array['on', 'waiting', 'off'])),
  constraint auto_top_ups_threshold_positive check (threshold_micros > 0)
);
create index auto_top_ups_mail_owed on farebox.auto_top_ups using btree (mail_tried_at nulls first) where (mail_owed_at is not null);
create constraint trigger auto_top_ups_audit_delete after delete on farebox.auto_top_ups deferrable initially deferred for each row execute function farebox.audit_change('auto_top_up.removed', 'consumer_id');
create constraint trigger auto_top_ups_audit_insert after insert on farebox.auto_top_ups deferrable initially deferred for each row execute function farebox.audit_change('auto_top_up.set', 'consumer_id', 'threshold_micros', 'amount_micros', 'ceiling_micros');
create constraint trigger auto_top_ups_audit_update after update of threshold_micros, amount_micros, ceiling_micros on farebox.auto_top_ups deferrable initially deferred for each row when (old.threshold_micros is distinct from new.threshold_micros or old.amount_micros is distinct from new.amount_micros or old.ceiling_micros is distinct from new.ceiling_micros) execute function farebox.audit_change('auto_top_up.set', 'consumer_id', 'threshold_micros', 'amount_micros', 'ceiling_micros');

-- What a charge does not change of a node. API processes keep it in memory and check it before the debit.
create table farebox.budget_details (
  id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  number integer not null,
  -- The numbers of the nodes from the root to this one. A node never moves, so neither does what was counted.
  path integer[] not null,
  name text not null,
  max_per_call_micros bigint,
  -- Names, or dev_.../name for the tool of one developer. Null: all.
  tools text[],
  developers uuid[],
  may_delegate boolean not null default false,
  -- JSON as it was sent. Empty: none was sent.
  metadata text not null default '',
  expires_at timestamp with time zone,
  closed_at timestamp with time zone,
  -- As in api_keys: null until something changes.
  changed_at timestamp with time zone,
  -- Whether a developer is refused until the owner has approved it.
  approve_developers boolean not null default false,
  approved_developers uuid[] not null default '{}'::uuid[],
  idempotency_hash bytea,
  request_hash bytea,
  -- Whether its keys may be leased. Off by default: what is leased is spent before it is charged.
  allow_leases boolean not null default false,
  -- The most that one lease may reserve. Null: its limits alone.
  max_lease_micros bigint,
  constraint budget_details_pkey primary key (ledger, consumer_id, number),
  constraint budget_details_id_unique unique (id),
  constraint budget_details_path_ends_here check (path[cardinality(path)] = number and cardinality(path) >= 1 and cardinality(path) <= 6)
);
create index budget_details_changed on farebox.budget_details using btree (changed_at) where (changed_at is not null);
create unique index budget_details_idempotency on farebox.budget_details using btree (ledger, consumer_id, idempotency_hash) where (idempotency_hash is not null);
create constraint trigger budget_details_audit_close after update of closed_at on farebox.budget_details deferrable initially deferred for each row when (new.closed_at is not null and old.closed_at is distinct from new.closed_at) execute function farebox.audit_change('budget.closed', 'consumer_id', 'closed_at');
create constraint trigger budget_details_audit_insert after insert on farebox.budget_details deferrable initially deferred for each row execute function farebox.audit_change('budget.created', 'consumer_id', 'parent_id', 'limit_micros', 'window_unit', 'window_limit_micros', 'max_per_call_micros', 'allow_leases', 'max_lease_micros', 'tools', 'developers', 'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create constraint trigger budget_details_audit_reopen after update of closed_at on farebox.budget_details deferrable initially deferred for each row when (old.closed_at is not null and new.closed_at is null) execute function farebox.audit_change('budget.reopened', 'consumer_id', 'closed_at');
create constraint trigger budget_details_audit_update after update of max_per_call_micros, allow_leases, max_lease_micros, tools, developers, approve_developers, approved_developers, may_delegate, expires_at on farebox.budget_details deferrable initially deferred for each row when (old.max_per_call_micros is distinct from new.max_per_call_micros or old.allow_leases is distinct from new.allow_leases or old.max_lease_micros is distinct from new.max_lease_micros or old.tools is distinct from new.tools or old.developers is distinct from new.developers or old.approve_developers is distinct from new.approve_developers or old.approved_developers is distinct from new.approved_developers or old.may_delegate is distinct from new.may_delegate or old.expires_at is distinct from new.expires_at) execute function farebox.audit_change('budget.changed', 'consumer_id', 'max_per_call_micros', 'allow_leases', 'max_lease_micros', 'tools', 'developers', 'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create trigger budget_details_block_developer after update of closed_at on farebox.budget_details for each row when ((old.closed_at is null) <> (new.closed_at is null)) execute function farebox.block_developer();

-- What the keys of a budget and of all below it spent: the sums of key_spending, by tool and by developer. A
-- charge counts once in each of the two groupings.
create table farebox.budget_spending (
  amount_micros bigint not null,
  charges bigint not null,
  begins_at timestamp with time zone not null,
  consumer_id uuid not null,
  -- The number of the node.
  budget integer not null,
  ledger smallint not null,
  span text not null,
  grouped_by text not null,
  -- The name of a tool, or the number of a developer.
  mark text not null,
  constraint budget_spending_pkey primary key (ledger, consumer_id, budget, grouped_by, span, begins_at, mark),
  constraint budget_spending_grouped_by_known check (grouped_by = any (array['tool', 'developer'])),
  constraint budget_spending_span_known check (span = any (array['day', 'all']))
) with (fillfactor=80);

-- What each node has used. Narrow, and without an index on what changes, so that updates stay in place (HOT).
-- What a charge does not change is in budget_details.
create table farebox.budgets (
  -- Charges by the keys of the node and of all nodes below, less their refunds, and what open holds by these keys
  -- hold.
  used_micros bigint not null default 0,
  -- Null: no limit in all.
  limit_micros bigint,
  -- The use when the limit was set. A limit may be set below it, and then refuses every charge.
  used_at_limit_micros bigint not null default 0,
  window_used_micros bigint not null default 0,
  window_limit_micros bigint,
  window_used_at_limit_micros bigint not null default 0,
  -- consumers.spent_micros when the window began: a charge from there on was counted in it. Clocks cannot tell,
  -- because the id of a charge has the time of a process.
  window_from_micros bigint not null default 0,
  -- When the window began that window_used_micros is of. The next charge of a later window turns it.
  window_began timestamp with time zone not null default '-infinity'::timestamp with time zone,
  consumer_id uuid not null,
  -- Of the node, from 1, in its consumer's tree. A child's is larger than its parent's.
  number integer not null,
  ledger smallint not null,
  -- 0 no window, 1 hour, 2 day, 3 week, 4 month: of the calendar, in UTC.
  window_unit smallint not null default 0,
  is_closed boolean not null default false,
  -- The use of limit_micros that makes the next event. Null: all marks were reached, or there is no limit.
  notice_at bigint,
  -- As notice_at, of the window that began at window_began. The turn of the window arms all marks again.
  window_notice_at bigint,
  constraint budgets_pkey primary key (ledger, consumer_id, number),
  constraint budgets_not_negative check (used_micros >= 0 and window_used_micros >= 0),
  constraint budgets_window_whole check ((window_unit = 0) = (window_limit_micros is null)),
  constraint budgets_within_limits check ((used_micros <= limit_micros or used_micros <= used_at_limit_micros) and (window_used_micros <= window_limit_micros or window_used_micros <= window_used_at_limit_micros))
) with (fillfactor=70);
create trigger budgets_arm_marks before update on farebox.budgets for each row when (new.window_began <> old.window_began or old.limit_micros is distinct from new.limit_micros or old.window_limit_micros is distinct from new.window_limit_micros) execute function farebox.arm_budget_marks();
create trigger budgets_arm_marks_insert before insert on farebox.budgets for each row when (new.limit_micros is not null or new.window_limit_micros is not null) execute function farebox.arm_budget_marks();
create constraint trigger budgets_audit_limits after update of limit_micros, window_unit, window_limit_micros on farebox.budgets deferrable initially deferred for each row when (old.limit_micros is distinct from new.limit_micros or old.window_unit is distinct from new.window_unit or old.window_limit_micros is distinct from new.window_limit_micros) execute function farebox.audit_change('budget.changed', 'consumer_id', 'limit_micros', 'window_unit', 'window_limit_micros');
create constraint trigger budgets_note_marks after update on farebox.budgets deferrable initially deferred for each row when (new.used_micros >= new.notice_at or new.window_used_micros >= new.window_notice_at) execute function farebox.note_budget_marks();

-- Immutable: the charge stays as it is. Developer and tool are the charge's; the time of the refund is in `id`,
-- a UUIDv7.
create table farebox.charge_refunds (
  amount_micros bigint not null,
  -- The total refunded of the charge, by this refund and those before it.
  refunded_micros bigint not null,
  charge_micros bigint not null,
  -- It gives back [spent - amount, spent) of the consumer's axis: the end of what the charge paid for and no
  -- earlier refund has given back.
  spent_micros bigint not null,
  -- The amount in the request. Null: everything that was left.
  asked_micros bigint,
  id uuid not null,
  consumer_id uuid not null,
  charge_id uuid not null,
  developer integer not null,
  ledger smallint not null,
  tool text not null,
  idempotency_key text,
  -- The spend key of the refunded charge, which may be archived by now. Null: a key of the account.
  spend_key integer,
  constraint charge_refunds_pkey primary key (ledger, consumer_id, id),
  constraint charge_refunds_idempotency_unique unique (ledger, consumer_id, charge_id, idempotency_key),
  constraint charge_refunds_in_turn unique (ledger, consumer_id, charge_id, refunded_micros),
  constraint charge_refunds_amount_positive check (amount_micros > 0),
  constraint charge_refunds_within_charge check (refunded_micros >= amount_micros and refunded_micros <= charge_micros)
);
create index charge_refunds_developer on farebox.charge_refunds using btree (developer, id);
create index charge_refunds_tool on farebox.charge_refunds using btree (ledger, consumer_id, tool, id) include (amount_micros);
create trigger charge_refunds_event after insert on farebox.charge_refunds for each row execute function farebox.post_charge_refund_event();

-- Never changed, and without foreign keys: each would lock a popular developer's row in every transaction.
-- Partitioned by month of the id, a UUIDv7. There are more charges than anything else, so the columns are
-- ordered to need no padding.
create table farebox.charges (
  amount_micros bigint not null,
  -- The consumer's spent counter after this charge: it paid for [spent - amount, spent) of the axis.
  spent_micros bigint not null,
  -- The balance after this charge.
  balance_micros bigint not null,
  -- The first 64 bits of SHA-256 over consumer, developer and idempotency key.
  idempotency_hash bigint,
  -- The next 24 bits of that hash, which tell apart the rare keys that share the first 64, then 40 bits of a hash
  -- of the request: the same key with another body is refused.
  request_fingerprint bigint,
  id uuid not null,
  consumer_id uuid not null,
  -- accounts.developer_number.
  developer integer not null,
  ledger smallint not null,
  -- The number of the master secret that signs the receipt.
  receipt_key smallint not null,
  tool text not null,
  -- JSON as it was sent. Empty: none was sent.
  metadata text not null default '',
  -- Where a charge comes from. Empty: a plain charge. Otherwise four bytes for the number of the spend key, two
  -- for the version of the rate card and sixteen for the hold that was captured, cut off after the last one that
  -- is not 0.
  origin bytea not null default '\x'::bytea,
  constraint charges_pkey primary key (ledger, consumer_id, id),
  constraint charges_amount_positive check (amount_micros > 0),
  constraint charges_counters_plausible check (balance_micros >= 0 and spent_micros >= amount_micros and spent_micros <= '9007199254740991'::bigint)
) partition by range (id);
create index charges_idempotency on only farebox.charges using btree (idempotency_hash) where (idempotency_hash is not null);
create index charges_of_developer on only farebox.charges using btree (developer, ((substr(uuid_send(id), 1, 8))::bigint));

create table farebox.charges_rest partition of farebox.charges default;
create trigger charges_rest_copied after insert on farebox.charges_rest for each row execute function farebox.copy_from_rest('charges');

-- Every change of accounts.consent_ceiling_micros, never edited. A null ceiling withdraws the consent.
create table farebox.consents (
  id uuid not null,
  account_id uuid not null,
  ceiling_micros bigint,
  -- owner: in the console, who agreed to these terms. operator: with the farebox command, on the owner's behalf.
  given_by text not null,
  terms_version text,
  terms text,
  created_at timestamp with time zone not null default now(),
  ledger smallint not null,
  constraint consents_pkey primary key (ledger, account_id, id),
  constraint consents_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint consents_ceiling_positive check (ceiling_micros > 0),
  constraint consents_given_by_known check (given_by = any (array['owner', 'operator'])),
  constraint consents_owner_agrees_to_terms check (given_by = 'operator' or ceiling_micros is null or terms_version is not null and terms is not null)
);
create trigger consents_append_only before delete or update or truncate on farebox.consents for each statement execute function farebox.refuse_change();

-- Balance = credited - spent - held. Only the key may be indexed: charges rely on in-place (HOT) updates.
create table farebox.consumers (
  ledger smallint not null,
  id uuid not null,
  credited_micros bigint not null default 0,
  spent_micros bigint not null default 0,
  held_micros bigint not null default 0,
  -- A charge that leaves less, or does not fit and would with an automatic top-up, asks for one and sets this to
  -- null, so that it asks once. Null: switched off, or asked for.
  auto_top_up_below_micros bigint,
  -- The part of everything ever spent that refunds of charges gave back. Each is a credit too, so the balance
  -- already has it.
  refunded_micros bigint not null default 0,
  -- The part of held_micros that open holds reserve. Open disputes and fraud warnings hold the rest.
  reserved_micros bigint not null default 0,
  -- The highest of its thresholds that is armed (functions/set_notice.sql). Null: none is.
  notice_below_micros bigint,
  -- The time of the latest charge by its id, or of another charge in its flush.
  charged_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  -- No charge lies behind one whose id is later by more than this.
  disorder interval not null default '00:00:00'::interval,
  constraint consumers_pkey primary key (ledger, id),
  constraint consumers_counters_not_negative check (credited_micros >= 0 and spent_micros >= 0 and reserved_micros >= 0 and held_micros >= reserved_micros),
  constraint consumers_credited_is_exact check (credited_micros <= '9007199254740991'::bigint),
  constraint consumers_not_overspent check ((credited_micros - spent_micros - held_micros) >= 0)
) with (fillfactor=80);

-- Where the processor and we disagree about a top-up: a row until we agree, for people to look at.
create table farebox.differences (
  -- Has no row in top_ups when the processor has a payment for a top-up that we do not know.
  top_up_id uuid not null,
  kind text not null,
  processor_micros bigint not null,
  ledger_micros bigint not null,
  -- The payments that were compared, so that they are compared again: our row of the top-up may not name them.
  payment_intent_ids text[] not null,
  since timestamp with time zone not null default now(),
  constraint differences_pkey primary key (top_up_id, kind),
  constraint differences_kind_known check (kind = any (array['not_credited', 'not_paid', 'payment_mismatch', 'paid_twice', 'unknown_top_up', 'reversals']))
);

-- A row for each developer, tool and UTC hour that has earnings, for each UTC day, and one for all time. Net of
-- refunds of charges, which count when they are made, so an amount may be negative.
create table farebox.earnings (
  developer integer not null,
  span text not null,
  tool text not null,
  -- The beginning of the hour or the day, in UTC; -infinity for all time.
  begins_at timestamp with time zone not null,
  amount_micros bigint not null,
  charges bigint not null,
  -- Of an hour: bit n is set when a charge was made in its minute n. Of other spans 0.
  charged_minutes bigint not null default 0,
  constraint earnings_pkey primary key (developer, span, tool, begins_at),
  constraint earnings_span_known check (span = any (array['hour', 'day', 'all']))
) with (fillfactor=80);

-- One row for each developer, tool and minute (of the charges' ids, UTC) of a flush. Charges by spend keys that
-- are decided one by one, and refunds, have a row each, which names the key.
create table farebox.earnings_tail (
  -- The ledger of one of the flush's consumers. It decides where the row is kept and says nothing else.
  ledger smallint not null,
  developer integer not null,
  minute timestamp with time zone not null,
  tool text not null,
  amount_micros bigint not null,
  charges integer not null,
  -- Of charges by a spend key. Null: keys of accounts.
  consumer_id uuid,
  spend_key integer
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_insert_threshold=-1);
create index earnings_tail_consumer on farebox.earnings_tail using btree (consumer_id) where (consumer_id is not null);
create index earnings_tail_developer on farebox.earnings_tail using btree (developer);
alter table farebox.earnings_tail replica identity full;

-- Append-only, deleted after LOG_RETENTION_DAYS. No foreign key: a charge that writes an event locks no account.
create table farebox.events (
  id uuid not null default uuidv7(),
  -- Whom it is for.
  account_id uuid not null,
  -- As in src/domain/events.ts. Not checked: the types of a newer release run beside this one.
  type text not null,
  -- The payload's `data`, as it is sent: ids with prefixes, amounts in dollars.
  data json not null,
  created_at timestamp with time zone not null default now(),
  -- Of the change that it tells of, which is not always that of its account. -1: a global row changed.
  ledger smallint not null default '-1'::integer,
  constraint events_pkey primary key (id, ledger)
);
create trigger events_posted after insert on farebox.events referencing new table as posted for each statement execute function farebox.post_deliveries();

create table farebox.examinations (
  part text not null,
  ended_at timestamp with time zone not null,
  -- Its first findings: [{"check": ..., "subject": ..., "detail": ..., "offenders": ...}]. Empty: all checks
  -- passed.
  findings jsonb not null,
  constraint examinations_pkey primary key (part)
);

-- Every version of a file of migrations/functions that was applied. The last of a name is in force; an earlier
-- release finds its own version here and knows that it was replaced.
create table farebox.functions (
  id bigint not null generated always as identity,
  name text not null,
  -- SHA-256 of the file, in hex.
  hash text not null,
  applied_at timestamp with time zone not null default now(),
  constraint functions_pkey primary key (id),
  constraint functions_applied_once unique (name, hash)
);

create table farebox.grants (
  id uuid not null,
  -- The account that made the grant. No other may revoke it.
  account_id uuid not null,
  -- Free text. If it names an agent that was registered before the grant, its account may use the grant too.
  caller_id text not null,
  target_agent_id text not null,
  type text not null,
  -- An active grant past `expires_at` counts as expired before a workflow writes so.
  status text not null default 'active',
  uses integer not null default 0,
  -- 1 for a one_time grant, null for a session.
  max_uses integer,
  idempotency_key text,
  -- SHA-256 of the request: the same idempotency key with another body is refused.
  request_hash bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint grants_pkey primary key (id),
  constraint grants_idempotency_unique unique (account_id, idempotency_key),
  constraint grants_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint grants_target_agent_id_fkey foreign key (target_agent_id) references farebox.agents(id),
  constraint grants_ended check ((status = 'active') = (ended_at is null)),
  constraint grants_limit_named check ((type = 'session') = (max_uses is null)),
  constraint grants_not_overused check (uses >= 0 and uses <= max_uses),
  constraint grants_status_known check (status = any (array['active', 'used', 'revoked', 'expired'])),
  constraint grants_type_known check (type = any (array['one_time', 'session', 'limited']))
);
create index grants_active on farebox.grants using btree (expires_at) where (status = 'active');
create index grants_active_of_account on farebox.grants using btree (account_id) where (status = 'active');

-- Holds to look at when they are due: those of a flush that expire together, and each that was extended, again.
-- functions/expire_holds.sql deletes the row, whatever became of the holds.
create table farebox.hold_expiries (
  id bigint not null generated always as identity,
  due_at timestamp with time zone not null,
  developers integer[] not null,
  holds uuid[] not null,
  -- Of all of its holds.
  ledger smallint not null,
  constraint hold_expiries_pkey primary key (ledger, id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);
create index hold_expiries_due on farebox.hold_expiries using btree (due_at);

-- The idempotency keys that extended a hold, so that a repeated request does not extend it again.
create table farebox.hold_extensions (
  hold_id uuid not null,
  idempotency_hash bigint not null,
  request_fingerprint bigint not null,
  made_at timestamp with time zone not null default now(),
  -- Of the hold.
  ledger smallint not null,
  constraint hold_extensions_pkey primary key (hold_id, idempotency_hash, ledger)
);

-- Partitioned by month of the id, a UUIDv7, as charges are. Updates touch no indexed column, so they stay in
-- place (HOT).
create table farebox.holds (
  -- The amount that the request reserved.
  amount_micros bigint not null,
  -- The amount that is still reserved. 0 once the hold is closed.
  held_micros bigint not null,
  -- The sum of its charges: more than amount_micros when a capture was allowed to overflow.
  captured_micros bigint not null default 0,
  -- The balance after the hold was placed.
  balance_micros bigint not null,
  -- As in charges. The idempotency keys of holds are a space of their own.
  idempotency_hash bigint,
  request_fingerprint bigint,
  -- By the clock of PostgreSQL, under the lock of the consumer's row, so that it is before or after the turn of a
  -- budget's window, as the hold itself was.
  placed_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  id uuid not null,
  consumer_id uuid not null,
  -- accounts.developer_number.
  developer integer not null,
  -- The number of its charges.
  captures integer not null default 0,
  ledger smallint not null,
  -- 0 open, 1 captured, 2 released, 3 expired.
  state smallint not null default 0,
  -- Empty for a lease, whose charges each have a tool of their own.
  tool text not null,
  -- JSON as it was sent. Empty: none was sent.
  metadata text not null default '',
  -- The number of the spend key that reserved it. 0: a key of the account.
  spend_key integer not null default 0,
  -- The capture that took more than was held. Budgets counted that excess when the capture was made, the rest when
  -- the hold was placed.
  overflow_charge uuid,
  -- The version of the rate card that priced it, which also prices its captures. 0: it was placed by an amount.
  card smallint not null default 0,
  constraint holds_pkey primary key (ledger, consumer_id, id),
  constraint holds_amounts_not_negative check (amount_micros > 0 and captured_micros >= 0),
  constraint holds_hold_while_open check ( case state when 0 then held_micros > 0 and held_micros = (amount_micros - captured_micros) else held_micros = 0 end)
) partition by range (id);
create index holds_developer on only farebox.holds using btree (developer, id);
create index holds_idempotency on only farebox.holds using btree (idempotency_hash) where (idempotency_hash is not null);

create table farebox.holds_rest partition of farebox.holds default;
create trigger holds_rest_copied after insert or update on farebox.holds_rest for each row execute function farebox.copy_from_rest('holds');

create table farebox.invocations (
  id uuid not null,
  account_id uuid not null,
  grant_id uuid not null,
  target_agent_id text not null,
  capability text not null,
  -- `json`, not `jsonb`: stored exactly as it was sent, because the receipt has its hash. So is `result`. Null:
  -- both were archived, after it ended.
  payload json,
  status text not null default 'pending',
  attempts integer not null default 0,
  result json,
  -- Why it failed. While it runs: why the last attempt failed.
  error_code text,
  error_message text,
  idempotency_key text,
  request_hash bytea not null,
  result_hash bytea,
  -- The number of the master secret that signs the receipt.
  receipt_key smallint not null,
  created_at timestamp with time zone not null default now(),
  -- When its workflow last did something here, or a relay last made sure that it exists. The workflow is gone when
  -- an operator terminated it or Temporal was restored from an earlier day.
  heard_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  constraint invocations_pkey primary key (id),
  constraint invocations_idempotency_unique unique (account_id, idempotency_key),
  constraint invocations_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint invocations_grant_id_fkey foreign key (grant_id) references farebox.grants(id),
  constraint invocations_target_agent_id_fkey foreign key (target_agent_id) references farebox.agents(id),
  constraint invocations_contents check ((status = 'succeeded') = (result_hash is not null) and case when payload is null then result is null and ended_at is not null else (status = 'succeeded') = (result is not null) end),
  constraint invocations_ended check ((status = any (array['succeeded', 'failed'])) = (ended_at is not null)),
  constraint invocations_failure_named check (status <> 'failed' or error_code is not null),
  constraint invocations_status_known check (status = any (array['pending', 'running', 'succeeded', 'failed']))
);
create index invocations_going_on on farebox.invocations using btree (heard_at) where (status = any (array['pending', 'running']));
create index invocations_grant on farebox.invocations using btree (grant_id);
create index invocations_open_of_account on farebox.invocations using btree (account_id) where (status = any (array['pending', 'running']));

-- Kept for 30 days. Once an account has a thousand rows in an hour, only these are counted up.
create table farebox.key_refusals (
  ledger smallint not null,
  consumer_id uuid not null,
  hour timestamp with time zone not null,
  -- The number of the key, which may have ended. What names no spend key has no row.
  spend_key integer not null,
  code text not null,
  count bigint not null,
  last_at timestamp with time zone not null,
  constraint key_refusals_pkey primary key (ledger, consumer_id, hour, spend_key, code),
  constraint key_refusals_count_positive check (count > 0)
);
create index key_refusals_hour on farebox.key_refusals using btree (hour);

-- A row for each spend key, developer, tool and UTC day with charges or refunds, and one for all time. Net of
-- refunds, which count when they are made, so an amount may be negative.
create table farebox.key_spending (
  amount_micros bigint not null,
  charges bigint not null,
  -- The beginning of the day, in UTC; -infinity for all time.
  begins_at timestamp with time zone not null,
  consumer_id uuid not null,
  spend_key integer not null,
  developer integer not null,
  ledger smallint not null,
  span text not null,
  tool text not null,
  constraint key_spending_pkey primary key (ledger, consumer_id, spend_key, span, begins_at, developer, tool),
  constraint key_spending_span_known check (span = any (array['day', 'all']))
) with (fillfactor=80);
create trigger key_spending_added after insert on farebox.key_spending referencing new table as added for each statement execute function farebox.add_to_budget_spending();
create trigger key_spending_changed after update on farebox.key_spending referencing old table as removed new table as added for each statement execute function farebox.add_to_budget_spending();
create trigger key_spending_removed after delete on farebox.key_spending referencing old table as removed for each statement execute function farebox.add_to_budget_spending();

-- What each flush with spend keys spent by them. ledgers, consumers: by group, a consumer; a consumer that is
-- null was not debited. charge_group, spend_keys, developers, tools, days, amounts: by charge. A key of 0 is one
-- of the account, which does not count here. Days are in UTC, by the ids of the charges.
create table farebox.key_spending_tail (
  id bigint not null generated always as identity,
  -- The ledger of one of the flush's consumers. It decides where the row is kept and says nothing else.
  ledger smallint not null,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  charge_group integer[] not null,
  spend_keys integer[] not null,
  developers integer[] not null,
  tools text[] not null,
  days date[] not null,
  amounts bigint[] not null,
  constraint key_spending_tail_pkey primary key (id, ledger)
) with (toast_tuple_target=8160, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_insert_threshold=-1);

create table farebox.leases (
  -- The id of its hold.
  id uuid not null,
  consumer_id uuid not null,
  -- What its release or expiry gave back to the balance.
  released_micros bigint not null default 0,
  -- accounts.developer_number.
  developer integer not null,
  -- Rises with each renewal. A request that names an older one is refused.
  fence integer not null default 1,
  ledger smallint not null,
  tools text[] not null,
  -- By tool: the price that the developer named. Null: the registered one.
  asked_prices bigint[] not null,
  -- By tool, in micros: since the last renewal.
  prices bigint[] not null,
  -- By tool, since the lease was placed. A call that was decided before a renewal may be settled after it.
  highest_prices bigint[] not null,
  constraint leases_pkey primary key (ledger, consumer_id, id),
  constraint leases_id_unique unique (id),
  constraint leases_prices_whole check (cardinality(tools) >= 1 and cardinality(tools) <= 100 and cardinality(asked_prices) = cardinality(tools) and cardinality(prices) = cardinality(tools) and cardinality(highest_prices) = cardinality(tools))
);
create index leases_developer on farebox.leases using btree (developer, id);

-- A credit of $10.00 after $25.00 of credits is the lot [25, 35): it pays what the consumer spends from the 25th
-- dollar to the 35th.
create table farebox.lots (
  ledger smallint not null,
  consumer_id uuid not null,
  movement_id uuid not null,
  from_micros bigint not null,
  to_micros bigint not null,
  top_up_id uuid,
  constraint lots_pkey primary key (ledger, consumer_id, movement_id),
  constraint lots_not_negative check (from_micros >= 0 and to_micros >= from_micros)
);
create index lots_position on farebox.lots using btree (ledger, consumer_id, from_micros);

-- Which secret has which number in MASTER_SECRET. A secret that was removed keeps its row, so that no other
-- takes its number.
create table farebox.master_secrets (
  number smallint not null,
  -- Derived from the secret, which cannot be derived from it.
  fingerprint bytea not null,
  since timestamp with time zone not null default now(),
  constraint master_secrets_pkey primary key (number),
  constraint master_secrets_fingerprint_is_sha256 check (octet_length(fingerprint) = 32)
);

-- The numbered files of migrations/ that were applied.
create table farebox.migrations (
  name text not null,
  -- SHA-256 of the file without comments and white space, in hex.
  hash text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migrations_pkey primary key (name)
);

-- What moved the credits of a consumer in each UTC month, by kind. Changed in the transaction of the movement,
-- under the lock of the consumer's row.
create table farebox.movement_sums (
  amount_micros bigint not null,
  movements bigint not null,
  consumer_id uuid not null,
  month date not null,
  ledger smallint not null,
  kind text not null,
  constraint movement_sums_pkey primary key (ledger, consumer_id, month, kind)
) with (fillfactor=80);

-- Every change of consumers.credited_micros: one signed, immutable row each. Charges change spent_micros
-- instead.
create table farebox.movements (
  ledger smallint not null,
  consumer_id uuid not null,
  id uuid not null,
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid,
  reversal_id uuid,
  reason text,
  created_at timestamp with time zone not null default now(),
  -- Refunds and disputes: the tax that went back to the payer with this movement, with the sign of the amount. It
  -- is beside the amount. The tax that a top-up paid is top_ups.tax_micros.
  tax_micros bigint not null default 0,
  constraint movements_pkey primary key (ledger, consumer_id, id),
  constraint movements_reversal_of_consumer_fkey foreign key (ledger, consumer_id, reversal_id) references farebox.reversals(ledger, consumer_id, id),
  constraint movements_kind_known check (kind = any (array['top_up', 'adjustment', 'refund', 'refund_returned', 'dispute', 'dispute_returned', 'charge_refund'])),
  constraint movements_not_nothing check (amount_micros <> 0),
  constraint movements_reversal_named check ((kind = any (array['top_up', 'adjustment', 'charge_refund'])) = (reversal_id is null)),
  constraint movements_top_up_named check ((kind = any (array['adjustment', 'charge_refund'])) = (top_up_id is null))
);
create index movements_made on farebox.movements using btree (ledger, consumer_id, created_at);
create index movements_of_reversal on farebox.movements using btree (ledger, consumer_id, reversal_id, kind, id) where (reversal_id is not null);
create unique index movements_top_up_once on farebox.movements using btree (ledger, top_up_id) where (kind = 'top_up');
create trigger movements_added after insert on farebox.movements referencing new table as added for each statement execute function farebox.add_to_movement_sums();
create constraint trigger movements_arm_thresholds after insert on farebox.movements deferrable initially deferred for each row when (new.amount_micros > 0) execute function farebox.arm_thresholds();
create constraint trigger movements_audit_adjustment after insert on farebox.movements deferrable initially deferred for each row when (new.kind = 'adjustment') execute function farebox.audit_change('balance.adjusted', 'consumer_id', 'amount_micros', 'reason');
create trigger movements_changed after update on farebox.movements referencing old table as removed new table as added for each statement execute function farebox.add_to_movement_sums();
create trigger movements_removed after delete on farebox.movements referencing old table as removed for each statement execute function farebox.add_to_movement_sums();
create trigger movements_set_returned_tax before insert on farebox.movements for each row when (new.reversal_id is not null) execute function farebox.set_returned_tax();

-- Who changed whose balance in the console, and why. Written in the transaction of the change.
create table farebox.operator_actions (
  id uuid not null,
  operator_account_id uuid not null,
  account_id uuid not null,
  kind text not null,
  amount_micros bigint not null,
  -- The refunded top-up, which `farebox doctor` looks up.
  top_up_id uuid,
  reason text not null,
  idempotency_key text not null,
  created_at timestamp with time zone not null default now(),
  constraint operator_actions_pkey primary key (id),
  constraint operator_actions_once unique (operator_account_id, idempotency_key),
  constraint operator_actions_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint operator_actions_operator_account_id_fkey foreign key (operator_account_id) references farebox.accounts(id),
  constraint operator_actions_kind_known check (kind = any (array['adjustment', 'refund'])),
  constraint operator_actions_refund_names_top_up check ((kind = 'refund') = (top_up_id is not null))
);
create index operator_actions_account on farebox.operator_actions using btree (account_id, id);
create constraint trigger operator_actions_audit_insert after insert on farebox.operator_actions deferrable initially deferred for each row execute function farebox.audit_change('operator.acted', 'account_id', 'operator_account_id', 'kind', 'amount_micros', 'top_up_id', 'reason');

-- Each row: the row of this subject is new or has changed, so its workflow must exist and look at it. Relays
-- take rows whose time has come.
create table farebox.outbox (
  id bigint not null generated always as identity,
  topic text not null,
  subject_id uuid not null,
  created_at timestamp with time zone not null default now(),
  attempts integer not null default 0,
  next_attempt_at timestamp with time zone not null default now(),
  -- Of the subject. -1: it is a global row.
  ledger smallint not null default '-1'::integer,
  -- auto_top_up: whether it was written for a refused charge that the amount would cover, until it is postponed.
  -- Null: another topic.
  is_refused boolean,
  constraint outbox_pkey primary key (id, ledger),
  constraint outbox_topic_known check (topic = any (array['grant', 'invocation', 'auto_top_up', 'top_up', 'payment_reported', 'reversal_reported', 'webhook_endpoint', 'approval']))
);
create index outbox_subject on farebox.outbox using btree (subject_id);
create index outbox_waiting on farebox.outbox using btree (next_attempt_at);

-- The log of webhooks, each stored before it is acknowledged, with a notice in the outbox for its top-up. An
-- event is a nudge, never the truth, so only what is needed to find the top-up is stored.
create table farebox.processor_events (
  id text not null,
  type text not null,
  object_id text,
  top_up_id uuid,
  received_at timestamp with time zone not null default now(),
  constraint processor_events_pkey primary key (id)
);
create index processor_events_received on farebox.processor_events using btree (received_at);

-- Whether this database belongs to live keys or to test keys of the processor: the mode of the first start.
create table farebox.processor_mode (
  is_only boolean not null default true,
  is_live boolean not null,
  since timestamp with time zone not null default now(),
  constraint processor_mode_pkey primary key (is_only),
  constraint processor_mode_has_one_row check (is_only)
);

-- The rate cards that tools have or had. Append-only (functions/refuse_change.sql), because charges and receipts
-- name them.
create table farebox.rate_cards (
  tool_id uuid not null,
  -- From 1, among the cards of the tool.
  version smallint not null,
  units text[] not null,
  -- The price of each unit, in the order of units: millionths of a micro-dollar.
  unit_picos bigint[] not null,
  created_at timestamp with time zone not null default now(),
  constraint rate_cards_pkey primary key (tool_id, version),
  constraint rate_cards_tool foreign key (tool_id) references farebox.tools(id),
  constraint rate_cards_units_priced check (cardinality(units) > 0 and cardinality(units) = cardinality(unit_picos) and (0 <= all (unit_picos))),
  constraint rate_cards_version_positive check (version > 0)
);
create trigger rate_cards_append_only before delete or update or truncate on farebox.rate_cards for each statement execute function farebox.refuse_change();

-- How far the processor's books have been compared with ours. A schedule goes on from there.
create table farebox.reconciliation (
  is_only boolean not null default true,
  -- Everything that the processor booked before this was compared. Moves only at the end of a walk.
  walked_until timestamp with time zone not null,
  constraint reconciliation_pkey primary key (is_only),
  constraint reconciliation_has_one_row check (is_only)
);

-- What commands refunded under an idempotency key. Written in the transaction of the refund, and kept.
create table farebox.refund_keys (
  idempotency_key text collate "C" not null,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null,
  reversal_id uuid not null,
  amount_micros bigint not null,
  created_at timestamp with time zone not null default now(),
  constraint refund_keys_pkey primary key (idempotency_key)
);

-- Kept for 30 days. An API process adds at most a hundred rows for a developer and an hour.
create table farebox.refusals (
  developer_id uuid not null,
  hour timestamp with time zone not null,
  code text not null,
  -- Empty: the refusal concerns no registered tool.
  tool text not null,
  count bigint not null,
  last_at timestamp with time zone not null,
  -- Of the last ones, the newest first.
  request_ids text[] not null,
  constraint refusals_pkey primary key (developer_id, hour, code, tool),
  constraint refusals_count_positive check (count > 0),
  constraint refusals_few_request_ids check (cardinality(request_ids) >= 1 and cardinality(request_ids) <= 5)
);
create index refusals_hour on farebox.refusals using btree (hour);

-- The relays of running workers. Each renews its row every five seconds, and deletes it when it stops.
create table farebox.relays (
  id uuid not null,
  beat_at timestamp with time zone not null default now(),
  constraint relays_pkey primary key (id)
);

create table farebox.reversals (
  id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  top_up_id uuid not null,
  kind text not null,
  -- A refund: requested (by us; the processor may not know of it yet), made, failed. A dispute: open, lost, won. A
  -- fraud warning: open, and won once it is over.
  status text not null,
  amount_micros bigint not null,
  held_micros bigint not null default 0,
  taken_micros bigint not null default 0,
  -- The part that the balance did not cover. A consumer with debt has a balance of 0.
  debt_micros bigint not null generated always as (case when (status = any (array['failed', 'won'])) then (0)::bigint else ((amount_micros - held_micros) - taken_micros) end) stored,
  processor_id text,
  failure_message text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  -- When an operator decided that a fraud warning holds nothing, or requested a refund, which has the same time as
  -- created_at. It never holds again, unless that refund fails.
  dismissed_at timestamp with time zone,
  -- The amount at the processor, with tax. Null: there was no tax, so it is amount_micros.
  gross_micros bigint,
  -- The processor's credit note for a refund of an invoiced top-up.
  credit_note_id text,
  constraint reversals_pkey primary key (ledger, consumer_id, id),
  constraint reversals_processor_unique unique (processor_id),
  constraint reversals_top_up_of_consumer_fkey foreign key (ledger, consumer_id, top_up_id) references farebox.top_ups(ledger, consumer_id, id),
  constraint reversals_amount_positive check (amount_micros > 0),
  constraint reversals_are_live check (ledger < 2048),
  constraint reversals_cover_no_more_than_is_asked check (held_micros >= 0 and taken_micros >= 0 and (held_micros + taken_micros) <= amount_micros),
  constraint reversals_gross_covers_net check (gross_micros >= amount_micros),
  constraint reversals_hold_while_open check (held_micros = 0 or status = 'open'),
  constraint reversals_only_warnings_dismissed check (dismissed_at is null or kind = 'warning' and status = 'won'),
  constraint reversals_ours_are_covered check (status <> 'requested' or taken_micros = amount_micros),
  constraint reversals_processor_named check (processor_id is not null or (status = any (array['requested', 'failed']))),
  constraint reversals_status_known check ( case kind when 'refund' then status = any (array['requested', 'made', 'failed']) when 'dispute' then status = any (array['open', 'lost', 'won']) when 'warning' then status = any (array['open', 'won']) else false end),
  constraint reversals_take_for_good check (taken_micros = 0 or (status = any (array['requested', 'made', 'lost'])))
);
create index reversals_debt on farebox.reversals using btree (ledger, consumer_id) where (debt_micros > 0);
create index reversals_id on farebox.reversals using btree (id);
create index reversals_open on farebox.reversals using btree (top_up_id) where (status = 'open');
create index reversals_requested on farebox.reversals using btree (updated_at) where (status = 'requested');
create index reversals_top_up on farebox.reversals using btree (top_up_id);
create constraint trigger reversals_audit_dismissal after update of dismissed_at on farebox.reversals deferrable initially deferred for each row when (new.dismissed_at is not null and old.dismissed_at is distinct from new.dismissed_at) execute function farebox.audit_change('warning.dismissed', 'consumer_id', 'amount_micros', 'top_up_id');
create constraint trigger reversals_audit_request after insert on farebox.reversals deferrable initially deferred for each row when (new.kind = 'refund' and new.status = 'requested') execute function farebox.audit_change('refund.requested', 'consumer_id', 'amount_micros', 'top_up_id');
create trigger reversals_event_insert after insert on farebox.reversals for each row execute function farebox.post_reversal_event();
create trigger reversals_event_update after update of status on farebox.reversals for each row when (old.status <> new.status) execute function farebox.post_reversal_event();

create table farebox.settled_differences (
  id uuid not null,
  top_up_id uuid not null,
  -- Null if the ledger does not know the top-up. No foreign key: a difference is about what Stripe has.
  account_id uuid,
  kind text not null,
  processor_micros bigint not null,
  ledger_micros bigint not null,
  reason text not null,
  created_at timestamp with time zone not null default now(),
  constraint settled_differences_pkey primary key (id),
  constraint settled_differences_reason_given check (reason <> '')
);
create index settled_differences_latest on farebox.settled_differences using btree (top_up_id, kind, id desc);
create constraint trigger settled_differences_audit_insert after insert on farebox.settled_differences deferrable initially deferred for each row execute function farebox.audit_change('difference.settled', 'account_id', 'top_up_id', 'kind', 'processor_micros', 'ledger_micros', 'reason');

-- Consumer keys that can be charged within a node's limits and read that node. Not in api_keys: nothing that
-- reads those can take one for a key of the account.
create table farebox.spend_keys (
  id uuid not null,
  hash bytea not null,
  account_id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  -- Of the key, from 1, among its consumer's. charges.origin has it in four bytes.
  number integer not null,
  -- The number of its node.
  budget integer not null,
  -- The path of its node, which never changes.
  path integer[] not null,
  name text,
  last_four text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  -- As in api_keys: null until something changes.
  changed_at timestamp with time zone,
  last_used_at timestamp with time zone,
  -- Nobody holds this key: under accounts.developer_day_micros, what this developer charges to keys of the account
  -- counts as its. Null: a key that was handed out.
  developer integer,
  -- Of the caller and its idempotency key. The key is derived from the idempotency key, so that a retry can show
  -- it again.
  idempotency_hash bytea,
  request_hash bytea,
  -- Set when the key is rolled with an overlap, which may bring expires_at forward: the expiry that its owner gave
  -- it, or infinity for none. Null before that: expires_at is it.
  own_expires_at timestamp with time zone,
  constraint spend_keys_pkey primary key (ledger, consumer_id, number),
  constraint spend_keys_budget_unique unique (ledger, consumer_id, budget, id),
  constraint spend_keys_hash_unique unique (hash),
  constraint spend_keys_id_unique unique (id),
  constraint spend_keys_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint spend_keys_hash_is_sha256 check (octet_length(hash) = 32)
) with (fillfactor=90);
create unique index spend_keys_budget_of_developer on farebox.spend_keys using btree (ledger, consumer_id, budget) where (developer is not null);
create index spend_keys_changed on farebox.spend_keys using btree (changed_at) where (changed_at is not null);
create unique index spend_keys_developer on farebox.spend_keys using btree (ledger, consumer_id, developer) where (developer is not null);
create unique index spend_keys_idempotency on farebox.spend_keys using btree (ledger, consumer_id, idempotency_hash) where (idempotency_hash is not null);
create constraint trigger spend_keys_audit_expiry after update of expires_at on farebox.spend_keys deferrable initially deferred for each row when (old.expires_at is distinct from new.expires_at) execute function farebox.audit_change('spend_key.expiry_set', 'account_id', 'budget', 'last_four', 'expires_at');
create constraint trigger spend_keys_audit_insert after insert on farebox.spend_keys deferrable initially deferred for each row execute function farebox.audit_change('spend_key.created', 'account_id', 'budget', 'last_four', 'expires_at');
create constraint trigger spend_keys_audit_revoke after update of revoked_at on farebox.spend_keys deferrable initially deferred for each row when (old.revoked_at is distinct from new.revoked_at) execute function farebox.audit_change('spend_key.revoked', 'account_id', 'budget', 'last_four', 'revoked_at');
create trigger spend_keys_event_insert after insert on farebox.spend_keys for each row when (new.developer is null) execute function farebox.post_key_event();
create trigger spend_keys_event_update after update of expires_at, revoked_at on farebox.spend_keys for each row when (new.developer is null and (old.expires_at is distinct from new.expires_at or old.revoked_at is distinct from new.revoked_at)) execute function farebox.post_key_event();

-- Changed only under the consumer's lock.
create table farebox.thresholds (
  ledger smallint not null,
  consumer_id uuid not null,
  -- low_balance: set by the owner. exhausted: of every account that has had a webhook endpoint; a refused charge
  -- crosses it too, at any balance.
  purpose text not null,
  below_micros bigint not null,
  -- Null: armed. Otherwise it was crossed, or already was when it was set, and waits for a credit
  -- (functions/arm_thresholds.sql).
  crossed_at timestamp with time zone,
  constraint thresholds_pkey primary key (ledger, consumer_id, purpose),
  constraint thresholds_below_positive check (below_micros > 0),
  constraint thresholds_exhausted_means_nothing_left check (purpose <> 'exhausted' or below_micros = 1),
  constraint thresholds_purpose_known check (purpose = any (array['low_balance', 'exhausted']))
);
create trigger thresholds_set_notice after insert or delete or update on farebox.thresholds for each row execute function farebox.set_notice();

-- Priced operations of a developer.
create table farebox.tools (
  id uuid not null,
  developer_id uuid not null,
  name text not null,
  description text not null default '',
  price_micros bigint,
  created_at timestamp with time zone not null default now(),
  -- Null: the name was charged before it was registered, so the first charge does not need a registration.
  registered_at timestamp with time zone,
  -- Since then the tool is not listed and its price is not in force. Its past stays.
  archived_at timestamp with time zone,
  -- Null until something changes after the insert. Processes read recent changes, as they do for keys.
  changed_at timestamp with time zone,
  -- The version of its current card. Null: none.
  card smallint,
  constraint tools_pkey primary key (id),
  constraint tools_name_unique unique (developer_id, name),
  constraint tools_card foreign key (id, card) references farebox.rate_cards(tool_id, version),
  constraint tools_name_length check (char_length(name) >= 1 and char_length(name) <= 100),
  constraint tools_price_positive check (price_micros > 0)
);
create index tools_changed on farebox.tools using btree (changed_at) where (changed_at is not null);
create trigger tools_event after update of price_micros on farebox.tools for each row when (old.price_micros is distinct from new.price_micros and old.registered_at is not null) execute function farebox.post_tool_event();

-- What each top-up paid to each developer, first in, first out, net of refunds of charges, and in how many
-- charges. May be negative until the tail is added.
create table farebox.top_up_earnings (
  developer integer not null,
  top_up_id uuid not null,
  charged_micros bigint not null,
  charges bigint not null,
  ledger smallint not null,
  constraint top_up_earnings_pkey primary key (developer, top_up_id, ledger)
) with (fillfactor=80);

create table farebox.top_ups (
  id uuid not null,
  ledger smallint not null,
  consumer_id uuid not null,
  account_id uuid not null,
  -- checkout, direct: through Stripe. manual: by an operator. test: play money, which no processor knows of.
  method text not null,
  automatic boolean not null default false,
  status text not null default 'pending',
  amount_micros bigint not null,
  idempotency_key text,
  session_id text,
  session_url text,
  -- The expiry that the checkout asks for, stored so that a repeated call asks for the same. Null: Stripe's 24
  -- hours.
  session_expires_at timestamp with time zone,
  payment_intent_id text,
  failure_code text,
  failure_message text,
  -- Direct top-ups: the monthly ceiling when this one was accepted. The owner may change it later, and doctor
  -- proves that no month took more than was allowed.
  consent_ceiling_micros bigint,
  -- Automatic top-ups: their own monthly ceiling when this one was accepted, within the other.
  automatic_ceiling_micros bigint,
  -- How often its reversals were read at the processor and recorded: a reading that began before the last one is
  -- stale.
  reversals_read integer not null default 0,
  created_at timestamp with time zone not null default now(),
  -- When the workflow took it up. A row that is not opened has had no effect anywhere and may be deleted.
  opened_at timestamp with time zone,
  completed_at timestamp with time zone,
  updated_at timestamp with time zone not null default now(),
  -- What the processor showed when it was read last. 'paid' is never overwritten. Null: nothing final yet.
  seen_verdict text,
  -- What payment_intent_id was seen to have paid, in full and in dollars, with tax.
  seen_micros bigint,
  seen_failure_code text,
  seen_at timestamp with time zone,
  -- Checkouts: the owner asked to save the card that pays, for top-ups without the owner. Part of the row, so that
  -- a repeated call to the processor has the same parameters.
  saves_card boolean not null default false,
  -- Direct top-ups: when the bank first wanted the cardholder to confirm the payment. While it is pending, it
  -- waits for that.
  authentication_asked_at timestamp with time zone,
  -- Whether tax is added to what the payer pays. Null until the first call to the processor decides it by
  -- STRIPE_TAX.
  is_taxed boolean,
  -- The tax that the payer paid, or will pay, on top of amount_micros. A checkout's tax is known once it is paid.
  tax_micros bigint not null default 0,
  -- Direct top-ups: the processor's calculation of the tax, which it reports for us.
  tax_calculation_id text,
  -- The processor's invoice of a taxed payment. Refunds add credit notes to it.
  invoice_id text,
  -- A refund or dispute was reported or seen before the credit, which then has it read.
  reversal_reported boolean not null default false,
  -- The saved card (pm_...) that its bank declined permanently when this top-up was to be paid. It is never
  -- charged again.
  refused_card_id text,
  -- Checkouts: requested through a top-up link. Nobody is known there, so the payment has no customer of the
  -- account.
  by_link boolean not null default false,
  -- Automatic top-ups: the bank wants the payment confirmed, and no mail server has accepted the mail to the owner
  -- yet.
  is_mail_due boolean not null default false,
  -- Checkouts: when the session was first seen as complete and not yet paid. Its payer can do nothing more, and
  -- the bank takes days.
  under_way_at timestamp with time zone,
  -- When a request first answered 202 for a row that its workflow had not claimed. Such a row is no longer
  -- withdrawn.
  accepted_at timestamp with time zone,
  constraint top_ups_pkey primary key (id),
  constraint top_ups_idempotency_unique unique (ledger, consumer_id, idempotency_key),
  constraint top_ups_payment_intent_unique unique (payment_intent_id),
  constraint top_ups_session_unique unique (session_id),
  constraint top_ups_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint top_ups_amount_positive check (amount_micros > 0),
  constraint top_ups_automatic_is_direct check (not automatic or method = 'direct'),
  constraint top_ups_method_known check (method = any (array['checkout', 'direct', 'manual', 'test'])),
  constraint top_ups_seen_dated check ((seen_verdict is null) = (seen_at is null)),
  constraint top_ups_seen_failure_named check ((not seen_verdict is distinct from 'failed') = (seen_failure_code is not null)),
  constraint top_ups_seen_payment_is_ours check ( case when not seen_verdict is distinct from 'paid' then not seen_micros is distinct from (amount_micros + tax_micros) and payment_intent_id is not null else seen_micros is null end),
  constraint top_ups_seen_verdict_known check (seen_verdict = any (array['paid', 'expired', 'failed'])),
  constraint top_ups_status_known check (status = any (array['pending', 'completed', 'expired', 'failed', 'partially_refunded', 'refunded', 'disputed', 'charged_back'])),
  constraint top_ups_tax_not_negative check (tax_micros >= 0),
  constraint top_ups_test_reaches_no_processor check ( case when ledger < 2048 then method <> 'test' else method = 'test' and not automatic and (status = any (array['completed', 'failed'])) and num_nonnulls(session_id, session_url, session_expires_at, payment_intent_id, seen_verdict, consent_ceiling_micros) = 0 end)
);
create index top_ups_checkouts on farebox.top_ups using btree (consumer_id, completed_at) where ((method = 'checkout') and (not by_link));
create index top_ups_consumer on farebox.top_ups using btree (consumer_id, id);
create index top_ups_direct on farebox.top_ups using btree (consumer_id, created_at) where (method = 'direct');
create index top_ups_ended_unseen on farebox.top_ups using btree (updated_at) where ((status = any (array['expired', 'failed'])) and (seen_verdict is null));
create index top_ups_not_opened on farebox.top_ups using btree (created_at) where (opened_at is null);
create unique index top_ups_of_consumer on farebox.top_ups using btree (ledger, consumer_id, id);
create unique index top_ups_one_automatic on farebox.top_ups using btree (ledger, consumer_id) where (automatic and (status = 'pending'));
create index top_ups_open on farebox.top_ups using btree (id) where (status = any (array['pending', 'disputed']));
create index top_ups_refused_cards on farebox.top_ups using btree (consumer_id, refused_card_id) where (refused_card_id is not null);
create index top_ups_taken on farebox.top_ups using btree (consumer_id, coalesce(completed_at, 'infinity'::timestamp with time zone)) where ((method = 'direct') and (status <> all (array['failed', 'expired'])));
create index top_ups_without_invoice on farebox.top_ups using btree (completed_at) where ((tax_calculation_id is not null) and (invoice_id is null));
create constraint trigger top_ups_audit_manual after insert on farebox.top_ups deferrable initially deferred for each row when (new.method = 'manual') execute function farebox.audit_change('balance.opened', 'account_id', 'amount_micros');
create trigger top_ups_event_insert after insert on farebox.top_ups for each row when (new.opened_at is not null or new.status <> 'pending') execute function farebox.post_top_up_event();
create trigger top_ups_event_update after update on farebox.top_ups for each row when (old.status <> new.status or new.status = 'pending' and old.opened_at is null and new.opened_at is not null) execute function farebox.post_top_up_event();

-- One event for one endpoint, and its last attempt. Deleted with either.
create table farebox.webhook_deliveries (
  endpoint_id uuid not null,
  event_id uuid not null,
  status text not null default 'waiting',
  attempts integer not null default 0,
  next_attempt_at timestamp with time zone default now(),
  attempted_at timestamp with time zone,
  duration_ms integer,
  response_status integer,
  -- Its first characters.
  response_body text,
  -- Why there was no answer.
  error text,
  -- Of the event.
  ledger smallint not null default '-1'::integer,
  -- It was made due before its time, when the endpoint accepted another one after a failure.
  is_hastened boolean not null default false,
  constraint webhook_deliveries_pkey primary key (endpoint_id, event_id, ledger),
  constraint webhook_deliveries_attempts_timed check ((attempts = 0) = (attempted_at is null)),
  constraint webhook_deliveries_status_known check (status = any (array['waiting', 'delivered', 'failed'])),
  constraint webhook_deliveries_wait_for_a_time check ((status = 'waiting') = (next_attempt_at is not null))
) with (fillfactor=80);
create index webhook_deliveries_due on farebox.webhook_deliveries using btree (next_attempt_at) where (status = 'waiting');
create index webhook_deliveries_event on farebox.webhook_deliveries using btree (event_id);
create index webhook_deliveries_first on farebox.webhook_deliveries using btree (endpoint_id, next_attempt_at) where ((status = 'waiting') and (attempts = 0));
create index webhook_deliveries_not_hastened on farebox.webhook_deliveries using btree (endpoint_id, next_attempt_at) where ((status = 'waiting') and (not is_hastened));
create index webhook_deliveries_waiting on farebox.webhook_deliveries using btree (endpoint_id, next_attempt_at) where (status = 'waiting');

create table farebox.webhook_endpoints (
  id uuid not null,
  account_id uuid not null,
  url text not null,
  -- The types of events that it gets. Null: all.
  types text[],
  description text not null default '',
  status text not null default 'active',
  -- owner: by the owner. failing: it has failed for days. gone: it answered 410.
  disabled_reason text,
  -- The number of its signing secret, from 1. The secret is derived from this and the master secret
  -- (src/events/signing.ts) and stored nowhere.
  secret integer not null default 1,
  -- The number of the master secret that it is derived from.
  secret_master integer not null,
  -- The secret before it was rolled, which also signs until previous_secret_until.
  previous_secret integer,
  previous_secret_master integer,
  previous_secret_until timestamp with time zone,
  -- Of the first failed attempt since the last one that succeeded. Null: the last attempt succeeded.
  failing_since timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  -- Of the account and its idempotency key.
  idempotency_hash bytea,
  request_hash bytea,
  -- Of the last roll of the secret: its repetition gets the same secret, and rolls nothing.
  roll_idempotency_hash bytea,
  roll_request_hash bytea,
  -- When it was disabled because of its answers, until a mail server has the mail to its owner about it, or for
  -- three days. Null: no mail is owed.
  mail_owed_at timestamp with time zone,
  -- When the last attempt to send that mail began. Null: there was none since it was disabled, or ever.
  mail_tried_at timestamp with time zone,
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint webhook_endpoints_previous_secret_whole check ((previous_secret is null) = (previous_secret_until is null) and (previous_secret is null) = (previous_secret_master is null)),
  constraint webhook_endpoints_reason_known check ( case status when 'active' then disabled_reason is null else disabled_reason is not null and (disabled_reason = any (array['owner', 'failing', 'gone'])) end),
  constraint webhook_endpoints_status_known check (status = any (array['active', 'disabled']))
);
create index webhook_endpoints_account on farebox.webhook_endpoints using btree (account_id, id);
create index webhook_endpoints_failing on farebox.webhook_endpoints using btree (failing_since) where ((status = 'active') and (failing_since is not null));
create unique index webhook_endpoints_idempotency on farebox.webhook_endpoints using btree (idempotency_hash) where (idempotency_hash is not null);
create index webhook_endpoints_mail_owed on farebox.webhook_endpoints using btree (mail_tried_at nulls first) where (mail_owed_at is not null);
create trigger webhook_endpoints_arm_exhausted after insert on farebox.webhook_endpoints for each row execute function farebox.arm_exhausted();
create constraint trigger webhook_endpoints_audit_delete after delete on farebox.webhook_endpoints deferrable initially deferred for each row execute function farebox.audit_change('webhook_endpoint.deleted', 'account_id');
create constraint trigger webhook_endpoints_audit_insert after insert on farebox.webhook_endpoints deferrable initially deferred for each row execute function farebox.audit_change('webhook_endpoint.created', 'account_id');
create constraint trigger webhook_endpoints_audit_secret after update of secret on farebox.webhook_endpoints deferrable initially deferred for each row when (old.secret <> new.secret) execute function farebox.audit_change('webhook_endpoint.secret_rolled', 'account_id', 'secret');
create constraint trigger webhook_endpoints_audit_url after update of url on farebox.webhook_endpoints deferrable initially deferred for each row when (old.url <> new.url) execute function farebox.audit_change('webhook_endpoint.url_changed', 'account_id');
create trigger webhook_endpoints_mail_insert after insert on farebox.webhook_endpoints for each row execute function farebox.owe_endpoint_mail();
create trigger webhook_endpoints_mail_url after update of url on farebox.webhook_endpoints for each row when (old.url <> new.url) execute function farebox.owe_endpoint_mail();

create table console.credentials (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  account_id text not null,
  provider_id text not null,
  -- scrypt. Sessions, passkeys and sign-in links are in tables of their own.
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamp with time zone,
  refresh_token_expires_at timestamp with time zone,
  scope text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null,
  constraint credentials_pkey primary key (id),
  constraint credentials_user_id_fkey foreign key (user_id) references console.users(id) on delete cascade
);
create index credentials_user on console.credentials using btree (user_id);
create constraint trigger credentials_audit_insert after insert on console.credentials deferrable initially deferred for each row when (new.password is not null) execute function farebox.audit_change('password.set', 'user_id');
create constraint trigger credentials_audit_update after update of password on console.credentials deferrable initially deferred for each row when (old.password is distinct from new.password) execute function farebox.audit_change('password.set', 'user_id');
create trigger credentials_end_proofs after insert or update of password on console.credentials for each row execute function farebox.end_pending_proofs();
create trigger credentials_mail_insert after insert on console.credentials for each row when (new.password is not null) execute function farebox.owe_security_mail('password_set');
create trigger credentials_mail_update after update of password on console.credentials for each row when (old.password is distinct from new.password) execute function farebox.owe_security_mail('password_set');

create table console.mails (
  id bigint not null generated always as identity,
  recipient text not null,
  subject text not null,
  body text not null,
  created_at timestamp with time zone not null default now(),
  constraint mails_pkey primary key (id)
);

-- Mails that no mail server has accepted yet, about changes to who has access to an account. Deleted once
-- accepted, or after three days.
create table console.owed_mails (
  user_id uuid not null,
  kind text not null,
  -- Another one with each change: a mail about an earlier change does not settle it.
  id uuid not null default gen_random_uuid(),
  owed_at timestamp with time zone not null default now(),
  -- When the last attempt to send it began.
  tried_at timestamp with time zone not null default now(),
  constraint owed_mails_pkey primary key (user_id, kind),
  constraint owed_mails_user_id_fkey foreign key (user_id) references console.users(id) on delete cascade
);

create table console.passkeys (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  name text,
  credential_id text not null,
  public_key text not null,
  -- How often the device has signed, if it counts: a lower number than before means that it was copied.
  counter integer not null,
  device_type text not null,
  backed_up boolean not null,
  transports text,
  aaguid text,
  created_at timestamp with time zone not null default now(),
  constraint passkeys_pkey primary key (id),
  constraint passkeys_credential_unique unique (credential_id),
  constraint passkeys_user_id_fkey foreign key (user_id) references console.users(id) on delete cascade
);
create index passkeys_user on console.passkeys using btree (user_id);
create constraint trigger passkeys_audit_delete after delete on console.passkeys deferrable initially deferred for each row execute function farebox.audit_change('passkey.removed', 'user_id', 'name');
create constraint trigger passkeys_audit_insert after insert on console.passkeys deferrable initially deferred for each row execute function farebox.audit_change('passkey.added', 'user_id', 'name');
create trigger passkeys_mail_delete after delete on console.passkeys for each row execute function farebox.owe_security_mail('passkey_removed');
create trigger passkeys_mail_insert after insert on console.passkeys for each row execute function farebox.owe_security_mail('passkey_added');

create table console.rate_limits (
  id uuid not null default gen_random_uuid(),
  key text not null,
  count integer not null,
  last_request bigint not null,
  constraint rate_limits_pkey primary key (id),
  constraint rate_limits_key_unique unique (key)
);

create table console.sessions (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  token text not null,
  expires_at timestamp with time zone not null,
  ip_address text,
  user_agent text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null,
  constraint sessions_pkey primary key (id),
  constraint sessions_token_unique unique (token),
  constraint sessions_user_id_fkey foreign key (user_id) references console.users(id) on delete cascade
);
create index sessions_user on console.sessions using btree (user_id);
create constraint trigger sessions_audit_delete after delete on console.sessions deferrable initially deferred for each row execute function farebox.audit_change('session.ended', 'user_id');
create constraint trigger sessions_audit_insert after insert on console.sessions deferrable initially deferred for each row execute function farebox.audit_change('session.started', 'user_id');
create trigger sessions_end before insert or update of expires_at on console.sessions for each row execute function farebox.end_session_in_time();

-- How often somebody tried to sign in with an address since began_at. Deleted when the time is over.
create table console.sign_in_attempts (
  email_hash bytea not null,
  count integer not null,
  began_at timestamp with time zone not null default now(),
  constraint sign_in_attempts_pkey primary key (email_hash)
);
create index sign_in_attempts_began on console.sign_in_attempts using btree (began_at);

create table console.sign_in_links (
  token_hash bytea not null,
  email text not null,
  expires_at timestamp with time zone not null,
  constraint sign_in_links_pkey primary key (token_hash)
);
create constraint trigger sign_in_links_audit_insert after insert on console.sign_in_links deferrable initially deferred for each row execute function farebox.audit_change('sign_in_link.created', 'email');

create table console.two_factors (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  secret text not null,
  backup_codes text not null,
  verified boolean,
  failed_verification_count integer,
  locked_until timestamp with time zone,
  constraint two_factors_pkey primary key (id),
  constraint two_factors_user_unique unique (user_id),
  constraint two_factors_user_id_fkey foreign key (user_id) references console.users(id) on delete cascade
);
create trigger two_factors_keep_confirmed before update on console.two_factors for each row when (old.verified and new.secret <> old.secret) execute function farebox.keep_confirmed_secret();
create trigger two_factors_keep_used before delete on console.two_factors for each row when (old.verified) execute function farebox.keep_confirmed_secret();

create table console.users (
  id uuid not null default gen_random_uuid(),
  email text not null,
  name text not null,
  email_verified boolean not null,
  image text,
  two_factor_enabled boolean default false,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  -- The account that this person owns; given when the address is proven.
  account_id uuid,
  constraint users_pkey primary key (id),
  constraint users_account_unique unique (account_id),
  constraint users_email_unique unique (email),
  constraint users_account_id_fkey foreign key (account_id) references farebox.accounts(id),
  constraint users_own_no_test_account check (email !~~ 'test:%')
);
create constraint trigger users_audit_account after update of account_id on console.users deferrable initially deferred for each row when (old.account_id is distinct from new.account_id) execute function farebox.audit_change('account.claimed', 'account_id');
create constraint trigger users_audit_two_factor after update of two_factor_enabled on console.users deferrable initially deferred for each row when (old.two_factor_enabled is distinct from new.two_factor_enabled) execute function farebox.audit_change('two_factor.changed', 'account_id', 'two_factor_enabled');
create trigger users_mail_two_factor_off after update of two_factor_enabled on console.users for each row when (old.two_factor_enabled and new.two_factor_enabled is not true) execute function farebox.owe_security_mail('second_factor_off');
create trigger users_mail_two_factor_on after update of two_factor_enabled on console.users for each row when (new.two_factor_enabled and old.two_factor_enabled is not true) execute function farebox.owe_security_mail('second_factor_on');
create trigger users_remember_account before delete on console.users for each row execute function farebox.remember_account_of_person();

create table console.verifications (
  id uuid not null default gen_random_uuid(),
  identifier text not null,
  value text not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint verifications_pkey primary key (id)
);
create index verifications_identifier on console.verifications using btree (identifier);

create function farebox.accept_if_fits(accepted bigint, amount bigint, available bigint)
  returns bigint
  language sql immutable parallel safe;

create aggregate farebox.accepted_sum(amount bigint, available bigint)
  returns bigint;

create function farebox.add_to_budget_spending()
  returns trigger
  language plpgsql volatile
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_mergejoin=off;

create function farebox.add_to_movement_sums()
  returns trigger
  language plpgsql volatile;

create function farebox.agents_changed()
  returns trigger
  language plpgsql volatile;

create function farebox.arm_budget_marks()
  returns trigger
  language plpgsql volatile;

create function farebox.arm_exhausted()
  returns trigger
  language plpgsql volatile;

create function farebox.arm_thresholds()
  returns trigger
  language plpgsql volatile
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.audit_change()
  returns trigger
  language plpgsql volatile;

create function farebox.audit_hash(previous bytea, entry farebox.audit_entries)
  returns bytea
  language sql stable parallel safe;

create function farebox.audit_list(list jsonb, other jsonb, label text)
  returns jsonb
  language sql immutable parallel safe;

create function farebox.block_developer()
  returns trigger
  language plpgsql volatile;

create function farebox.budget_marks(p_limit bigint, out percent integer, out micros bigint)
  returns setof record
  language sql immutable parallel safe;

create function farebox.charges_of_developer(p_developer integer, p_from uuid, p_to uuid, p_tool text, p_limit integer)
  returns setof farebox.charges
  language sql stable
  set plan_cache_mode=force_generic_plan
  set enable_sort=off
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.copy_from_rest()
  returns trigger
  language plpgsql volatile;

create function farebox.count_agent_words(added tsvector[], removed tsvector[])
  returns void
  language sql volatile;

create function farebox.end_pending_proofs()
  returns trigger
  language plpgsql volatile;

create function farebox.end_session_in_time()
  returns trigger
  language plpgsql volatile;

create function farebox.expire_holds(p_rows integer, out taken integer, out closed integer, out ledgers smallint[], out consumers uuid[])
  returns record
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.find_agent_candidates(queries tsquery[], agents_max integer)
  returns table(id text, protocol text, name_words text, search tsvector)
  language sql stable
  set enable_seqscan=off;

create function farebox.give_back_to_budgets(p_ledger smallint[], p_consumer uuid[], p_spend_key integer[], p_micros bigint[], p_held_at timestamp with time zone[], p_charged_from bigint[])
  returns void
  language sql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.keep_confirmed_secret()
  returns trigger
  language plpgsql volatile;

create function farebox.may_exceed_hold(p_ledger smallint, p_consumer uuid, p_spend_key integer, p_developer integer, p_tool text, p_placed_at timestamp with time zone)
  returns boolean
  language plpgsql stable;

create function farebox.next_charge(p_ledger smallint, p_consumer uuid, p_from uuid)
  returns uuid
  language sql stable
  set enable_sort=off
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.note_budget_marks()
  returns trigger
  language plpgsql volatile
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.note_crossings(p_ledger smallint[], p_consumer uuid[], p_is_refused boolean[])
  returns void
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.note_refusals(p_ledger smallint[], p_consumer uuid[], p_amount bigint[])
  returns void
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.owe_endpoint_mail()
  returns trigger
  language plpgsql volatile;

create function farebox.owe_security_mail()
  returns trigger
  language plpgsql volatile;

create function farebox.parties_of_charge(p_id uuid)
  returns table(consumer_id uuid, developer integer)
  language sql stable
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.post_charge_refund_event()
  returns trigger
  language plpgsql volatile;

create function farebox.post_charges(p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer integer[], p_tool text[], p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid)
  returns table(ord integer, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint)
  language plpgsql volatile;

create function farebox.post_charges_2(p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer integer[], p_tool text[], p_amount bigint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid)
  returns table(ord integer, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, card smallint)
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.post_deliveries()
  returns trigger
  language plpgsql volatile
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.post_entries(p_kind smallint[], p_id uuid[], p_hold uuid[], p_ledger smallint[], p_consumer uuid[], p_spend_key integer[], p_developer integer[], p_tool text[], p_amount bigint[], p_seconds integer[], p_final smallint[], p_over smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid, p_settles_debts boolean)
  returns table(ord integer, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, hold_id uuid, ledger smallint, consumer uuid, tool text, hold_amount bigint, captured bigint, remaining bigint, state smallint, placed_at timestamp with time zone, expires_at timestamp with time zone, budget_id uuid, limit_scope text, limit_micros bigint, limit_left bigint, window_unit smallint, window_began timestamp with time zone)
  language plpgsql volatile;

create function farebox.post_entries_2(p_kind smallint[], p_id uuid[], p_hold uuid[], p_ledger smallint[], p_consumer uuid[], p_spend_key integer[], p_developer integer[], p_tool text[], p_amount bigint[], p_seconds integer[], p_final smallint[], p_over smallint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid, p_settles_debts boolean)
  returns table(ord integer, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, card smallint, hold_id uuid, ledger smallint, consumer uuid, tool text, hold_amount bigint, captured bigint, remaining bigint, state smallint, placed_at timestamp with time zone, expires_at timestamp with time zone, budget_id uuid, limit_scope text, limit_micros bigint, limit_left bigint, window_unit smallint, window_began timestamp with time zone)
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.post_event(p_account uuid, p_type text, p_data json)
  returns void
  language sql volatile;

create function farebox.post_event_of_ledger(p_ledger smallint, p_account uuid, p_type text, p_data json)
  returns void
  language sql volatile;

create function farebox.post_fitting_groups(p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[], p_node_group integer[], p_node_number integer[], p_node_total bigint[], p_group integer[], p_through bigint[], p_spend_key integer[], p_id uuid[], p_developer integer[], p_tool text[], p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid)
  returns bigint[]
  language plpgsql volatile;

create function farebox.post_fitting_groups_2(p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[], p_node_group integer[], p_node_number integer[], p_node_total bigint[], p_group integer[], p_through bigint[], p_spend_key integer[], p_id uuid[], p_developer integer[], p_tool text[], p_amount bigint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid)
  returns bigint[]
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.post_key_event()
  returns trigger
  language plpgsql volatile;

create function farebox.post_lease_events(p_lease uuid[])
  returns void
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.post_reversal_event()
  returns trigger
  language plpgsql volatile;

create function farebox.post_tool_event()
  returns trigger
  language plpgsql volatile;

create function farebox.post_top_up_event()
  returns trigger
  language plpgsql volatile;

create function farebox.refuse_change()
  returns trigger
  language plpgsql volatile;

create function farebox.remember_account_of_person()
  returns trigger
  language plpgsql volatile;

create function farebox.set_notice()
  returns trigger
  language plpgsql volatile
  set enable_seqscan=off
  set enable_bitmapscan=off;

create function farebox.set_returned_tax()
  returns trigger
  language plpgsql volatile;

create function farebox.settle_lease(p_developer integer, p_lease uuid, p_fence integer, p_id uuid[], p_tool text[], p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[], p_releases boolean, p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid)
  returns table(ord integer, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, limit_micros bigint)
  language plpgsql volatile
  set plan_cache_mode=force_generic_plan
  set enable_seqscan=off
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off;

create function farebox.windows_at(p_at timestamp with time zone)
  returns timestamp with time zone[]
  language sql stable;

create function farebox.wire_dollars(micros bigint)
  returns numeric
  language sql immutable parallel safe;

create function farebox.wire_id(prefix text, id uuid)
  returns text
  language sql immutable parallel safe;

create function farebox.wire_time(at timestamp with time zone)
  returns text
  language sql stable parallel safe;
