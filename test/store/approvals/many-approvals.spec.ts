/** Only the recent and the pending approvals of a key are read, even after it has asked thousands of times. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ASKS_OF_KEY_MAX } from '../../../src/domain/approval.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { askApproval, type Ask } from '../../../src/store/approvals/ask-approval.ts';
import { listApprovals } from '../../../src/store/approvals/approval.ts';
import { findRefusing } from '../../../src/store/approvals/find-refusal.ts';
import { findBudgetRules } from '../../../src/store/budgets/rules.ts';
import { DEVELOPER_ID } from '../../support/charge-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { openHarnesses, postDrafts, type BudgetHarness } from '../budgets/budget-harness.ts';
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { plansOf, rowsReadOf } from '../query-plans.ts';

const OLD = 10_000;
const READ_MAX = 100;
const SPEND_KEY = 1;
const BUDGET = 1;
const AMOUNT = asMicros(20);
const LISTED = 50;

/** Asked 30 days ago: a quarter has expired, a quarter was denied, a quarter was used, and a quarter was never used. */
const OLD_ROWS = `
  select uuidv7(interval '-30 days'), now() - interval '30 days', now() - interval '29 days',
    case n % 4 when 0 then 'expired' when 1 then 'denied' else 'approved' end, now() - interval '29 days',
    case n % 4 when 0 then null when 1 then 'deny' else 'once' end, case n % 4 when 2 then uuidv7() end
  from generate_series(1, ${OLD}) n`;
/** As many as one key may ask in an hour. All of them have ended. */
const NEW_ROWS = `
  select uuidv7(), now(), now(), 'expired', now(), null, null::uuid from generate_series(1, ${ASKS_OF_KEY_MAX}) n`;

describe('a key with many earlier approvals', () => {
  let ledger: TestLedger;
  let client: Client;
  let explaining: Explaining;
  let harness: BudgetHarness;
  let accountId: string;

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    explaining = await startExplaining(ledger.url, ledger.database);
    const opened = openHarnesses(ledger.database, client, ledger.url, 1, 10);
    [harness] = (await opened) as [BudgetHarness];
    const limits = { limitMicros: asMicros(10), window: null, maxPerCallMicros: asMicros(10) };
    await harness.addNodeWith(null, limits);
    const { ledger: number, consumerId } = harness.view;
    const { rows: accounts } = await client.query<{ id: string }>(
      'select id from farebox.accounts where consumer_id = $1',
      [consumerId],
    );
    accountId = accounts[0]?.id ?? '';
    for (const rows of [OLD_ROWS, NEW_ROWS]) {
      await client.query(
        `insert into farebox.approvals (id, created_at, expires_at, status, decided_at, decision, used_by, account_id, ledger,
           consumer_id, spend_key, developer, developer_id, tool, amount_micros, code, budget, scope, limit_micros, asked_by)
         select r.*, $1, $2, $3, ${SPEND_KEY}, 1, $4, 'search', ${AMOUNT}, 'spend_limit_reached', ${BUDGET}, 'total', 10,
           'payer'
         from (${rows}) r`,
        [accountId, number, consumerId, DEVELOPER_ID],
      );
    }
  });
  after(async () => {
    await explaining?.stop();
    await client?.end();
    await ledger?.drop();
  });

  const ask = (): Ask => ({
    ...harness.view,
    accountId,
    spendKey: SPEND_KEY,
    developerNumber: 1,
    developerId: DEVELOPER_ID,
    tool: 'search',
    amountMicros: AMOUNT,
    code: 'spend_limit_reached',
    budget: BUDGET,
    scope: 'total',
    limitMicros: asMicros(10),
    askedBy: 'payer',
    reason: '',
    expiresInSeconds: 60,
  });

  for (const statistics of ['without statistics', 'with statistics']) {
    describe(statistics, () => {
      before(() => (statistics === 'with statistics' ? client.query('analyze') : undefined));

      it('asks again without reading them', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          const asked = await askApproval(database, ask());
          assert.deepEqual(asked, { kind: 'too_many', of: 'key' });
        });
        assertFewRead(rowsReadOf('approvals', plans), ASKS_OF_KEY_MAX);
      });

      it('learns what refuses without reading them', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          const refusing = await findRefusing(database, {
            ...ask(),
            spend: { number: SPEND_KEY, path: [BUDGET] },
          });
          assert.equal(refusing?.scope, 'per_call');
        });
        assertFewRead(rowsReadOf('approvals', plans));
      });

      it('is charged by rules of its budget that are found without reading them', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          const node = { consumerId: harness.view.consumerId, number: BUDGET };
          const [rules] = await findBudgetRules(database, [node]);
          assert.equal(rules?.onceUntil, null);
        });
        assertFewRead(rowsReadOf('approvals', plans));
      });

      it('is refused without reading them', async () => {
        const key = harness.model.keys.find(({ node }) => node?.number === BUDGET);
        assert.ok(key?.number === SPEND_KEY);
        const plans = await explaining.plansOf(async (database) => {
          const [outcome] = await postDrafts(database, [harness.draft(key, AMOUNT)]);
          assert.equal(outcome?.kind, 'limit_reached');
        });
        assertFewRead(rowsReadOf('approvals', plans));
      });

      it('shows the owner that none is pending, without reading them', async () => {
        const plans = await plansOf(ledger.database, client, async (database) => {
          const view = { ...harness.view, kind: 'payer', spendKey: 0 } as const;
          const page = { limit: LISTED, beforeId: undefined };
          const waiting = await listApprovals(
            database,
            accountId,
            view,
            { status: 'pending' },
            page,
          );
          assert.deepEqual(waiting, []);
        });
        assertFewRead(rowsReadOf('approvals', plans));
      });

      for (const status of [undefined, 'denied', 'expired'] as const) {
        it(`shows the owner a page of ${status ?? 'all'} with one look-up of the budget for each`, async () => {
          const plans = await plansOf(ledger.database, client, async (database) => {
            const view = { ...harness.view, kind: 'payer', spendKey: 0 } as const;
            const page = { limit: LISTED, beforeId: undefined };
            const shown = await listApprovals(database, accountId, view, { status }, page);
            assert.equal(shown.length, LISTED);
            for (const { budgetName, budgetPath } of shown) {
              assert.deepEqual([typeof budgetName, budgetPath], ['string', [BUDGET]]);
            }
          });
          const budgets = rowsReadOf('budget_details', plans);
          assert.ok(budgets <= LISTED, `${budgets} budgets were read`);
        });
      }
    });
  }
});

function assertFewRead(rows: number, atLeast = 0): void {
  assert.ok(rows >= atLeast && rows < READ_MAX, `${rows} approvals were read`);
}
