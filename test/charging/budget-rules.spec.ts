/** The rules of budgets in memory: how much they may take, and how long a one-time approval sends calls to PostgreSQL. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { BudgetRulesCache } from '../../src/charging/budget-rules.ts';
import { BUDGETS_BYTES_MAX } from '../../src/charging/limits.ts';
import { RecentChanges } from '../../src/charging/recent-changes.ts';
import { APPROVED_DEVELOPERS_MAX } from '../../src/domain/approval.ts';
import { asMicros } from '../../src/domain/money.ts';
import { askApproval } from '../../src/store/approvals/ask-approval.ts';
import { decideApproval } from '../../src/store/approvals/decide-approval.ts';
import { insertBudget } from '../../src/store/budgets/change-budgets.ts';
import { sql, type Database } from '../../src/store/database.ts';
import { UNLIMITED } from '../support/budget-settings.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';

const DOLLAR = asMicros(1_000_000);
const CALL = { developerId: randomUUID(), tool: 'search', amountMicros: asMicros(3_000_000) };

/** None change. */
async function openRules(database: Database) {
  const changes = new RecentChanges(
    async () => ({ changes: [], at: '', writers: [] }),
    (error) => assert.fail(String(error)),
  );
  await changes.start();
  return {
    rules: new BudgetRulesCache(database, changes, { nowMs: () => Date.now() }),
    [Symbol.asyncDispose]: () => changes.stop(),
  };
}

describe('rules of budgets in memory', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger.drop());

  it('have a bound in bytes, so long lists leave room for fewer of them', async () => {
    const { database } = ledger;
    const { ledger: number, consumerId } = await newPayer(database);
    const budgets = 1_200;
    await database.transaction(async (tx) => {
      await tx.query(
        sql.typeAlias('nothing')`alter table farebox.budget_details disable trigger user`,
      );
      await tx.query(sql.typeAlias('nothing')`
        insert into farebox.budget_details (id, ledger, consumer_id, number, path, name, approve_developers,
          approved_developers)
        select gen_random_uuid(), ${number}, ${consumerId}, number, array[number], 'large', true,
          (select array_agg(gen_random_uuid()) || ${CALL.developerId}::uuid
            from generate_series(1, ${APPROVED_DEVELOPERS_MAX - 1}))
        from generate_series(1, ${budgets}) as number
      `);
      await tx.query(
        sql.typeAlias('nothing')`alter table farebox.budget_details enable trigger user`,
      );
    });
    await using opened = await openRules(database);
    const payers = Array.from({ length: budgets }, (_, index) => ({
      consumerId,
      guard: null,
      spend: { number: 1, path: [index + 1] },
    }));
    const ask = (payer: (typeof payers)[number]) => opened.rules.refusalOf(payer, CALL);
    // Twice, since charges remember the paths that are in memory.
    for (let index = 0; index < budgets; index += 50) {
      const asked = payers.slice(index, index + 50);
      for (const _ of [1, 2]) {
        const refusals = asked.map(async (payer) => ask(payer));
        for (const refusal of await Promise.all(refusals)) assert.equal(refusal, undefined);
      }
    }
    const known = [];
    // The newest first, since a budget that is read again evicts the oldest.
    for (const payer of payers.toReversed()) {
      const answer = ask(payer);
      if (answer instanceof Promise) await answer;
      else known.push(payer);
    }
    const ids = known.length * APPROVED_DEVELOPERS_MAX;
    assert.ok(known.length > 100);
    assert.ok(ids * randomUUID().length < BUDGETS_BYTES_MAX, `${ids} approved developers`);
  });

  for (const [hours, kind] of [
    [23, 'needs_approval'],
    [25, 'limit_reached'],
  ] as const) {
    it(`leave a larger call to ${kind} ${hours} hours after a one-time approval that is not used`, async () => {
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
      await using opened = await openRules(database);
      const { consumerId } = payer;
      const refusal = await opened.rules.refusalOf(
        { consumerId, guard: null, spend: { number: 1, path: [1] } },
        CALL,
      );
      assert.equal(refusal?.kind, kind);
    });
  }
});
