/**
 * Proves the books from the rows alone. Each check is one query that returns violations, so an empty result is the
 * proof. They run beside traffic, part by part, because some read every charge and others take only a moment.
 */
import { Type } from 'typebox';
import { row, sql, type Database, type Fragment } from '../database.ts';
import { allowLongStatements } from '../long-transaction.ts';
import { APPROVAL_CHECKS } from './approval-checks.ts';
import { ARCHIVED_CHECK, listArchiveFailures } from './archive-check.ts';
import { AUDIT_LOG_CHECKS } from './audit-log-checks.ts';
import { BALANCE_CHECKS } from './balance-checks.ts';
import { BUDGET_CHECKS, OPEN_BUDGET_CHECKS } from './budget-checks.ts';
import { CHARGE_CHECKS, receiptChecks } from './charge-checks.ts';
import { DELIVERY_CHECKS, signingChecks } from './delivery-checks.ts';
import { EARNINGS_CHECKS } from './earnings-checks.ts';
import { firstOf, OFFENDERS_MAX, type Finding } from './findings.ts';
import { HOLD_CHECKS } from './hold-checks.ts';
import { checkReconciliation, RECONCILED_CHECK } from '../top-ups/reconciliation.ts';
import { listMissingRecords, RECORDS_CHECK } from './record-checks.ts';
import { listSchemaDifferences, SCHEMA_CHECK } from './schema-checks.ts';
import { TOP_UP_CHECKS } from './top-up-checks.ts';

/** From cheapest to most expensive: the last four read every charge. */
export const LEDGER_PARTS = [
  'schema',
  'balances',
  'top-ups',
  'delivery',
  'audit-log',
  'approvals',
  'holds',
  'budgets',
  'charges',
  'earnings',
] as const;
export type LedgerPart = (typeof LEDGER_PARTS)[number];

const offenderRow = row(
  Type.Object({ subject: Type.String(), detail: Type.String(), offenders: Type.Integer() }),
);

const QUERIES = {
  balances: BALANCE_CHECKS,
  'top-ups': TOP_UP_CHECKS,
  delivery: DELIVERY_CHECKS,
  'audit-log': AUDIT_LOG_CHECKS,
  approvals: APPROVAL_CHECKS,
  holds: HOLD_CHECKS,
  budgets: BUDGET_CHECKS,
  charges: CHARGE_CHECKS,
  earnings: EARNINGS_CHECKS,
} as const;

/** Values that checks compare with rows. A check whose setting is absent is skipped. */
export interface CheckSettings {
  /** The numbers of the configured master secrets. */
  readonly masterSecrets?: readonly number[] | undefined;
  readonly reconcileEverySeconds?: number;
  /** For what does not depend on their figures. */
  readonly leavesOutClosedBudgets?: boolean;
}

export interface Examination extends CheckSettings {
  /** All when absent. */
  readonly parts?: readonly LedgerPart[];
  /** Called at the start of each check; the duration of some grows with the number of charges. */
  readonly report?: (check: string) => void;
}

/** Empty when the books are consistent. If a check cannot run, `findings` has what the checks before it found. */
export async function examineLedger(
  database: Database,
  examination: Examination = {},
  findings: Finding[] = [],
): Promise<Finding[]> {
  const { parts = LEDGER_PARTS, report = () => {}, ...settings } = examination;
  for (const part of parts) {
    for (const [check, run] of Object.entries(checksOf(part, settings))) {
      report(check);
      findings.push(...(await run(database)).map((found) => ({ part, check, ...found })));
    }
  }
  return findings;
}

/** The names of a part's checks. */
export function checkNames(part: LedgerPart, settings: CheckSettings = {}): readonly string[] {
  return Object.keys(checksOf(part, settings));
}

type Check = (database: Database) => Promise<readonly Omit<Finding, 'part' | 'check'>[]>;

function checksOf(
  part: LedgerPart,
  { masterSecrets, reconcileEverySeconds, leavesOutClosedBudgets }: CheckSettings,
): Readonly<Record<string, Check>> {
  if (part === 'schema') {
    return {
      [SCHEMA_CHECK]: async (database) => firstOf(await listSchemaDifferences(database)),
      [RECORDS_CHECK]: async (database) => firstOf(await listMissingRecords(database)),
    };
  }
  const queries = {
    ...QUERIES[part],
    ...(part === 'charges' && masterSecrets && receiptChecks(masterSecrets)),
    ...(part === 'delivery' && masterSecrets && signingChecks(masterSecrets)),
    ...(part === 'budgets' && leavesOutClosedBudgets === true && OPEN_BUDGET_CHECKS),
  };
  const checks = Object.entries(queries).map(([check, query]): [string, Check] => [
    check,
    (database) => run(database, query),
  ]);
  if (part === 'delivery') {
    checks.push([ARCHIVED_CHECK, async (database) => firstOf(await listArchiveFailures(database))]);
    if (reconcileEverySeconds !== undefined) {
      checks.push([
        RECONCILED_CHECK,
        async (database) => firstOf(await checkReconciliation(database, reconcileEverySeconds)),
      ]);
    }
  }
  return Object.fromEntries(checks);
}

/**
 * Each check has its own snapshot: a single one would keep PostgreSQL from pruning the rows of busy consumers
 * meanwhile.
 */
async function run(database: Database, query: Fragment) {
  return database.transaction(async (tx) => {
    await allowLongStatements(tx);
    // Every check aggregates all rows of a table; beyond this limit, it spills to disk and takes far longer.
    await tx.query(sql.typeAlias('nothing')`set local work_mem = '256MB'`);
    // On one core, because parallel workers would share tables of that size in shared memory, which containers limit.
    await tx.query(sql.typeAlias('nothing')`set local max_parallel_workers_per_gather = 0`);
    // A violation may involve an unexpected value, such as a null, which makes the text null.
    return tx.any(sql.type(offenderRow)`
      select coalesce(subject, 'unnamed') as subject, coalesce(detail, '') as detail, count(*) over () as offenders
      from (${query}) as found (subject, detail)
      limit ${OFFENDERS_MAX}
    `);
  });
}
