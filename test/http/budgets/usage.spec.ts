/**
 * What the keys of a budget spent, by key, tool, developer and day: exact while it is in the tail, and after
 * rollups.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidFloor, uuidOf } from '../../../src/domain/ids.ts';
import { BudgetUsageReply } from '../../../src/schemas/budgets.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import { postFittingCharges } from '../../../src/store/charges/post-charges.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import { makeBudget, makeKey, spend, type Budget } from '../../support/budget-requests.ts';
import { newDraft, RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { endAll } from '../../support/end-all.ts';
import { askCapture, askHold } from '../../support/hold-requests.ts';
import { PlacedHoldReply } from '../../../src/schemas/holds.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

const TUESDAY = Date.UTC(2026, 2, 10);

const day = (date: string) => `2026-03-${date}T00:00:00.000Z`;

type Key = Awaited<ReturnType<typeof makeKey>>;

describe('GET /v1/budgets/:id/usage', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let account: TestAccount;
  let other: TestAccount;
  let key: string;
  let [root, leaf, beside] = [] as unknown as [Budget, Budget, Budget];
  let [atRoot, atLeaf, atBeside] = [] as unknown as [Key, Key, Key];
  /** The day of the charges that are made now. */
  let today: string;

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    [account, other] = [await api.createAccount(100), await api.createAccount(100)];
    key = account.consumerKey;
    root = await makeBudget(api, key);
    leaf = await makeBudget(api, key, { parentId: root.id });
    beside = await makeBudget(api, key);
    atRoot = await makeKey(api, key, root.id);
    atLeaf = await makeKey(api, key, leaf.id, { name: 'session 17' });
    atBeside = await makeKey(api, key, beside.id);
    // Across midnight, by the clock of the charges: in one flush, and in one of its own.
    await chargeAt([
      { timeMs: TUESDAY - 1, dollars: 1, spend: { number: 1, path: [1] } },
      { timeMs: TUESDAY, dollars: 2, spend: { number: 1, path: [1] } },
    ]);
    await chargeAt([
      { timeMs: TUESDAY + DAY_MS - 1, dollars: 4, spend: { number: 2, path: [1, 2] } },
    ]);
    // Now: a plain charge, a refund, and a hold of which half is captured.
    const by = (who: TestAccount, spendKey: string, amount: number, tool: string) =>
      spend(api, { ...account, developerKey: who.developerKey }, spendKey, amount, { tool });
    assert.equal((await spend(api, account, key, 7)).status, 201);
    assert.equal((await by(account, atBeside.key, 9, 'fetch')).status, 201);
    const refunded = bodyOf(await by(other, atLeaf.key, 8, 'fetch'), 201, ChargeReply);
    today = `${refunded.createdAt.slice(0, 10)}T00:00:00.000Z`;
    const refund = { key: other.developerKey, body: { amount: 5.5 } };
    assert.equal(
      (await call(api, 'POST', `/v1/charges/${refunded.id}/refund`, refund)).status,
      201,
    );
    const spender = { ...account, consumerKey: atLeaf.key };
    const hold = bodyOf(
      await askHold(api, spender, { amount: 1, tool: 'fetch' }),
      201,
      PlacedHoldReply,
    );
    assert.equal((await askCapture(api, account, hold.id, { amount: 0.5 })).status, 201);
  });
  after(() =>
    endAll(
      () => proveBooks(api.env, { processor: false }),
      () => harness.close(),
      () => api.stop(),
    ),
  );

  interface Timed extends Pick<ChargeDraft, 'spend'> {
    readonly timeMs: number;
    readonly dollars: number;
  }

  /** By the statement, in one flush, so that they have times of their own. */
  async function chargeAt(charges: readonly Timed[]) {
    const [party] = await api.sql
      .query<{ ledger: number; number: number }>(
        'select ledger, developer_number as number from farebox.accounts where consumer_id = $1',
        [uuidOf('consumer', account.consumerId)],
      )
      .then(({ rows }) => rows);
    const { ledger, number: developerNumber } = party ?? assert.fail();
    const consumer = { ledger, consumerId: uuidOf('consumer', account.consumerId) ?? '' };
    const drafts = charges.map(({ timeMs, dollars, spend: paidBy }) => ({
      ...newDraft(consumer, dollars * 1e6),
      id: uuidFloor(timeMs).slice(0, -12) + randomBytes(6).toString('hex'),
      developerId: uuidOf('developer', account.developerId) ?? '',
      developerNumber,
      spend: paidBy,
    }));
    const made = await postFittingCharges(harness.database, drafts, RECEIPT_KEY, replayWindow());
    for (const outcome of made) assert.equal(outcome?.kind, 'posted');
  }

  const ask = (id: string, query = '', by = key) =>
    call(api, 'GET', `/v1/budgets/${id}/usage${query}`, { key: by });
  const usage = async (id: string, query = '', by = key) =>
    bodyOf(await ask(id, query, by), 200, BudgetUsageReply);
  const total = async (query: string) => {
    const { spent, charges } = (await usage(root.id, query)).total;
    return [spent, charges];
  };
  const file = async (id: string, query = '', by = key) => {
    const headers = { authorization: `Bearer ${by}` };
    const response = await fetch(`${api.url}/v1/budgets/${id}/usage.csv${query}`, { headers });
    assert.equal(response.status, 200);
    return (await response.text()).split('\r\n');
  };

  const by = async (what: string) => (await usage(root.id, `?by=${what}`)).usage;
  const STATES: Readonly<Record<string, () => Promise<unknown>>> = {
    'while all of it is in the tail': async () => {},
    'once it is rolled up': () => rollUp(harness.database),
    'once it is rebuilt': () => rebuildRollups(harness.database),
  };
  for (const [state, reach] of Object.entries(STATES)) {
    describe(state, () => {
      before(reach);

      it('adds up what all keys of the budget and below it spent, and no other', async () => {
        assert.deepEqual(await usage(root.id), {
          budgetId: root.id,
          total: { spent: 10, charges: 5 },
          usage: [
            { tool: 'fetch', spent: 3, charges: 2 },
            { tool: 'search', spent: 7, charges: 3 },
          ],
          hasMore: false,
          nextCursor: null,
        });
        assert.deepEqual((await usage(beside.id)).total, { spent: 9, charges: 1 });
      });

      it('adds up by key, developer and day', async () => {
        assert.deepEqual(await by('key'), [
          { keyId: atLeaf.id, keyName: 'session 17', spent: 7, charges: 3 },
          { keyId: atRoot.id, keyName: null, spent: 3, charges: 2 },
        ]);
        assert.deepEqual(await by('developer'), [
          { developerId: account.developerId, spent: 7.5, charges: 4 },
          { developerId: other.developerId, spent: 2.5, charges: 1 },
        ]);
        assert.deepEqual(await by('day'), [
          { from: today, spent: 3, charges: 2 },
          { from: '2026-03-10T00:00:00.000Z', spent: 6, charges: 2 },
          { from: '2026-03-09T00:00:00.000Z', spent: 1, charges: 1 },
        ]);
      });

      it('starts at `from` and ends before `to`', async () => {
        assert.deepEqual(await total('?from=2026-03-10'), [9, 4]);
        assert.deepEqual(await total('?to=2026-03-10'), [1, 1]);
        assert.deepEqual(await total('?from=2026-03-10&to=2026-03-11&by=key'), [6, 2]);
        assert.deepEqual(await total('?from=2026-03-11&to=2026-03-12&by=day'), [0, 0]);
      });

      it('goes page by page in every grouping', async () => {
        for (const group of ['key', 'tool', 'developer', 'day']) {
          const whole = await usage(root.id, `?by=${group}`);
          const seen: unknown[] = [];
          for (let query: string | null = ''; query !== null;) {
            const page = await usage(root.id, `?by=${group}&limit=1${query}`);
            assert.deepEqual(page.total, whole.total);
            seen.push(...page.usage);
            query = page.nextCursor && `&cursor=${encodeURIComponent(page.nextCursor)}`;
            assert.equal(query !== null, page.hasMore);
          }
          assert.deepEqual(seen, whole.usage);
        }
      });

      it('is a file with a row for each key, tool, developer and day', async () => {
        const [header, ...rows] = await file(root.id, '?to=2026-03-12');
        assert.equal(header, 'from,keyId,keyName,tool,developerId,charges,amount');
        assert.deepEqual(rows, [
          `${day('09')},${atRoot.id},,search,${account.developerId},1,1.000000`,
          `${day('10')},${atRoot.id},,search,${account.developerId},1,2.000000`,
          `${day('10')},${atLeaf.id},session 17,search,${account.developerId},1,4.000000`,
          '',
        ]);
        assert.equal((await file(root.id)).length, 7);
      });
    });
  }

  it('is shown to a spend key of its own budget only', async () => {
    assert.equal((await usage(leaf.id, '', atLeaf.key)).total.spent, 7);
    assert.equal((await file(leaf.id, '', atLeaf.key)).length, 5);
    for (const id of [root.id, beside.id]) {
      assertError(await ask(id, '', atLeaf.key), 404, 'not_found');
      assertError(
        await call(api, 'GET', `/v1/budgets/${id}/usage.csv`, { key: atLeaf.key }),
        404,
        'not_found',
      );
    }
    // Without mayDelegate it does not see the budgets below as such, but what they took of its own.
    assert.equal((await usage(root.id, '', atRoot.key)).total.spent, 10);
    assertError(await ask(leaf.id, '', atRoot.key), 404, 'not_found');
    const { total, usage: ofKeys } = await usage(root.id, '?by=key', atRoot.key);
    assert.equal(total.spent, 10);
    assert.deepEqual(
      ofKeys.map(({ keyId, spent }) => [keyId, spent]),
      [[atRoot.id, 3]],
    );
    const rows = await file(root.id, '', atRoot.key);
    assert.ok(rows.length > 2);
    assert.doesNotMatch(rows.join('\n'), new RegExp(atLeaf.id));
  });

  for (const [query, code, param] of [
    ['?by=month', 'invalid_request', 'by'],
    ['?from=2026-03-10T01:00Z', 'invalid_request', 'from'],
    ['?from=2026-03-10&to=2026-03-10', 'invalid_request', 'from'],
    ['?tool=search', 'invalid_request', 'tool'],
    ['?limit=0', 'invalid_request', 'limit'],
    ['?by=key&cursor=search', 'invalid_cursor', 'cursor'],
    ['?by=day&cursor=2026-02-31', 'invalid_cursor', 'cursor'],
    ['?cursor=%00', 'invalid_request', 'cursor'],
    // A key of nobody, as the key of another account would be.
    ['?by=key&cursor=key_01a1fd6455e57aa3b31e95f51a48130e', 'invalid_cursor', 'cursor'],
    ['?by=developer&cursor=dev_01a1fd6455e57aa3b31e95f51a48130e', 'invalid_cursor', 'cursor'],
  ] as const) {
    it(`refuses ${query}`, async () => {
      assertError(await ask(root.id, query), 400, code, param);
    });
  }
});
