/** Earnings as they come in: server-sent events to keys and sessions, as long as these work. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, request } from 'node:http';
import { Client } from 'pg';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { LiveEarnings } from '../../../src/schemas/earnings.ts';
import { LiveEarnings as LiveEarningsSchema } from '../../../src/schemas/earnings.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, assertShape, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { startApi, until } from '../../support/stack.ts';

interface Stream {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly events: readonly LiveEarnings[];
  /** Everything received, with comments. */
  readonly text: () => string;
  readonly isEnded: () => boolean;
  readonly close: () => void;
}

describe('GET /v1/earnings/live', () => {
  let api: TestApi;
  let developer: TestAccount;
  let streams: Stream[] = [];

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    developer = await api.createAccount(100);
  });
  afterEach(() => {
    for (const stream of streams) stream.close();
    streams = [];
  });
  after(() => api.stop());

  const byKey = () => ({ authorization: `Bearer ${developer.developerKey}` });

  async function open(headers: Record<string, string>, url = api.url): Promise<Stream> {
    const { promise, resolve, reject } = Promise.withResolvers<Stream>();
    const request = get(`${url}/v1/earnings/live`, { headers }, (response) => {
      let text = '';
      let isEnded = false;
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('close', () => (isEnded = true));
      response.on('error', () => {});
      if (response.statusCode !== 200) return reject(new Error(`${response.statusCode}`));
      resolve({
        headers: response.headers,
        get events() {
          return [...text.matchAll(/^event: earnings\ndata: (.*)\n\n/gm)].map(([, data]) => {
            const event = JSON.parse(data ?? '') as LiveEarnings;
            assertShape(event, LiveEarningsSchema);
            return event;
          });
        },
        text: () => text,
        isEnded: () => isEnded,
        close: () => request.destroy(),
      });
    });
    request.on('error', reject);
    const stream = await promise;
    streams.push(stream);
    return stream;
  }

  /** How many connections wait in a transaction, and how many asked for earnings lately. */
  const statements = async () => {
    const { rows } = await api.sql.query<{ waiting: number; running: number }>(
      `select count(*) filter (where state = 'idle in transaction')::int as waiting,
         count(*) filter (where query like '%as "developerNumber", sum(total)%'
           and query_start > now() - interval '2 seconds')::int as running
       from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    return rows[0] ?? assert.fail();
  };

  it('sends the present state, then every change, once', async () => {
    await charge(api, developer, { amount: 0.25 });
    const stream = await open(byKey());
    const { developerId } = developer;
    const first = { developerId, totalEarnings: 0.25, todayEarnings: 0.25, charges: 1 };
    await until(() => stream.events.length === 1);
    const made = await charge(api, developer, { amount: 0.000001, tool: 'other' });
    const second = { developerId, totalEarnings: 0.250001, todayEarnings: 0.250001, charges: 2 };
    await until(() => stream.events.length === 2);
    const { id } = made.body as { id: string };
    const refund = await call(api, 'POST', `/v1/charges/${id}/refund`, {
      key: developer.developerKey,
      body: {},
    });
    assert.equal(refund.status, 201);
    await until(() => stream.events.length === 3);
    assert.deepEqual(stream.events, [first, second, { ...first, charges: 2 }]);
    assert.equal(stream.headers['content-type'], 'text/event-stream');
    assert.equal(stream.headers['cache-control'], 'no-cache, no-transform');
    assert.equal(stream.headers['x-accel-buffering'], 'no');
    assert.match(stream.text(), /^retry: 2000\n\n/);
  });

  it('shows each developer only its own earnings', async () => {
    const other = await api.createAccount(1);
    const [mine, theirs] = [
      await open(byKey()),
      await open({ authorization: `Bearer ${other.developerKey}` }),
    ];
    await charge(api, other, { amount: 0.5 });
    await until(() => theirs.events.at(-1)?.totalEarnings === 0.5);
    await until(() => mine.events.length === 1);
    assert.deepEqual(
      [...mine.events, ...theirs.events].filter((each) => each.developerId !== other.developerId),
      [{ developerId: developer.developerId, totalEarnings: 0, todayEarnings: 0, charges: 0 }],
    );
  });

  it('ends alone when the earnings of its developer are more than a number can hold', async () => {
    const rich = await api.createAccount(1);
    const [stays, ends] = [
      await open(byKey()),
      await open({ authorization: `Bearer ${rich.developerKey}` }),
    ];
    await until(() => stays.events.length === 1 && ends.events.length === 1);
    await api.sql.query(
      `insert into farebox.earnings (developer, span, tool, begins_at, amount_micros, charges, charged_minutes)
       select developer_number, 'all', 'search', '-infinity', $2, 1, 0 from farebox.accounts where developer_id = $1`,
      [uuidOf('developer', rich.developerId), String(2 ** 53)],
    );
    await until(ends.isEnded);
    await charge(api, developer, { amount: 0.25 });
    await until(() => stays.isEnded() || stays.events.at(-1)?.totalEarnings === 0.25);
    assert.equal(stays.isEnded(), false);
    assert.equal(ends.events.length, 1);
  });

  it('ends when the key is revoked or the session ends, and no other stream with it', async () => {
    const stays = await open(byKey());
    const cookie = await signIn(api, api.databaseUrl, developer.email);
    const other = await signIn(api, api.databaseUrl, developer.email);
    const [bySession, signedOut] = [await open({ cookie }), await open({ cookie: other })];
    const { headers } = { headers: { cookie, origin: api.url } };
    const created = await call(api, 'POST', '/v1/keys', { headers, body: { kind: 'developer' } });
    const { id, key } = created.body as { id: string; key: string };
    const byNewKey = await open({ authorization: `Bearer ${key}` });
    await until(() => byNewKey.events.length === 1 && bySession.events.length === 1);
    await call(api, 'POST', `/v1/keys/${id}/revoke`, { headers });
    await until(byNewKey.isEnded);
    const signOut = { headers: { cookie: other, origin: api.url }, body: {} };
    assert.equal((await call(api, 'POST', '/console/auth/sign-out', signOut)).status, 200);
    await until(signedOut.isEnded);
    assert.deepEqual([stays.isEnded(), bySession.isEnded()], [false, false]);
    await api.sql.query(`update console.sessions set expires_at = now() - interval '1 second'`);
    await until(bySession.isEnded);
    assert.equal(stays.isEnded(), false);
  });

  it('refuses a stream to anybody else, and more than an account may have', async () => {
    const ask = (key: string) => call(api, 'GET', '/v1/earnings/live', { key });
    assertError(await ask(developer.consumerKey), 401, 'invalid_secret_key');
    const head = await fetch(`${api.url}/v1/earnings/live`, { method: 'HEAD', headers: byKey() });
    assert.equal(head.status, 200);
    for (let n = 0; n < 50; n += 1) await open(byKey());
    assertError(await ask(developer.developerKey), 429, 'rate_limited');
    const other = await api.createAccount(0);
    await open({ authorization: `Bearer ${other.developerKey}` });
    streams[0]?.close();
    await until(async () => {
      const stream = await open(byKey()).catch(() => undefined);
      return stream !== undefined;
    });
  });

  it('counts no stream of a reader that left before it could begin', async () => {
    const blocker = new Client({ connectionString: api.databaseUrl });
    await blocker.connect();
    try {
      // Nobody has used the key yet, so each request waits for it.
      await blocker.query('begin; lock table farebox.api_keys in access exclusive mode');
      const requests = Array.from({ length: 50 }, () =>
        get(`${api.url}/v1/earnings/live`, { headers: byKey() }).on('error', () => {}),
      );
      await until(api.waitingBackend);
      for (const request of requests) request.destroy();
      assert.equal((await fetch(`${api.url}/healthz`)).status, 200);
    } finally {
      await blocker.end();
    }
    await until(async () => {
      await open(byKey()).catch(() => {});
      return streams.length === 50;
    });
  });

  it('waits without a connection to Postgres, and asks nothing once nobody listens', async () => {
    for (let n = 0; n < 5; n += 1) await open(byKey());
    await until(async () => (await statements()).running > 0);
    // Only while it asks.
    await until(async () => (await statements()).waiting === 0);
    for (const stream of streams) stream.close();
    await until(async () => (await statements()).running === 0);
  });

  it('ends at once when the process stops', async () => {
    const server = await startApi({ env: api.env });
    const stream = await open(byKey(), server.url);
    await until(() => stream.events.length === 1);
    // The process has begun to read this request. Such requests have five seconds to end.
    const inFlight = request(`${server.url}/v1/charges`, {
      method: 'POST',
      headers: { ...byKey(), 'content-length': 100, expect: '100-continue' },
    });
    let isInFlight = true;
    inFlight.on('error', () => {}).on('close', () => (isInFlight = false));
    inFlight.flushHeaders();
    await once(inFlight, 'continue');
    const stopped = server.stop();
    await until(() => stream.isEnded(), { intervalMs: 25 });
    assert.ok(isInFlight);
    inFlight.destroy();
    await stopped;
  });
});
