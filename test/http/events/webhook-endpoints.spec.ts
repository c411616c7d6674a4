/** Webhook endpoints over HTTP, without a worker: what is accepted, what is refused and what is shown. */
import assert from 'node:assert/strict';
import type { Static } from 'typebox';
import { uuidOf } from '../../../src/domain/ids.ts';
import { WEBHOOK_ENDPOINTS_MAX } from '../../../src/domain/webhook-endpoint.ts';
import { LowBalanceReply } from '../../../src/schemas/balance.ts';
import {
  DeletedWebhookEndpointReply,
  DeliveriesReply,
  DeliveryReply,
  NewWebhookEndpointReply,
  RolledSecretReply,
  WebhookEndpointReply,
  WebhookEndpointsReply,
} from '../../../src/schemas/webhook-endpoints.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { recordDelivered, recordFailed } from '../../../src/store/events/deliveries.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

const PATH = '/v1/webhook-endpoints';
const URL = 'https://example.com/events';

describe('webhook endpoints', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(0);
  });
  after(() => api.stop());

  const ask = (method: string, path: string, body?: object) =>
    call(api, method, path, { key: account.developerKey, body });
  const make = async (more: object = {}): Promise<Static<typeof NewWebhookEndpointReply>> =>
    bodyOf(await ask('POST', PATH, { url: URL, ...more }), 201, NewWebhookEndpointReply);
  const low = (body?: object) => ask(body === undefined ? 'GET' : 'PATCH', '/v1/low-balance', body);
  const threshold = async (body?: object) =>
    bodyOf(await low(body), 200, LowBalanceReply).threshold;
  const list = async () =>
    bodyOf(await ask('GET', PATH), 200, WebhookEndpointsReply).webhookEndpoints;

  it('show their secret once, in the form of the standard, and in no cache', async () => {
    const answer = await ask('POST', PATH, {
      url: URL,
      types: ['hold.expired'],
      description: 'mine',
    });
    const { secret, ...made } = bodyOf(answer, 201, NewWebhookEndpointReply);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    const { id, createdAt, ...rest } = made;
    assert.ok(Date.parse(createdAt));
    assert.deepEqual(rest, {
      url: URL,
      types: ['hold.expired'],
      description: 'mine',
      status: 'active',
      disabledReason: null,
      failingSince: null,
      previousSecretExpiresAt: null,
    });
    const again = bodyOf(await ask('GET', `${PATH}/${id}`), 200, WebhookEndpointReply);
    assert.deepEqual(again, made);
    assert.deepEqual(await list(), [made]);
    const { rows } = await api.sql.query(`select * from farebox.webhook_endpoints`);
    assert.ok(!JSON.stringify(rows).includes(secret.slice(6)));
  });

  it('are made once under an idempotency key, and their secret is rolled once', async () => {
    const once = (path: string, body: object) =>
      call(api, 'POST', path, {
        headers: { authorization: `Bearer ${account.developerKey}`, 'idempotency-key': 'once' },
        body,
      });
    const made = await Promise.all([1, 2, 3].map(() => once(PATH, { url: URL })));
    const [first] = made.map((answer) => bodyOf(answer, 201, NewWebhookEndpointReply));
    for (const answer of made)
      assert.deepEqual(bodyOf(answer, 201, NewWebhookEndpointReply), first);
    assert.equal((await list()).length, 1);
    assertError(await once(PATH, { url: `${URL}/2` }), 422, 'idempotency_key_reused');
    const path = `${PATH}/${first?.id}/roll-secret`;
    const rolled = bodyOf(await once(path, {}), 200, RolledSecretReply);
    assert.notEqual(rolled.secret, first?.secret);
    const repeated = await once(path, {});
    assert.deepEqual(bodyOf(repeated, 200, RolledSecretReply), rolled);
    assert.equal(repeated.headers.get('idempotency-replayed'), 'true');
    assertError(await once(path, { overlapSeconds: 60 }), 422, 'idempotency_key_reused');
    // The secret that the receiver has still signs.
    const { rows } = await api.sql.query<{ numbers: number[] }>(
      `select array[previous_secret, secret] as numbers from farebox.webhook_endpoints where id = $1`,
      [uuidOf('webhookEndpoint', first?.id ?? '')],
    );
    assert.deepEqual(rows[0]?.numbers, [1, 2]);
    const again = bodyOf(await ask('POST', path, {}), 200, RolledSecretReply);
    assert.notEqual(again.secret, rolled.secret);
  });

  it('are listed in pages, oldest first', async () => {
    const ids = [(await make()).id, (await make()).id, (await make()).id];
    const page = async (query: string) => {
      const reply = bodyOf(await ask('GET', `${PATH}${query}`), 200, WebhookEndpointsReply);
      const { webhookEndpoints, hasMore, nextCursor } = reply;
      return [webhookEndpoints.map(({ id }) => id), hasMore, nextCursor];
    };
    assert.deepEqual(await page(''), [ids, false, null]);
    assert.deepEqual(await page('?limit=2'), [ids.slice(0, 2), true, ids[1]]);
    assert.deepEqual(await page(`?limit=2&cursor=${ids[1]}`), [ids.slice(2), false, null]);
    assertError(await ask('GET', `${PATH}?cursor=we_0`), 400, 'invalid_cursor', 'cursor');
    assertError(await ask('GET', `${PATH}?limit=0`), 400, 'invalid_request', 'limit');
  });

  it('are changed member by member', async () => {
    const { secret: _, ...made } = await make({ types: ['key.created'] });
    const change = async (body: object) =>
      bodyOf(await ask('PATCH', `${PATH}/${made.id}`, body), 200, WebhookEndpointReply);
    assert.deepEqual(await change({}), made);
    const url = 'https://example.org/other';
    assert.deepEqual(await change({ url, types: null }), { ...made, url, types: null });
    assert.deepEqual(await change({ enabled: false, description: 'paused' }), {
      ...made,
      url,
      types: null,
      description: 'paused',
      status: 'disabled',
      disabledReason: 'owner',
    });
    const enabled = await change({ enabled: true });
    assert.deepEqual([enabled.status, enabled.disabledReason], ['active', null]);
  });

  const REFUSED: readonly [what: string, body: object, param: string][] = [
    ['no URL', {}, 'url'],
    ['a URL that is none', { url: 'example.com' }, 'url'],
    ['http', { url: 'http://example.com' }, 'url'],
    ['another protocol', { url: 'ftp://example.com' }, 'url'],
    ['credentials', { url: 'https://a:b@example.com' }, 'url'],
    ['loopback', { url: 'https://127.0.0.1' }, 'url'],
    ['a private address', { url: 'https://10.0.0.1' }, 'url'],
    ['a metadata service', { url: 'https://169.254.169.254/latest' }, 'url'],
    ['a private name', { url: 'https://postgres.internal' }, 'url'],
    ['a URL that is too long', { url: `https://example.com/${'a'.repeat(2_000)}` }, 'url'],
    ['a URL with NUL', { url: 'https://example.com/\0' }, 'url'],
    ['a URL with half a character', { url: 'https://example.com/\ud800' }, 'url'],
    ['an unknown type', { url: URL, types: ['top_up.done'] }, 'types.0'],
    ['no types', { url: URL, types: [] }, 'types'],
  ];
  for (const [what, body, param] of REFUSED) {
    it(`refuse ${what}`, async () => {
      assertError(await ask('POST', PATH, body), 400, 'invalid_request', param);
      assert.deepEqual(await list(), []);
    });
  }

  it('refuse a change to a private address', async () => {
    const { id } = await make();
    const answer = await ask('PATCH', `${PATH}/${id}`, { url: 'https://192.168.0.1' });
    assertError(answer, 400, 'invalid_request', 'url');
    assert.equal((await list())[0]?.url, URL);
  });

  it('are at most ten of an account, even when they are made at once', async () => {
    const asked = Array.from({ length: WEBHOOK_ENDPOINTS_MAX + 3 }, () =>
      ask('POST', PATH, { url: URL }),
    );
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 201).length, WEBHOOK_ENDPOINTS_MAX);
    assert.equal((await list()).length, WEBHOOK_ENDPOINTS_MAX);
  });

  it('have a log, page by page and by status', async () => {
    const { id } = await make();
    const post = async () =>
      bodyOf(await ask('POST', `${PATH}/${id}/test`), 201, DeliveryReply).eventId;
    const posted = [await post(), await post(), await post()].toReversed();
    const read = async (query: string) =>
      bodyOf(await ask('GET', `${PATH}/${id}/deliveries${query}`), 200, DeliveriesReply);
    const first = await read('?limit=2');
    const second = await read(`?limit=2&cursor=${first.nextCursor}`);
    const ids = [...first.deliveries, ...second.deliveries].map(({ eventId }) => eventId);
    assert.deepEqual(ids, posted);
    assert.equal(second.hasMore, false);
    assert.equal((await read('?status=waiting')).deliveries.length, 3);
    assert.equal((await read('?status=failed')).deliveries.length, 0);
    assert.equal(first.deliveries[0]?.payload.type, 'webhook_endpoint.test');
    // Disabling gives up what waits.
    await ask('PATCH', `${PATH}/${id}`, { enabled: false });
    assert.equal((await read('?status=failed')).deliveries.length, 3);
  });

  it('are not failing because the worse of two attempts at once is recorded last', async () => {
    const { id, url } = await make();
    const sent = bodyOf(await ask('POST', `${PATH}/${id}/test`), 201, DeliveryReply);
    const attempt = {
      endpointId: uuidOf('webhookEndpoint', id) ?? '',
      url,
      eventId: uuidOf('event', sent.eventId) ?? '',
      attempts: 0,
      dueAt: new Date().toISOString(),
      durationMs: 5,
      responseStatus: 204,
      responseBody: '',
      error: null,
    };
    const database = await createDatabase(api.databaseUrl, { maxPoolSize: 1, onError: () => {} });
    await recordDelivered(database, attempt);
    const failed = { ...attempt, responseStatus: null, responseBody: null, error: 'No answer.' };
    assert.equal(await recordFailed(database, failed, 1_000), false);
    await database.end();
    const shown = bodyOf(await ask('GET', `${PATH}/${id}`), 200, WebhookEndpointReply);
    assert.equal(shown.failingSince, null);
    const log = bodyOf(await ask('GET', `${PATH}/${id}/deliveries`), 200, DeliveriesReply);
    assert.deepEqual(
      log.deliveries.map(({ status, responseStatus }) => [status, responseStatus]),
      [['delivered', 204]],
    );
  });

  it('have a log of their own events alone', async () => {
    const [mine, other] = [await make(), await make()];
    const { eventId } = bodyOf(await ask('POST', `${PATH}/${other.id}/test`), 201, DeliveryReply);
    const redelivery = await ask('POST', `${PATH}/${mine.id}/deliveries/${eventId}/redeliver`);
    assertError(redelivery, 404, 'not_found');
    const log = await ask('GET', `${PATH}/${mine.id}/deliveries`);
    assert.deepEqual(bodyOf(log, 200, DeliveriesReply).deliveries, []);
  });

  it('are deleted with their log', async () => {
    const { id } = await make();
    await ask('POST', `${PATH}/${id}/test`);
    const answer = await ask('DELETE', `${PATH}/${id}`);
    assert.deepEqual(bodyOf(answer, 200, DeletedWebhookEndpointReply), { id, deleted: true });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/deliveries'],
      ['POST', '/test'],
    ] as const) {
      assertError(await ask(method, `${PATH}/${id}${path}`), 404, 'not_found');
    }
    assert.deepEqual(await list(), []);
  });

  it('have a threshold for a low balance, an amount or null, which a consumer key cannot set', async () => {
    assert.equal(await threshold(), null);
    assert.equal(await threshold({ threshold: '12.345678' }), 12.345678);
    for (const wrong of [0, -1, 0.0000001, 1_000_001, 'much', '', '9'.repeat(1_000)]) {
      assertError(await low({ threshold: wrong }), 400, 'invalid_amount', 'threshold');
    }
    for (const body of [{}, { threshold: true }, { threshold: [5] }, { threshold: 5, more: 1 }]) {
      assert.equal((await low(body)).status, 400, JSON.stringify(body));
    }
    const key = account.consumerKey;
    const answer = await call(api, 'PATCH', '/v1/low-balance', { key, body: { threshold: 5 } });
    assertError(answer, 401, 'invalid_secret_key');
    assert.equal(await threshold(), 12.345678);
    assert.equal(await threshold({ threshold: null }), null);
    assert.equal(await threshold(), null);
  });
});
