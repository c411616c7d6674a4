/** Approvals of calls that come in batches. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ask, decide, untilDecided } from '../../support/approval-requests.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { call } from '../../support/http.ts';

describe('a one-time approval', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('lets a call pass in its turn, before what follows it in a batch', async () => {
    const account = await api.createAccount(100);
    const { consumerKey, developerKey } = account;
    const budget = await makeBudget(api, consumerKey, { maxPerCall: 1 });
    const { key: spendKey } = await makeKey(api, consumerKey, budget.id);
    const asked = await ask(api, account, spendKey, 60);
    await decide(api, consumerKey, asked.id, 'once');
    await untilDecided(api, spendKey, asked.id);
    const apiKeys = [spendKey, consumerKey];
    const charges = apiKeys.map((apiKey) => ({ apiKey, tool: 'search', amount: 60 }));
    const body = { charges };
    const answer = await call(api, 'POST', '/v1/charges/batch', { key: developerKey, body });
    const { results } = answer.body as { results: readonly { status: number }[] };
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 402],
    );
  });
});
