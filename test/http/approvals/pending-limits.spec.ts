/** How many questions an owner gets: of one budget, and of an account. */
import assert from 'node:assert/strict';
import { ASKS_OF_ACCOUNT_MAX, ASKS_OF_BUDGET_MAX } from '../../../src/domain/approval.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ask, tryAsk } from '../../support/approval-requests.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { assertError, type Answer } from '../../support/http.ts';

const KEYS = 4;
const ASKS_OF_KEY = 15;

describe('questions to an owner', () => {
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
      { length: ASKS_OF_ACCOUNT_MAX / ASKS_OF_BUDGET_MAX },
      () => ASKS_OF_BUDGET_MAX,
    );
    assert.deepEqual(made, [...full, 0]);
  });

  it('are at most 50 about a balance, no matter how many developers ask', async () => {
    const account = await api.createAccount(1);
    const asked = { apiKey: account.consumerKey, developerId: undefined };
    const statuses: number[] = [];
    for (let developers = 0; developers < KEYS; developers += 1) {
      const developer = await api.createAccount(1);
      for (let asks = 0; asks < ASKS_OF_KEY; asks += 1) {
        const answer = await tryAsk(api, developer, developer.developerKey, 2 + asks, asked);
        statuses.push(answer.status);
      }
    }
    assert.equal(statuses.filter((status) => status === 201).length, ASKS_OF_BUDGET_MAX);
  });

  it('are the same number for the holders of keys, although developers ask as many as they may', async () => {
    const account = await api.createAccount(100);
    const { id: budgetId } = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key } = await makeKey(api, account.consumerKey, budgetId);
    const askBy = async (amounts: number, apiKey: string): Promise<number[]> => {
      const developer = await api.createAccount(1);
      const statuses: number[] = [];
      for (let asks = 0; asks < amounts; asks += 1) {
        const asked = { apiKey, developerId: undefined };
        const answer = await tryAsk(api, developer, developer.developerKey, 2 + asks, asked);
        statuses.push(answer.status);
      }
      return statuses;
    };
    const statuses = [await askBy(20, key), await askBy(20, key), await askBy(20, key)].flat();
    assert.equal(statuses.filter((status) => status === 201).length, ASKS_OF_BUDGET_MAX);
    await ask(api, account, key, 2);

    const other = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key: otherKey } = await makeKey(api, account.consumerKey, other.id);
    assert.deepEqual(await askBy(1, otherKey), [201]);
    await repeatAndExpire(account, ASKS_OF_ACCOUNT_MAX);
    const last = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key: lastKey } = await makeKey(api, account.consumerKey, last.id);
    assert.deepEqual(await askBy(1, lastKey), [400]);
    await ask(api, account, lastKey, 2);
  });

  it('are as few in an hour when each expires soon and new keys ask', async () => {
    const account = await api.createAccount(100);
    const { id: budgetId } = await makeBudget(api, account.consumerKey, { limit: 1 });
    const first = await makeKey(api, account.consumerKey, budgetId);
    await ask(api, account, first.key, 2, { expiresIn: 60 });
    await repeatAndExpire(account, ASKS_OF_BUDGET_MAX - 1);
    const askAnew = async (ofBudget: string) => {
      const { key } = await makeKey(api, account.consumerKey, ofBudget);
      return tryAsk(api, account, key, 2);
    };
    assertError(await askAnew(budgetId), 400, 'too_many_approvals');

    const { id: otherId } = await makeBudget(api, account.consumerKey, { limit: 1 });
    assert.equal((await askAnew(otherId)).status, 201);
    await repeatAndExpire(account, ASKS_OF_ACCOUNT_MAX - ASKS_OF_BUDGET_MAX - 1);
    const { id: lastId } = await makeBudget(api, account.consumerKey, { limit: 1 });
    assertError(await askAnew(lastId), 400, 'too_many_approvals');

    await api.sql.query(
      `update farebox.approvals set created_at = created_at - interval '1 hour', expires_at = expires_at - interval '1 hour'`,
    );
    assert.equal((await askAnew(lastId)).status, 201);
  });

  /** Makes so many more of the account's newest question, and has all of its questions expire. */
  async function repeatAndExpire({ consumerId }: TestAccount, count: number): Promise<void> {
    const id = uuidOf('consumer', consumerId);
    await api.sql.query(
      `insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id, tool,
         amount_micros, code, budget, scope, limit_micros, asked_by, status, decided_at, expires_at)
       select uuidv7(), account_id, ledger, consumer_id, spend_key, developer, developer_id, tool, amount_micros, code,
         budget, scope, limit_micros, asked_by, 'expired', now(), now()
       from (select * from farebox.approvals where consumer_id = $1 order by id desc limit 1) as newest,
         generate_series(1, $2)`,
      [id, count],
    );
    await api.sql.query(
      `update farebox.approvals set expires_at = now() where consumer_id = $1 and status = 'pending'`,
      [id],
    );
  }
});
