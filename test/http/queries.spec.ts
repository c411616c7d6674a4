/** Query strings, on every route of the table: a route refuses unknown parameters. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ENDPOINTS } from '../../src/http/routes.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, call, type Answer } from '../support/http.ts';
import { makeOperator, signIn } from '../support/sessions.ts';

describe('a query string', () => {
  let api: TestApi;
  let account: TestAccount;
  let cookie: string;
  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    cookie = await signIn(api, api.databaseUrl, account.email);
    await makeOperator(api.sql, account.email);
  });
  after(() => api?.stop());

  const ask = ({ method, path, role, body }: Endpoint, query: string): Promise<Answer> => {
    const url = path.replace(':month', '2026-11').replace(':id', randomUUID()) + query;
    const key = role === 'developer' ? account.developerKey : account.consumerKey;
    const headers = {
      legacy: { 'x-service-key': account.legacyKey },
      session: { cookie, origin: api.url },
      operator: { cookie, origin: api.url },
      public: {},
    };
    return call(api, method.toUpperCase(), url, {
      ...(role in headers ? { headers: headers[role as keyof typeof headers] } : { key }),
      ...(body && { body: {} }),
    });
  };

  for (const endpoint of ENDPOINTS) {
    const name = `${endpoint.method.toUpperCase()} ${endpoint.path}`;
    it(`with a parameter that ${name} does not have is refused`, async () => {
      await api.changingNothing(async () => {
        assertError(await ask(endpoint, '?limits=5'), 400, 'invalid_request', 'limits');
      });
    });
  }

  for (const endpoint of ENDPOINTS) {
    for (const name of endpoint.query?.required ?? []) {
      it(`without ${name} is refused by ${endpoint.path}`, async () => {
        assertError(await ask(endpoint, ''), 400, 'invalid_request', name);
      });
    }
  }

  const ofTime = ENDPOINTS.filter(
    ({ query }) => query && 'from' in query.properties && 'to' in query.properties,
  );

  it('has a start and an end on each list of charges, on earnings and on what budgets spent', () => {
    assert.equal(ofTime.length, 8);
  });

  for (const outside of ['1969-12-31', '9999-12-31T00:00:01Z']) {
    it(`with the time ${outside} is refused with the bounds`, async () => {
      const answer = await call(api, 'GET', `/v1/usage?to=${outside}`, {
        key: account.consumerKey,
      });
      assertError(answer, 400, 'invalid_request', 'to');
      const body = JSON.stringify(answer.body);
      assert.match(body, /from 1970-01-01T00:00:00Z to 9999-12-31T00:00:00Z/);
    });
  }

  it('with a time on a bound is accepted', async () => {
    const query = '?from=1970-01-01&to=9999-12-31T00:00:00Z';
    const answer = await call(api, 'GET', `/v1/usage${query}`, { key: account.consumerKey });
    assert.equal(answer.status, 200);
  });

  for (const endpoint of ofTime) {
    it(`of GET ${endpoint.path} may not start after its end`, async () => {
      const answer = await ask(endpoint, '?from=2026-11-02&to=2026-11-01');
      assertError(answer, 400, 'invalid_request', 'from');
    });
  }

  it('says which form an id has', async () => {
    const answer = await call(api, 'GET', '/v1/approvals?budgetId=dev_1', {
      key: account.consumerKey,
    });
    const { error } = answer.body as { error: { message: string } };
    assert.equal(
      error.message,
      'budgetId must be an id such as bdg_01a1fd6455e57aa3b31e95f51a48130e.',
    );
  });

  it('lists the known parameters when it refuses one', async () => {
    const answer = await call(api, 'GET', '/v1/top-ups?tool=a', { key: account.developerKey });
    const { error } = answer.body as { error: { message: string } };
    assert.equal(
      error.message,
      'tool is not a query parameter of this endpoint, which takes only limit, cursor.',
    );
  });
});
