/** How many questions may wait for an owner: of one budget, and of an account. */
import assert from 'node:assert/strict';
import { PENDING_OF_ACCOUNT_MAX, PENDING_OF_BUDGET_MAX } from '../../../src/domain/approval.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { tryAsk } from '../../support/approval-requests.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { assertError, type Answer } from '../../support/http.ts';

const KEYS = 4;
const ASKS_OF_KEY = 15;

describe('questions that wait for an owner', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  after(() => api?.stop());

  it('are at most 50 of a budget and 200 of an account, even when many keys ask at once', async () => {
    const account = await api.createAccount(100);
    /** Each key asks once at a time, about different amounts. */
    const askedOf = async (budgetId: string): Promise<Answer[]> => {
      const answers = await Promise.all(
        Array.from({ length: KEYS }, async (_, n) => {
          const { key } = await makeKey(api, account.consumerKey, budgetId);
          const server = api.servers[n % 2] ?? api;
          const own: Answer[] = [];
          for (let asks = 0; asks < ASKS_OF_KEY; asks += 1) {
            own.push(await tryAsk(server, account, key, 2 + asks));
          }
          return own;
        }),
      );
      return answers.flat();
    };
    const made: number[] = [];
    for (let budgets = 0; budgets < 5; budgets += 1) {
      const { id } = await makeBudget(api, account.consumerKey, { limit: 1 });
      const answers = await askedOf(id);
      made.push(answers.filter(({ status }) => status === 201).length);
      for (const answer of answers.filter(({ status }) => status !== 201)) {
        assertError(answer, 400, 'too_many_approvals');
      }
    }
    const full = Array.from(
      { length: PENDING_OF_ACCOUNT_MAX / PENDING_OF_BUDGET_MAX },
      () => PENDING_OF_BUDGET_MAX,
    );
    assert.deepEqual(made, [...full, 0]);
  });
});
