/**
 * Every route against every key that it does not accept, and every read against another account's data.
 * A new route without a row here fails.
 */
import assert from 'node:assert/strict';
import { composeKey } from '../../src/domain/api-keys.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import type { Role } from '../../src/http/authenticate.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { ApprovalReply } from '../../src/schemas/approvals.ts';
import { AgentReply } from '../../src/schemas/agents.ts';
import { BudgetReply } from '../../src/schemas/budgets.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { NewKeyReply } from '../../src/schemas/keys.ts';
import { ToolsReply } from '../../src/schemas/tools.ts';
import { PlacedHoldReply } from '../../src/schemas/holds.ts';
import { GrantReply } from '../../src/schemas/grants.ts';
import { InvocationReply } from '../../src/schemas/invocations.ts';
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { askHold } from '../support/hold-requests.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';
import { takeLease } from '../support/lease-requests.ts';
import { makeOperator, signIn } from '../support/sessions.ts';
import {
  agentBody,
  approvalBody,
  grantBody,
  invocationBody,
  ROUTES,
  type Owned,
} from './tenancy-routes.ts';

const KEY_OF: Readonly<Record<Role, (account: TestAccount) => string>> = {
  consumer: ({ consumerKey }) => consumerKey,
  developer: ({ developerKey }) => developerKey,
  either: ({ consumerKey }) => consumerKey,
  payer: ({ consumerKey }) => consumerKey,
  asker: ({ consumerKey }) => consumerKey,
  legacy: ({ legacyKey }) => legacyKey,
  session: ({ email }) => cookies.get(email) ?? '',
  operator: ({ email }) => cookies.get(email) ?? '',
};

/** The session cookies of the accounts, by email address. */
const cookies = new Map<string, string>();

const CODE_OF: Readonly<Record<Role, ErrorCode>> = {
  consumer: 'invalid_api_key',
  developer: 'invalid_secret_key',
  either: 'invalid_api_key',
  payer: 'invalid_api_key',
  asker: 'invalid_api_key',
  legacy: 'invalid_api_key',
  session: 'session_required',
  operator: 'session_required',
};

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const serviceKey = (key: string) => ({ 'x-service-key': key });
const isOfSession = (role: Role) => role === 'session' || role === 'operator';
/** In the form that the route accepts. */
const sent = (role: Role, key: string) => {
  if (isOfSession(role)) {
    const cookie = key.startsWith('farebox.') ? key : `farebox.session_token=${key}`;
    return { cookie, origin: ownOrigin };
  }
  return role === 'legacy' ? serviceKey(key) : bearer(key);
};
let ownOrigin = '';

function routesWhere(matches: (role: Endpoint['role']) => boolean): string[] {
  return ENDPOINTS.filter(({ role }) => matches(role)).map(
    ({ method, path }) => `${method.toUpperCase()} ${path}`,
  );
}

/** Headers that no route of the role accepts. */
const REFUSED: Readonly<
  Record<
    string,
    (role: Role, owner: TestAccount, revoked: TestAccount) => Readonly<Record<string, string>>
  >
> = {
  'no key': () => ({}),
  'a malformed key': (role) => sent(role, 'fare_ck_live_short'),
  'a key of another kind': (role, owner) => {
    const { consumerKey, developerKey, legacyKey } = owner;
    if (role === 'either' || role === 'asker') return bearer(legacyKey);
    if (isOfSession(role)) return bearer(developerKey);
    return sent(role, role === 'consumer' || role === 'payer' ? developerKey : consumerKey);
  },
  'a key of a third kind': (role, owner) =>
    isOfSession(role)
      ? bearer(owner.consumerKey)
      : sent(role, role === 'legacy' ? owner.developerKey : owner.legacyKey),
  'a key that was never made': (role) =>
    sent(
      role,
      composeKey(
        'fare',
        role === 'payer'
          ? 'consumer'
          : role === 'consumer' || role === 'legacy'
            ? role
            : 'developer',
        new Uint8Array(32),
        'live',
      ),
    ),
  'a revoked key': (role, _, revoked) => sent(role, KEY_OF[role](revoked)),
  'the right key in the wrong header': (role, owner) =>
    role === 'legacy' ? bearer(owner.legacyKey) : serviceKey(KEY_OF[role](owner)),
};

/** These tell what does not exist. */
const NOT_FOUND: ReadonlyMap<string, ErrorCode> = new Map([
  ['hold', 'hold_not_found'],
  ['lease', 'lease_not_found'],
]);

/** An error, except for its request id. */
function wordsOf({ body }: Answer): object {
  return { ...(body as { error: object }).error, requestId: '' };
}

