/**
 * Invocations over HTTP while Temporal is down: they are accepted, one for each use of a grant, and wait.
 * Their further course is in test/workflows.
 */
import assert from 'node:assert/strict';
import { AgentReply } from '../../../src/schemas/agents.ts';
import { GrantReply } from '../../../src/schemas/grants.ts';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { type Answer, assertError, bodyOf, call, insistOn } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

/** The connections for reads of each API server (src/processes/api.ts). */
const READ_CONNECTIONS = 8;

/** The sample of the specification, except for the ids. */
const invocation = (grantId: string) => ({
  targetAgentId: 'target',
  grantId,
  capability: 'translate',
  payload: { text: 'Hello', to: 'fr' },
});

describe('invocations while Temporal is away', () => {
  let api: TestApi;
  let maker: TestAccount;
  let caller: TestAccount;
  let stranger: TestAccount;

  before(async () => {
    api = await startTestApi({ servers: 2 });
    [maker, caller] = [await api.createAccount(0), await api.createAccount(0)];
    stranger = await api.createAccount(0);
    await register(maker, 'target');
    await register(maker, 'other-target');
    await register(caller, 'calling-agent');
  });
  after(() => api.stop());

  type Headers = Readonly<Record<string, string>>;
  const post = (
    path: string,
    body?: object,
    { legacyKey } = maker,
    headers: Headers = {},
    server = 0,
  ) =>
    call(api.servers[server] ?? api, 'POST', path, {
      headers: { 'x-service-key': legacyKey, ...headers },
      body,
    });

  const insist = (...asked: Parameters<typeof post>): Promise<Answer> =>
    insistOn(() => post(...asked));

  async function register(account: TestAccount, id: string, protocol = 'http'): Promise<void> {
    const body = { id, name: id, protocol, endpoint: 'https://agents.example.com' };
    bodyOf(await post('/register', body, account), 201, AgentReply);
  }

  async function grant(changes: object = {}): Promise<string> {
    const body = { callerId: 'alice', targetAgentId: 'target', type: 'one_time', ...changes };
    return bodyOf(await post('/grant', body), 201, GrantReply).id;
  }

  async function countsOf(grantId: string): Promise<{ uses: number; invocations: number }> {
    const { rows } = await api.sql.query<{ uses: number; invocations: string }>(
      `select uses, (select count(*) from farebox.invocations i where i.grant_id = g.id) as invocations
       from farebox.grants g where id = $1`,
      [grantId.slice('gnt_'.length)],
    );
    return { uses: rows[0]?.uses ?? -1, invocations: Number(rows[0]?.invocations) };
  }

  it('are accepted with status pending, and use their grant', async () => {
    const grantId = await grant();
    const answer = await post('/invoke', invocation(grantId));
    const { id, createdAt, ...rest } = bodyOf(answer, 202, InvocationReply);
    assert.match(id, /^inv_[0-9a-f]{32}$/);
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 180_000);
    const { payload: _, ...asked } = invocation(grantId);
    assert.deepEqual(rest, { ...asked, status: 'pending', attempts: 0, completedAt: null });
    assert.deepEqual(await countsOf(grantId), { uses: 1, invocations: 1 });
    const headers = { 'x-service-key': maker.legacyKey };
    const shown = await call(api, 'GET', `/invoke/${id}`, { headers });
    assert.deepEqual(bodyOf(shown, 200, InvocationReply), answer.body);
    assertError(await call(api, 'GET', `/receipts/${id}`, { headers }), 404, 'not_found');
  });

  it('are refused before they use a grant if the protocol of the agent cannot be called', async () => {
    const targetAgentId = 'changing';
    const keys = { 'idempotency-key': 'changing' };
    await register(maker, targetAgentId, 'HTTP');
    const grantId = await grant({ targetAgentId });
    const asked = { ...invocation(grantId), targetAgentId };
    const made = bodyOf(await post('/invoke', asked, maker, keys), 202, InvocationReply);

    await register(maker, targetAgentId, 'gRPC');
    const unused = await grant({ targetAgentId });
    const refused = await post('/invoke', { ...asked, grantId: unused });
    assertError(refused, 400, 'invalid_request', 'targetAgentId');
    assert.match(JSON.stringify(refused.body), /gRPC.*http, mcp, and a2a/);
    assert.deepEqual(await countsOf(unused), { uses: 0, invocations: 0 });
    const again = await post('/invoke', asked, maker, keys);
    assert.equal(bodyOf(again, 202, InvocationReply).id, made.id);
  });

  it('are granted and accepted while reads have every connection for reads', async () => {
    const reads = await withReadsHeld(async () => {
      bodyOf(await post('/invoke', invocation(await grant())), 202, InvocationReply);
    });
    for (const read of reads) assert.notEqual(read.status, 500);
  });

  /** More reads than there are connections for reads wait for a lock meanwhile, three by each account. */
  async function withReadsHeld(work: () => Promise<void>): Promise<Answer[]> {
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.top_ups');
    const answers: Answer[] = [];
    const over = new AbortController();
    // A read that has waited for too long is sent again, until all wait at the same time.
    const read = async (path: string, key: string) => {
      do answers.push(await call(api, 'GET', path, { key }));
      while (!over.signal.aborted);
    };
    try {
      const reads = [maker, caller, stranger].flatMap(({ consumerKey, developerKey }) => [
        read('/v1/top-up', consumerKey),
        read('/v1/top-up', consumerKey),
        read('/v1/top-ups', developerKey),
      ]);
      await until(async () => (await waitingReads()) === READ_CONNECTIONS);
      await work();
      over.abort();
      await api.sql.query('commit');
      await Promise.all(reads);
      return answers;
    } finally {
      over.abort();
      await api.sql.query('rollback');
    }
  }

  async function waitingReads(): Promise<number> {
    // Inside a transaction, pg_stat_activity is a snapshot of its first look.
    await api.sql.query('select pg_stat_clear_snapshot()');
    const { rows } = await api.sql.query<{ count: number }>(
      `select count(*)::int from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }

  it('of a one_time grant succeed once out of fifty, over all servers', async () => {
    const grantId = await grant();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => post('/invoke', invocation(grantId), maker, {}, n % 2)),
    );
    const [won, ...more] = answers.filter(({ status }) => status === 202);
    bodyOf(won as Answer, 202, InvocationReply);
    assert.deepEqual(more, []);
    for (const answer of answers) {
      if (answer !== won) assertError(answer, 409, 'grant_not_active', 'grantId');
    }
    assert.deepEqual(await countsOf(grantId), { uses: 1, invocations: 1 });
  });

  it('of a limited grant succeed as often as it allows', async () => {
    const grantId = await grant({ type: 'limited', maxUses: 3 });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => post('/invoke', invocation(grantId), maker, {}, n % 2)),
    );
    assert.equal(answers.filter(({ status }) => status === 202).length, 3);
    assert.equal(answers.filter(({ status }) => status === 409).length, 9);
    assert.deepEqual(await countsOf(grantId), { uses: 3, invocations: 3 });
  });

  it('succeed or lose to a revocation, never both', async () => {
    const grants = await Promise.all(Array.from({ length: 10 }, () => grant()));
    const races = grants.map((grantId) =>
      Promise.all([
        post('/invoke', invocation(grantId)),
        post(`/grant/${grantId}/revoke`, undefined, maker, {}, 1),
      ]),
    );
    for (const [n, [invoked, revoked]] of (await Promise.all(races)).entries()) {
      const won = [invoked.status, revoked.status].join();
      assert.ok(won === '202,409' || won === '409,200', won);
      const count = invoked.status === 202 ? 1 : 0;
      assert.deepEqual(await countsOf(grants[n] ?? ''), { uses: count, invocations: count });
    }
  });

  it('are one for one idempotency key, under concurrent requests', async () => {
    const grantId = await grant();
    const key = { 'idempotency-key': 'raced' };
    const ask = (_: unknown, n: number) =>
      insist('/invoke', invocation(grantId), maker, key, n % 2);
    const answers = await Promise.all(Array.from({ length: 10 }, ask));
    const ids = answers.map((answer) => bodyOf(answer, 202, InvocationReply).id);
    assert.equal(new Set(ids).size, 1);
    assert.deepEqual(await countsOf(grantId), { uses: 1, invocations: 1 });
    const replayed = answers.filter(({ headers }) => headers.get('idempotency-replayed'));
    assert.equal(replayed.length, 9);
  });

  it('refuse a key that named another invocation, and use no grant', async () => {
    const [first, second] = [await grant(), await grant()];
    const key = { 'idempotency-key': 'shared' };
    bodyOf(await post('/invoke', invocation(first), maker, key), 202, InvocationReply);
    const others = [
      { ...invocation(first), capability: 'other' },
      { ...invocation(first), payload: { text: 'Hello', to: 'de' } },
      invocation(second),
    ];
    for (const other of others) {
      const answer = await post('/invoke', other, maker, key);
      assertError(answer, 422, 'idempotency_key_reused');
    }
    assert.deepEqual(await countsOf(second), { uses: 0, invocations: 0 });
  });

  it('use only one of two grants when they share a key at the same time', async () => {
    const grants = await Promise.all(Array.from({ length: 8 }, () => grant()));
    const key = { 'idempotency-key': 'two grants' };
    const answers = await Promise.all(
      grants.map((grantId, n) => insist('/invoke', invocation(grantId), maker, key, n % 2)),
    );
    assert.deepEqual(answers.map(({ status }) => String(status)).toSorted(), [
      '202',
      ...Array.from({ length: 7 }, () => '422'),
    ]);
    let uses = 0;
    for (const grantId of grants) uses += (await countsOf(grantId)).uses;
    assert.equal(uses, 1);
  });

  it('accept a grant of its creator, or of the owner of the caller that it names', async () => {
    const byCaller = await grant({ callerId: 'calling-agent' });
    const own = bodyOf(await post('/invoke', invocation(byCaller), caller), 202, InvocationReply);
    const headers = { 'x-service-key': maker.legacyKey };
    assertError(await call(api, 'GET', `/invoke/${own.id}`, { headers }), 404, 'not_found');
    const notNamed = await grant();
    for (const account of [caller, stranger]) {
      const answer = await post('/invoke', invocation(notNamed), account);
      assertError(answer, 404, 'not_found', 'grantId');
    }
    assert.deepEqual(await countsOf(notNamed), { uses: 0, invocations: 0 });
  });

  it('refuse a grant that is revoked, used, or for another agent, and create nothing', async () => {
    const [revoked, used, other] = [await grant(), await grant(), await grant()];
    bodyOf(await post(`/grant/${revoked}/revoke`), 200, GrantReply);
    bodyOf(await post('/invoke', invocation(used)), 202, InvocationReply);
    const answers = [
      await post('/invoke', invocation(revoked)),
      await post('/invoke', invocation(used)),
      await post('/invoke', { ...invocation(other), targetAgentId: 'other-target' }),
    ];
    for (const answer of answers) assertError(answer, 409, 'grant_not_active', 'grantId');
    const counts = [await countsOf(revoked), await countsOf(used), await countsOf(other)];
    assert.deepEqual(
      counts.map(({ invocations }) => invocations),
      [0, 1, 0],
    );
  });

  it('find neither an agent nor a grant that does not exist', async () => {
    const grantId = await grant();
    const unknown = { ...invocation(grantId), targetAgentId: 'none' };
    assertError(await post('/invoke', unknown), 404, 'not_found', 'targetAgentId');
    for (const id of [`gnt_${'0'.repeat(32)}`, '', 'x', '\u0000', grantId.toUpperCase()]) {
      assertError(await post('/invoke', invocation(id)), 404, 'not_found', 'grantId');
    }
    assert.deepEqual(await countsOf(grantId), { uses: 0, invocations: 0 });
  });

  const fields: readonly (readonly [field: string, ...values: unknown[]])[] = [
    ['targetAgentId', undefined, 7, null, '\u0000'],
    ['grantId', undefined, 7, null],
    ['capability', undefined, '', ' ', 'a\nb', '\ud800', 'x'.repeat(201), 7, null],
    ['payload', undefined, 'text', 7, [], null],
  ];
  for (const [field, ...values] of fields) {
    for (const value of values) {
      it(`refuse the ${field} ${JSON.stringify(value)?.slice(0, 20)}`, async () => {
        const body = { ...invocation(`gnt_${'0'.repeat(32)}`), [field]: value };
        assertError(await post('/invoke', body), 400, 'invalid_request', field);
      });
    }
  }

  it('refuse a payload nested deeper than 100 levels, and use no grant', async () => {
    const grantId = await grant();
    const invoke = (levels: number) => {
      const nested = `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
      const rawBody = JSON.stringify({ ...invocation(grantId), payload: 0 }).replace(
        '"payload":0',
        `"payload":${nested}`,
      );
      return call(api, 'POST', '/invoke', {
        headers: { 'x-service-key': maker.legacyKey },
        rawBody,
      });
    };
    for (const levels of [101, 5_000, 100_000]) {
      assertError(await invoke(levels), 400, 'invalid_request', 'payload');
    }
    assert.deepEqual(await countsOf(grantId), { uses: 0, invocations: 0 });
    bodyOf(await invoke(100), 202, InvocationReply);
  });

  it('accept a payload of up to 256 KiB, of any text', async () => {
    const text = `\u0000 \ud800 🦦 ${'x'.repeat(200_000)}`;
    const body = { ...invocation(await grant()), payload: { text, '': { a: [1e21, -0, 'b'] } } };
    bodyOf(await post('/invoke', body), 202, InvocationReply);
    const large = { ...body, payload: { text: 'x'.repeat(270_000) } };
    assertError(await post('/invoke', large), 413, 'payload_too_large');
  });

  for (const path of ['/invoke', '/receipts']) {
    it(`GET ${path}/:id finds nothing by an invalid id`, async () => {
      const none = `inv_${'0'.repeat(32)}`;
      for (const id of [none, none.toUpperCase(), none.replace('inv', 'gnt'), 'x', '%00', '%20']) {
        const headers = { 'x-service-key': maker.legacyKey };
        assertError(await call(api, 'GET', `${path}/${id}`, { headers }), 404, 'not_found');
      }
    });
  }
});
