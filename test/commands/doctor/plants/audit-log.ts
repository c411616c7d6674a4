/** Faults of the audit log: entries that were changed, deleted or moved, and changes that it does not have. */

const CHAIN = 'the audit log is an unbroken chain';
const COMPLETE = 'the audit log has every change';
const AGREES = 'manual changes match the audit log';
const PRESENT = 'the audit log has the current consents, operators and closed budgets';

interface Fault {
  readonly what: string;
  readonly statements: readonly string[];
  /** Each finding: its check and its subject. */
  readonly finds: readonly (readonly [check: string, subject: string])[];
}

export const PLANTED_ID = '00000000-0000-7000-8000-000000000007';
/** A row for each table whose changes the audit log has: its columns behind the id, and its values. */
export const PLANTED: Readonly<Record<string, string>> = {
  'farebox.spend_keys': `hash, account_id, ledger, consumer_id, number, budget, path, last_four, revoked_at)
    values ('${PLANTED_ID}', sha256('x'), ':account', 0, uuidv7(), 1, 1, '{1}', 'test', now())`,
  'farebox.operator_actions': `operator_account_id, account_id, kind, amount_micros, reason, idempotency_key)
    values ('${PLANTED_ID}', ':account', ':account', 'adjustment', 1, 'planted', 'planted')`,
  'farebox.approvals': `account_id, ledger, consumer_id, spend_key, developer, developer_id, tool, amount_micros, code,
      budget, scope, limit_micros, asked_by, expires_at, status, decision, decided_at)
    values ('${PLANTED_ID}', ':account', 0, uuidv7(), 1, 1, uuidv7(), 'search', 1, 'spend_limit_reached',
      1, 'total', 1, 'payer', now(), 'approved', 'once', now())`,
  'farebox.movements': `ledger, consumer_id, kind, amount_micros, reason)
    values ('${PLANTED_ID}', 0, uuidv7(), 'adjustment', 1, 'planted')`,
  'farebox.top_ups': `ledger, consumer_id, account_id, method, status, amount_micros, completed_at)
    values ('${PLANTED_ID}', 0, uuidv7(), ':account', 'manual', 'completed', 10000, now())`,
  'console.users': `email, name, email_verified)
    values ('${PLANTED_ID}', 'planted@example.com', 'planted', true)`,
  'console.sessions': `user_id, token, expires_at, updated_at)
    values ('${PLANTED_ID}', '${PLANTED_ID}', 'planted', now(), now())`,
  'console.passkeys': `user_id, credential_id, public_key, counter, device_type, backed_up)
    values ('${PLANTED_ID}', '${PLANTED_ID}', 'planted', 'planted', 0, 'planted', false)`,
  'farebox.webhook_endpoints': `account_id, url, secret_master)
    values ('${PLANTED_ID}', ':account', 'https://example.com', 1)`,
};

