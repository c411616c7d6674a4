/**
 * Every route against every key that it is not for, and every read against what belongs to somebody else.
 * A route that is added without a row here fails.
 */
import assert from 'node:assert/strict';
import { composeKey } from '../../src/domain/api-keys.ts';
import type { Role } from '../../src/http/authenticate.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { ChargeAnswer } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';

interface Row {
  readonly role: Role;
  /** A body that is good, so that nothing but the key can be at fault. */
  readonly body?: (account: TestAccount) => object;
  /** What the id or the cursor of the path names. */
  readonly names?: keyof Owned;
}

/** What the owner has; a stranger must never see it. */
interface Owned {
  readonly charge: string;
  readonly topUp: string;
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
  'GET /v1/charges': { role: 'developer', names: 'charge' },
  'GET /v1/charges/:id': { role: 'developer', names: 'charge' },
  'POST /v1/receipts/verify': { role: 'either', body: () => ({ receipt: 'none' }) },
  'GET /v1/receipts/keys': { role: 'developer' },
  'GET /v1/balance': { role: 'consumer' },
  'GET /v1/usage': { role: 'consumer', names: 'charge' },
  'POST /v1/top-up': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/top-up': { role: 'consumer', names: 'topUp' },
  'GET /v1/top-up/:id': { role: 'consumer', names: 'topUp' },
  'POST /v1/checkout': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/earnings': { role: 'developer' },
  'POST /v1/tools': { role: 'developer', body: () => ({ name: 'new', price: 1 }) },
  'GET /v1/tools': { role: 'developer' },
  'GET /v1/top-ups': { role: 'developer', names: 'topUp' },
  'POST /register': {
    role: 'legacy',
    body: () => ({ id: 'agent', name: 'Agent', protocol: 'http', endpoint: 'https://example.com' }),
  },
  'POST /resolve': { role: 'legacy', body: () => ({ query: 'otters' }) },
  'POST /intent/preview': { role: 'legacy', body: () => ({ query: 'otters' }) },
};

const KEY_OF: Readonly<Record<Role, (account: TestAccount) => string>> = {
  consumer: ({ consumerKey }) => consumerKey,
  developer: ({ developerKey }) => developerKey,
  either: ({ consumerKey }) => consumerKey,
  legacy: ({ legacyKey }) => legacyKey,
};

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const serviceKey = (key: string) => ({ 'x-service-key': key });
/** As the route takes it. */
const sent = (role: Role, key: string) => (role === 'legacy' ? serviceKey(key) : bearer(key));

/** Headers that no route of the role lets in. */
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
    if (role === 'either') return bearer(legacyKey);
    return sent(role, role === 'consumer' ? developerKey : consumerKey);
  },
  'a key of a third kind': (role, owner) =>
    sent(role, role === 'legacy' ? owner.developerKey : owner.legacyKey),
  'a key that was never made': (role) =>
    sent(role, composeKey('fare', role === 'either' ? 'developer' : role, new Uint8Array(32))),
  'a revoked key': (role, _, revoked) => sent(role, KEY_OF[role](revoked)),
  'the right key in the wrong header': (role, owner) =>
    role === 'legacy' ? bearer(owner.legacyKey) : serviceKey(KEY_OF[role](owner)),
};

/** An error, but for the id of its request. */
function wordsOf({ body }: Answer): object {
  return { ...(body as { error: object }).error, requestId: '' };
}

describe('tenancy', () => {
  let api: TestApi;
  let owner: TestAccount;
  let revoked: TestAccount;
  let stranger: TestAccount;
  let owned: Owned;

  before(async () => {
    api = await startTestApi();
    [owner, revoked] = [await api.createAccount(10), await api.createAccount(10)];
    stranger = await api.createAccount(10);
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

  for (const [route, { role, body, names }] of Object.entries(ROUTES)) {
    const [method, path] = route.split(' ') as [string, string];
    const read = (who: TestAccount, query = ''): Promise<Answer> => {
      const id = names === undefined ? '' : owned[names];
      const headers = sent(role, KEY_OF[role](who));
      return call(api, method, path.replace(':id', id) + query, { headers });
    };

    for (const [what, headersOf] of Object.entries(REFUSED)) {
      it(`${route} refuses ${what}, and does nothing`, async () => {
        const answer = await api.changingNothing(() =>
          call(api, method, path.replace(':id', owned[names ?? 'charge']), {
            headers: headersOf(role, owner, revoked),
            ...(body ? { body: body(owner) } : {}),
          }),
        );
        const code = role === 'developer' ? 'invalid_secret_key' : 'invalid_api_key';
        assertError(answer, 401, code);
      });
    }

    if (method === 'GET') {
      it(`${route} shows the owner what is its own, and a stranger nothing of it`, async () => {
        assert.equal((await read(owner)).status, 200);
        const answer = await read(stranger);
        if (path.endsWith('/:id')) assertError(answer, 404, 'not_found');
        else assert.equal(answer.status, 200);
        assertShowsNothingOwned(answer);
      });
    }

    if (names !== undefined && !path.endsWith('/:id')) {
      it(`${route} shows a stranger nothing behind the owner’s cursor`, async () => {
        // The largest id there is, so that everything lies behind it.
        const last = owned[names].replace(/[0-9a-f]{32}$/, 'f'.repeat(32));
        for (const cursor of [owned[names], last]) {
          const answer = await read(stranger, `?cursor=${cursor}`);
          assert.equal(answer.status, 200);
          assertShowsNothingOwned(answer);
        }
      });
    }
  }

  function assertShowsNothingOwned({ body }: Answer): void {
    const shown = JSON.stringify(body);
    const secrets = [owner.consumerId, owner.developerId, 'owned tool', ...Object.values(owned)];
    for (const secret of secrets) assert.ok(!shown.includes(secret), secret);
  }

  it('answers a stranger’s id and an id of nothing with the same words', async () => {
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