describe('tenancy', () => {
  let api: TestApi;
  let owner: TestAccount;
  let revoked: TestAccount;
  let stranger: TestAccount;
  let owned: Owned;
  let spendKey: string;

  before(async () => {
    api = await startTestApi();
    [owner, revoked] = [await api.createAccount(10), await api.createAccount(10)];
    stranger = await api.createAccount(10);
    const answer = await charge(api, owner, { tool: 'owned tool', metadata: { owned: true } });
    const held = await askHold(api, owner, { tool: 'owned tool' });
    const topUps = await api.sql.query<{ id: string }>(
      `select replace(t.id::text, '-', '') as id
       from farebox.top_ups t join farebox.accounts a on a.id = t.account_id where a.email = $1`,
      [owner.email],
    );
    const keys = await api.sql.query<{ id: string; account: string }>(
      `select replace(k.id::text, '-', '') as id, replace(a.id::text, '-', '') as account
       from farebox.api_keys k join farebox.accounts a on a.id = k.account_id where a.email = $1`,
      [owner.email],
    );
    const tools = await call(api, 'GET', '/v1/tools', { key: owner.developerKey });
    const toolId = bodyOf(tools, 200, ToolsReply).tools[0]?.id ?? '';
    await call(api, 'PATCH', `/v1/tools/${toolId}`, {
      key: owner.developerKey,
      body: { card: { call: 0.5 } },
    });
    owned = {
      tool: toolId,
      charge: bodyOf(answer, 201, ChargeReply).id,
      hold: bodyOf(held, 201, PlacedHoldReply).id,
      topUp: `tu_${topUps.rows[0]?.id}`,
      key: `key_${keys.rows[0]?.id}`,
      account: `acct_${keys.rows[0]?.account}`,
      ...(await makeBudget()),
      ...(await askApproval()),
      webhookEndpoint: await makeWebhookEndpoint(),
      ...(await invokeAgent()),
    };
    ownOrigin = api.url;
    for (const { email } of [owner, revoked, stranger]) {
      cookies.set(email, await signIn(api, api.databaseUrl, email));
    }
    for (const { email } of [owner, revoked]) await makeOperator(api.sql, email);
    await api.sql.query(
      'delete from console.sessions s using console.users u where u.id = s.user_id and u.email = $1',
      [revoked.email],
    );
    await api.sql.query(
      `update farebox.api_keys k set revoked_at = now(), changed_at = now()
       from farebox.accounts a where a.id = k.account_id and a.email = $1`,
      [revoked.email],
    );
  });
  after(() => api.stop());

  it('has a row here for every route, and no row without a route', () => {
    assert.deepEqual(
      routesWhere((role) => role !== 'public').toSorted(),
      Object.keys(ROUTES).toSorted(),
    );
  });

  it('needs no key for the keys that are published, and for nothing else', () => {
    assert.deepEqual(
      routesWhere((role) => role === 'public'),
      ['GET /v1/receipts/public-keys'],
    );
  });

  for (const [route, { role, body, names, query: asked = '' }] of Object.entries(ROUTES)) {
    const [method, template] = route.split(' ') as [string, string];
    const path =
      template.replace(':month', new Date().toISOString().slice(0, 7)).replace(':version', '1') +
      asked;
    const read = (who: TestAccount, query = ''): Promise<Answer> => {
      const id = names === undefined ? '' : owned[names];
      const headers = sent(role, KEY_OF[role](who));
      return call(api, method, path.replace(':id', id) + query, { headers });
    };

    if (role !== 'payer' && role !== 'asker') {
      it(`${route} refuses a spend key, and does nothing`, async () => {
        const answer = await api.changingNothing(() =>
          call(api, method, path.replace(':id', owned[names ?? 'charge']), {
            headers: sent(role, spendKey),
            ...(body ? { body: body(owner) } : {}),
          }),
        );
        assertError(answer, 401, CODE_OF[role]);
      });
    }

    for (const [what, headersOf] of Object.entries(REFUSED)) {
      it(`${route} refuses ${what}, and does nothing`, async () => {
        const answer = await api.changingNothing(() =>
          call(api, method, path.replace(':id', owned[names ?? 'charge']), {
            headers: headersOf(role, owner, revoked),
            ...(body ? { body: body(owner) } : {}),
          }),
        );
        assertError(answer, 401, CODE_OF[role]);
      });
    }

    if (method === 'GET') {
      it(`${route} shows owners their own data, and a stranger nothing of it`, async () => {
        assert.equal((await read(owner)).status, 200);
        const answer = await read(stranger);
        if (role === 'operator') {
          assertError(answer, 403, 'operator_required');
        } else if (path.includes('/:id')) {
          assertError(answer, 404, NOT_FOUND.get(names ?? '') ?? 'not_found');
        } else assert.equal(answer.status, 200);
        assertShowsNothingOwned(answer);
      });
    }

    if (role !== 'legacy') {
      const bySession = (who: TestAccount, headers: Readonly<Record<string, string>>) =>
        call(api, method, path.replace(':id', owned[names ?? 'charge']), {
          headers: { ...sent('session', cookies.get(who.email) ?? ''), ...headers },
          ...(body ? { body: body(owner) } : {}),
        });

      if (method === 'GET') {
        it(`${route} shows a stranger’s session nothing`, async () => {
          const answer = await bySession(stranger, {});
          const expected = role === 'operator' ? [403] : [200, 404];
          assert.ok(expected.includes(answer.status), JSON.stringify(answer.body));
          assertShowsNothingOwned(answer);
        });
      } else {
        it(`${route} accepts no change from a page of another origin`, async () => {
          for (const origin of ['https://elsewhere.example', 'null', `${api.url}.example`, '']) {
            const answer = await api.changingNothing(() => bySession(owner, { origin }));
            assertError(answer, 403, 'foreign_origin');
          }
        });

        if (path.includes('/:id')) {
          it(`${route} changes nothing for a stranger’s session`, async () => {
            const answer = await api.changingNothing(() => bySession(stranger, {}));
            if (role === 'operator') assertError(answer, 403, 'operator_required');
            else assertError(answer, 404, NOT_FOUND.get(names ?? '') ?? 'not_found');
            assertShowsNothingOwned(answer);
          });
        }
      }
    }

    if (names !== undefined && !path.includes(':id')) {
      it(`${route} shows a stranger nothing by the owner’s cursor`, async () => {
        // The largest possible id, so that everything lies behind it.
        const last = owned[names].replace(/[0-9a-f]{32}$/, 'f'.repeat(32));
        for (const cursor of [owned[names], last]) {
          const answer = await read(stranger, `?cursor=${cursor}`);
          // The order of budgets depends on the row of the cursor, which a stranger has as little as nobody's.
          if (path === '/v1/budgets') assertError(answer, 400, 'invalid_cursor', 'cursor');
          else assert.equal(answer.status, 200);
          assertShowsNothingOwned(answer);
        }
      });
    }
  }

  async function makeBudget(): Promise<Pick<Owned, 'budget' | 'spendKey' | 'lease'>> {
    const key = owner.consumerKey;
    const budget = bodyOf(
      await call(api, 'POST', '/v1/budgets', {
        key,
        body: { name: 'owned budget', allowLeases: true },
      }),
      201,
      BudgetReply,
    ).id;
    const made = bodyOf(
      await call(api, 'POST', `/v1/budgets/${budget}/keys`, { key, body: {} }),
      201,
      NewKeyReply,
    );
    spendKey = made.key;
    const { id: lease } = await takeLease(api, owner, spendKey);
    return { budget, spendKey: made.id, lease };
  }

  async function askApproval(): Promise<Pick<Owned, 'approval'>> {
    const key = owner.consumerKey;
    const asked = await call(api, 'POST', '/v1/approvals', { key, body: approvalBody(owner) });
    return { approval: bodyOf(asked, 201, ApprovalReply).id };
  }

  async function makeWebhookEndpoint(): Promise<string> {
    const body = { url: 'https://example.com/owned', description: 'owned endpoint' };
    const answer = await call(api, 'POST', '/v1/webhook-endpoints', {
      key: owner.developerKey,
      body,
    });
    return bodyOf(answer, 201, NewWebhookEndpointReply).id;
  }

  /** No workflow calls the agent, so its answer is written by hand. */
  async function invokeAgent(): Promise<Pick<Owned, 'grant' | 'invocation'>> {
    const post = (path: string, body: object) =>
      call(api, 'POST', path, { headers: serviceKey(owner.legacyKey), body });
    bodyOf(await post('/register', agentBody), 201, AgentReply);
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const granted = await post('/grant', { ...grantBody, expiresAt });
    const grant = bodyOf(granted, 201, GrantReply).id;
    const { id } = bodyOf(await post('/invoke', invocationBody(grant)), 202, InvocationReply);
    await api.sql.query(
      `update farebox.invocations set status = 'succeeded', ended_at = now(), result = '1',
         result_hash = sha256('1')`,
    );
    return { grant, invocation: id };
  }

  function assertShowsNothingOwned({ body }: Answer): void {
    const shown = JSON.stringify(body);
    const words = [
      'owned tool',
      'owned reason',
      'owned budget',
      'owned caller',
      'owned capability',
      'owned endpoint',
    ];
    const secrets = [owner.consumerId, owner.developerId, ...words, ...Object.values(owned)];
    for (const secret of secrets) assert.ok(!shown.includes(secret), secret);
  }

  it('lets a stranger neither revoke nor use a grant', async () => {
    const headers = serviceKey(stranger.legacyKey);
    const body = invocationBody(owned.grant);
    const answers = [
      await call(api, 'POST', `/grant/${owned.grant}/revoke`, { headers }),
      await call(api, 'POST', '/invoke', { headers, body }),
    ];
    assertError(answers[0] as Answer, 404, 'not_found');
    assertError(answers[1] as Answer, 404, 'not_found', 'grantId');
    const grant = await call(api, 'GET', `/grant/${owned.grant}`, {
      headers: serviceKey(owner.legacyKey),
    });
    const { status, uses } = bodyOf(grant, 200, GrantReply);
    assert.deepEqual([status, uses], ['active', 1]);
  });

  it('answers a stranger’s id and an unknown id in the same words', async () => {
    const nothing = `chg_${'0'.repeat(32)}`;
    const [theirs, none] = await Promise.all(
      [owned.charge, nothing].map((id) =>
        call(api, 'GET', `/v1/charges/${id}`, { key: stranger.developerKey }),
      ),
    );
    assert.ok(theirs && none);
    assert.deepEqual(wordsOf(theirs), wordsOf(none));
  });
});
