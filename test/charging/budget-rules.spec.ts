/**
 * A one-time approval that was never used: for a day PostgreSQL decides about refused calls, then memory does
 * again.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { BudgetRulesCache } from '../../src/charging/budget-rules.ts';
import { RecentChanges } from '../../src/charging/recent-changes.ts';
import { asMicros } from '../../src/domain/money.ts';
import { askApproval } from '../../src/store/approvals/ask-approval.ts';
import { decideApproval } from '../../src/store/approvals/decide-approval.ts';
import { insertBudget } from '../../src/store/budgets/change-budgets.ts';
import { sql } from '../../src/store/database.ts';
import { UNLIMITED } from '../support/budget-settings.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';

const DOLLAR = asMicros(1_000_000);
const CALL = { developerId: randomUUID(), tool: 'search', amountMicros: asMicros(3_000_000) };

describe('a one-time approval that is not used', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger.drop());

  for (const [hours, kind] of [
    [23, 'needs_approval'],
    [25, 'limit_reached'],
  ] as const) {
    it(`leaves a larger call to ${kind} after ${hours} hours`, async () => {
      const { database } = ledger;
      const payer = await newPayer(database);
      await database.transaction((tx) =>
        insertBudget(tx, { ...payer, root: null }, null, {
          ...UNLIMITED,
          maxPerCallMicros: DOLLAR,
        }),
      );
      const asked = await askApproval(database, {
        ...payer,
        ...CALL,
        spendKey: 1,
        developerNumber: 1,
        code: 'spend_limit_reached',
        budget: 1,
        scope: 'per_call',
        limitMicros: DOLLAR,
        askedBy: 'developer',
        reason: '',
        expiresInSeconds: 60,
      });
      assert.ok(asked.kind === 'asked');
      const { kind: decided } = await decideApproval(database, asked.approval.id, { kind: 'once' });
      assert.equal(decided, 'decided');
      await database.query(sql.typeAlias('nothing')`
        update farebox.approvals set decided_at = now() - make_interval(hours => ${hours})
        where id = ${asked.approval.id}
      `);
      const rules = new BudgetRulesCache(
        database,
        new RecentChanges(
          async () => ({ changes: [], at: '', writers: [] }),
          () => {},
        ),
        { nowMs: () => Date.now() },
      );
      const { consumerId } = payer;
      const refusal = await rules.refusalOf(
        { consumerId, guard: null, spend: { number: 1, path: [1] } },
        CALL,
      );
      assert.equal(refusal?.kind, kind);
    });
  }
});