const LAST = '(select max(number) from farebox.audit_entries)';
export const AUDIT_LOG_FAULTS: readonly Fault[] = [
  {
    what: 'a changed account',
    statements: ['update farebox.audit_entries set account_id = uuidv7() where number = 2'],
    finds: [[CHAIN, 'entry 2']],
  },
  {
    what: 'changed details',
    statements: [
      `update farebox.audit_entries set details = '{"kind": "legacy"}' where number = 3`,
    ],
    finds: [[CHAIN, 'entry 3']],
  },
  {
    what: 'a time moved by a microsecond',
    statements: [
      `update farebox.audit_entries set happened_at = happened_at + interval '1 microsecond' where number = 4`,
    ],
    finds: [[CHAIN, 'entry 4']],
  },
  {
    what: 'a changed entry with a matching hash',
    statements: [
      `update farebox.audit_entries set program = 'psql' where number = 2`,
      `update farebox.audit_entries e set hash = farebox.audit_hash(
        (select hash from farebox.audit_entries where number = 1), e) where number = 2`,
    ],
    finds: [[CHAIN, 'entry 3']],
  },
  {
    what: 'a deleted consent',
    statements: [`delete from farebox.audit_entries where action = 'consent.changed'`],
    finds: [
      [CHAIN, 'entry 8'],
      [PRESENT, 'consent.changed :account'],
    ],
  },
  {
    what: 'the first entry deleted',
    statements: ['delete from farebox.audit_entries where number = 1'],
    finds: [
      [CHAIN, 'entry 2'],
      [COMPLETE, 'account.created :account'],
    ],
  },
  {
    what: 'the last entry deleted',
    statements: [`delete from farebox.audit_entries where number = ${LAST}`],
    finds: [[COMPLETE, 'key.revoked :key']],
  },
  {
    what: 'two entries exchanged',
    statements: [
      'update farebox.audit_entries set number = -number where number in (2, 3)',
      'update farebox.audit_entries set number = 5 + number where number < 0',
    ],
    finds: [
      [CHAIN, 'entry 2'],
      [CHAIN, 'entry 3'],
      [CHAIN, 'entry 4'],
    ],
  },
  {
    what: 'a key created while the triggers were off',
    statements: [
      'alter table farebox.api_keys disable trigger user',
      `insert into farebox.api_keys (id, hash, kind, account_id, last_four)
        values ('00000000-0000-7000-8000-000000000001', sha256('x'), 'legacy', ':account', 'abcd')`,
      'alter table farebox.api_keys enable trigger user',
    ],
    finds: [[COMPLETE, 'key.created 00000000-0000-7000-8000-000000000001']],
  },
  {
    what: 'a consent changed while the triggers were off',
    statements: [
      'alter table farebox.accounts disable trigger user',
      'update farebox.accounts set consent_ceiling_micros = 2000000',
      'alter table farebox.accounts enable trigger user',
    ],
    finds: [[PRESENT, 'consent.changed :account']],
  },
  {
    what: 'an operator promoted while the triggers were off',
    statements: [
      'alter table farebox.accounts disable trigger user',
      'update farebox.accounts set operator_since = now()',
      'alter table farebox.accounts enable trigger user',
    ],
    finds: [[PRESENT, 'operator.changed :account']],
  },
  {
    what: 'an adjustment whose reason was rewritten',
    statements: [`update farebox.movements set reason = 'another' where kind = 'adjustment'`],
    finds: [[AGREES, 'movement :adjustment']],
  },
  {
    what: 'an opening balance and its credit that were both raised',
    statements: [
      `update farebox.top_ups set amount_micros = amount_micros + 1 where method = 'manual'`,
      `update farebox.movements set amount_micros = amount_micros + 1 where top_up_id = ':manual'`,
    ],
    finds: [[AGREES, 'top-up :manual']],
  },
  {
    what: 'the amount of a refund by a command that was rewritten',
    statements: [
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, taken_micros)
        select '00000000-0000-7000-8000-000000000001', ledger, consumer_id, id, 'refund', 'requested', 1, 1
        from farebox.top_ups where id = ':manual'`,
      `insert into farebox.refund_keys (idempotency_key, ledger, consumer_id, top_up_id, reversal_id, amount_micros)
        select 'planted', ledger, consumer_id, top_up_id, id, 2 from farebox.reversals`,
    ],
    finds: [[AGREES, 'key planted']],
  },
  {
    what: 'a budget created and closed while the triggers were off',
    statements: [
      'alter table farebox.budget_details disable trigger user',
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name, closed_at)
        values ('ffffffff-ffff-7000-8000-000000000001', 0, uuidv7(), 1, '{1}', 'planted', now() + interval '2 hours')`,
      'alter table farebox.budget_details enable trigger user',
    ],
    finds: [
      [COMPLETE, 'budget.created ffffffff-ffff-7000-8000-000000000001'],
      [PRESENT, 'budget.closed ffffffff-ffff-7000-8000-000000000001'],
    ],
  },
  {
    what: 'a budget reopened while the triggers were off',
    statements: [
      'alter table farebox.budget_details disable trigger user',
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
        values ('00000000-0000-7000-8000-000000000007', 0, uuidv7(), 1, '{1}', 'planted')`,
      'alter table farebox.budget_details enable trigger user',
      `update farebox.budget_details set closed_at = now() where name = 'planted'`,
      'alter table farebox.budget_details disable trigger user',
      `update farebox.budget_details set closed_at = null where name = 'planted'`,
      'alter table farebox.budget_details enable trigger user',
    ],
    finds: [[PRESENT, 'budget.closed 00000000-0000-7000-8000-000000000007']],
  },
  {
    what: 'a budget that was reopened before, and closed while the triggers were off',
    statements: [
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
        values ('00000000-0000-7000-8000-000000000007', 0, uuidv7(), 1, '{1}', 'planted')`,
      `update farebox.budget_details set closed_at = now() where name = 'planted'`,
      `update farebox.budget_details set closed_at = null where name = 'planted'`,
      'alter table farebox.budget_details disable trigger user',
      `update farebox.budget_details set closed_at = now() where name = 'planted'`,
      'alter table farebox.budget_details enable trigger user',
    ],
    finds: [[PRESENT, 'budget.closed 00000000-0000-7000-8000-000000000007']],
  },
  {
    what: 'refunds requested and a fraud warning dismissed while the triggers were off',
    statements: [
      'alter table farebox.reversals disable trigger user',
      `insert into farebox.reversals
        (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, taken_micros, processor_id, dismissed_at)
        select r.id::uuid, ledger, consumer_id, t.id, kind, r.status, 1, case r.status when 'requested' then 1 else 0 end,
          processor_id, case r.kind when 'warning' then now() + interval '2 hours' end
        from farebox.top_ups t, (values
          ('00000000-0000-7000-8000-000000000001', 'refund', 'requested', null),
          ('00000000-0000-7000-8000-000000000002', 'refund', 'failed', null),
          ('00000000-0000-7000-8000-000000000003', 'refund', 'made', 're_command'),
          ('00000000-0000-7000-8000-000000000004', 'refund', 'made', 're_dashboard'),
          ('00000000-0000-7000-8000-000000000005', 'warning', 'won', 'issfr_planted')
        ) as r (id, kind, status, processor_id) where t.id = ':manual'`,
      'alter table farebox.reversals enable trigger user',
      `insert into farebox.refund_keys (idempotency_key, ledger, consumer_id, top_up_id, reversal_id, amount_micros)
        select 'planted', ledger, consumer_id, top_up_id, id, 1 from farebox.reversals where processor_id = 're_command'`,
    ],
    finds: [
      [COMPLETE, 'refund.requested 00000000-0000-7000-8000-000000000001'],
      [COMPLETE, 'refund.requested 00000000-0000-7000-8000-000000000002'],
      [COMPLETE, 'refund.requested 00000000-0000-7000-8000-000000000003'],
      [COMPLETE, 'warning.dismissed 00000000-0000-7000-8000-000000000005'],
    ],
  },
  {
    what: 'a difference settled while the trigger was off',
    statements: [
      'alter table farebox.settled_differences disable trigger user',
      `insert into farebox.settled_differences (id, top_up_id, kind, processor_micros, ledger_micros, reason)
        values ('00000000-0000-7000-8000-000000000006', ':manual', 'not_paid', 0, 1, 'planted')`,
      'alter table farebox.settled_differences enable trigger user',
    ],
    finds: [[COMPLETE, 'difference.settled 00000000-0000-7000-8000-000000000006']],
  },
  {
    what: 'rows of every other kind that were made while the triggers were off',
    statements: Object.entries(PLANTED).flatMap(([table, values]) => [
      `alter table ${table} disable trigger user`,
      `insert into ${table} (id, ${values}`,
      `alter table ${table} enable trigger user`,
    ]),
    finds: [
      'spend_key.created',
      'spend_key.revoked',
      'operator.acted',
      'approval.decided',
      'balance.adjusted',
      'balance.opened',
      'session.started',
      'passkey.added',
      'webhook_endpoint.created',
    ].map((action) => [COMPLETE, `${action} ${PLANTED_ID}`]),
  },
  {
    what: 'an action of an operator whose reason was rewritten',
    statements: [
      `insert into farebox.operator_actions (id, ${PLANTED['farebox.operator_actions']}`,
      `update farebox.operator_actions set reason = 'another'`,
    ],
    finds: [[AGREES, `operator action ${PLANTED_ID}`]],
  },
];
