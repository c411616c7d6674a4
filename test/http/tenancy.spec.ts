/**
 * Every route against every key that it is not for, and every read against what belongs to somebody else.
 * A route that is added without a row here fails.
 */
import assert from 'node:assert/strict';
import { composeKey } from '../../src/domain/api-keys.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { ChargeAnswer } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';

type Role = 'consumer' | 'developer' | 'either';

interface Row {
  readonly role: Role;
  /** A body that is good, so that nothing but the key can be at fault. */
  readonly body?: (account: TestAccount) => object;
}

const chargeBody = ({ consumerKey: apiKey }: TestAccount) => ({
  apiKey,
  tool: 'theirs',
  amount: 1,
});

const ROUTES: Readonly<Record<string, Row>> = {
  'POST /v1/charges': { role: 'developer', body: chargeBody },
  'POST /v1/charges/batch': {
    role: 'developer',
    body: (account) => ({ charges: [chargeBody(account)] }),
  },
  'GET /v1/charges': { role: 'developer' },
  'GET /v1/charges/:id': { role: 'developer' },
  'POST /v1/receipts/verify': { role: 'either', body: () => ({ receipt: 'none' }) },
  'GET /v1/receipts/keys': { role: 'developer' },
  'GET /v1/balance': { role: 'consumer' },
  'GET /v1/usage': { role: 'consumer' },
  'POST /v1/top-up': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/top-up': { role: 'consumer' },
  'GET /v1/top-up/:id': { role: 'consumer' },
  'POST /v1/checkout': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/earnings': { role: 'developer' },
  'POST /v1/tools': { role: 'developer', body: () => ({ name: 'new', price: 1 }) },
  'GET /v1/tools': { role: 'developer' },
  'GET /v1/top-ups': { role: 'developer' },
};

/** An error, but for the id of its request. */
function wordsOf({ body }: Answer): object {
  return { ...(body as { error: object }).error, requestId: '' };
}

describe('tenancy', () => {
  let api: TestApi;
  let owner: TestAccount;
  let revoked: TestAccount;
  /** What the owner has, by the path parameter of the route that shows it. */
  let owned: { readonly charge: string; readonly topUp: string };

  before(async () => {
    api = await startTestApi();
    [owner, revoked] = [await api.createAccount(10), await api.createAccount(10)];
    const answer = await charge(api, owner, { tool: 'owned tool', metadata: { owned: true } });
    const topUps = await api.sql.query<{ id: string }>(
      `select replace(t.id::text, '-', '') as id
       from farebox.top_ups t join farebox.accounts a on a.id = t.account_id where a.email = $1`,
      [owner.email],
    );
    owned = {
      charge: bodyOf(answer, 201, ChargeAnswer).id,
      topUp: `tu_${topUps.rows[0]?.id}`,
    };
    await api.sql.query(
      `update farebox.api_keys k set revoked_at = now(), changed_at = now()
       from farebox.accounts a where a.id = k.account_id and a.email = $1`,
      [revoked.email],
    );
  });
  after(() => api.stop());

  it('has a row here for every route, and none for a route that is gone', () => {
    assert.deepEqual(
      ENDPOINTS.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted(),
      Object.keys(ROUTES).toSorted(),
    );
  });

  const wrongKeys: Readonly<Record<string, (role: Role) => string | undefined>> = {
    'no key': () => undefined,
    'a malformed key': () => 'fare_ck_live_short',
    'a key of the other kind': (role) =>
      role === 'either'
        ? owner.legacyKey
        : role === 'consumer'
          ? owner.developerKey
          : owner.consumerKey,
    'a key that was never made': (role) =>
      composeKey('fare', role === 'either' ? 'consumer' : role, new Uint8Array(32)),
    'a revoked key': (role) => (role === 'developer' ? revoked.developerKey : revoked.consumerKey),
    'a legacy key': () => owner.legacyKey,
  };

  for (const [route, { role, body }] of Object.entries(ROUTES)) {
    const [method, path] = route.split(' ') as [string, string];

    for (const [what, keyOf] of Object.entries(wrongKeys)) {
      it(`${route} refuses ${what}, and does nothing`, async () => {
        const key = keyOf(role);
        const answer = await api.changingNothing(() =>
          call(api, method, path.replace(':id', owned.charge), {
            ...(key === undefined ? {} : { key }),
            ...(body ? { body: body(owner) } : {}),
          }),
        );
        const code = role === 'developer' ? 'invalid_secret_key' : 'invalid_api_key';
        assertError(answer, 401, code);
      });
    }

    if (method === 'GET') {
      it(`${route} shows the owner what is its own, and a stranger nothing of it`, async () => {
        const stranger = await api.createAccount(10);
        const read = ({ consumerKey, developerKey }: TestAccount): Promise<Answer> => {
          const id = path.startsWith('/v1/top-up') ? owned.topUp : owned.charge;
          const key = role === 'consumer' ? consumerKey : developerKey;
          return call(api, method, path.replace(':id', id), { key });
        };
        assert.equal((await read(owner)).status, 200);
        const answer = await read(stranger);
        if (path.endsWith('/:id')) assertError(answer, 404, 'not_found');
        else assert.equal(answer.status, 200);
        const shown = JSON.stringify(answer.body);
        const secrets = [
          owner.consumerId,
          owner.developerId,
          'owned tool',
          ...Object.values(owned),
        ];
        for (const secret of secrets) assert.ok(!shown.includes(secret), secret);
      });
    }
  }

  for (const path of ['/v1/charges', '/v1/usage', '/v1/top-up', '/v1/top-ups']) {
    it(`GET ${path} shows a stranger nothing behind the cursor of the owner`, async () => {
      const stranger = await api.createAccount(0);
      const cursor = path.startsWith('/v1/top-up') ? owned.topUp : owned.charge;
      const higher = `${cursor.slice(0, -1)}${cursor.endsWith('f') ? 'e' : 'f'}`;
      const key =
        path === '/v1/usage' || path === '/v1/top-up'
          ? stranger.consumerKey
          : stranger.developerKey;
      for (const each of [cursor, higher]) {
        const answer = await call(api, 'GET', `${path}?cursor=${each}`, { key });
        assert.equal(answer.status, 200);
        assert.ok(!JSON.stringify(answer.body).includes(owner.consumerId));
        assert.ok(!JSON.stringify(answer.body).includes(owned.topUp));
      }
    });
  }

  it('answers a stranger’s id and an id of nothing with the same words', async () => {
    const stranger = await api.createAccount(0);
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
