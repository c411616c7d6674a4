/** Grants over HTTP: who may create, see and revoke one, and when it can no longer be used. */
import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { ACTIVE_GRANTS_MAX } from '../../../src/domain/grant.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { OPEN_INVOCATIONS_MAX } from '../../../src/domain/invocation.ts';
import { AgentReply } from '../../../src/schemas/agents.ts';
import { GrantReply } from '../../../src/schemas/grants.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { type Answer, assertError, bodyOf, call, insistOn } from '../../support/http.ts';
import { soonExpiring } from '../../support/soon-expiring.ts';
import { until } from '../../support/stack.ts';

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

// Temporal does not run here: grants are created, revoked and expire without it.
describe('grants', () => {
  let api: TestApi;
  let maker: TestAccount;
  let callee: TestAccount;
  let caller: TestAccount;

  before(async () => {
    api = await startTestApi();
    [maker, callee] = [await api.createAccount(0), await api.createAccount(0)];
    caller = await api.createAccount(0);
    await register(callee, 'target');
    await register(caller, 'calling-agent');
  });
  after(() => api.stop());

  const post = (
    path: string,
    body?: object,
    { legacyKey } = maker,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> =>
    call(api, 'POST', path, { headers: { 'x-service-key': legacyKey, ...headers }, body });
  const insist = (...asked: Parameters<typeof post>): Promise<Answer> =>
    insistOn(() => post(...asked));
  const get = (id: string, { legacyKey } = maker): Promise<Answer> =>
    call(api, 'GET', `/grant/${id}`, { headers: { 'x-service-key': legacyKey } });

  async function register(account: TestAccount, id: string): Promise<void> {
    const body = { id, name: id, protocol: 'http', endpoint: 'https://agents.example.com' };
    bodyOf(await post('/register', body, account), 201, AgentReply);
  }

  /** The sample of the specification, except for the agent. */
  const oneTime = { callerId: 'agent_alice', targetAgentId: 'target', type: 'one_time' };
  const made = async (changes: object = {}, account = maker) =>
    bodyOf(await post('/grant', { ...oneTime, ...changes }, account), 201, GrantReply);
  const countOf = async (): Promise<number> => {
    const { rows } = await api.sql.query<{ count: string }>('select count(*) from farebox.grants');
    return Number(rows[0]?.count);
  };

  describe('POST /grant', () => {
    it('creates a one_time grant that is valid for a day', async () => {
      const { id, createdAt, expiresAt, ...rest } = await made();
      assert.match(id, /^gnt_[0-9a-f]{32}$/);
      assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), DAY_MS);
      assert.deepEqual(rest, { ...oneTime, status: 'active', uses: 0 });
    });

    it('limits an account to ten thousand active grants, even when they come at once', async () => {
      const crowded = await api.createAccount(0);
      await api.sql.query(
        `insert into farebox.grants (id, account_id, caller_id, target_agent_id, type, request_hash, expires_at)
         select uuidv7(), id, 'crowd', 'target', 'session', '', now() + interval '1 day'
         from generate_series(1, $2), farebox.accounts where consumer_id = $1`,
        [uuidOf('consumer', crowded.consumerId), ACTIVE_GRANTS_MAX - 2],
      );
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => insist('/grant', oneTime, crowded)),
      );
      const granted = answers.filter(({ status }) => status === 201);
      assert.equal(granted.length, 2);
      for (const answer of answers.filter((each) => !granted.includes(each))) {
        assertError(answer, 429, 'rate_limited');
      }
      const { id } = bodyOf(granted[0]!, 201, GrantReply);
      bodyOf(await post(`/grant/${id}/revoke`, {}, crowded), 200, GrantReply);
      await made({}, crowded);
    });

    it('keeps an account to ten thousand invocations in progress', async () => {
      const crowded = await api.createAccount(0);
      const grant = await made({ type: 'session', expiresAt: inMs(DAY_MS) }, crowded);
      const invoke = () =>
        post(
          '/invoke',
          { targetAgentId: 'target', grantId: grant.id, capability: 'think', payload: {} },
          crowded,
        );
      await api.sql.query(
        `insert into farebox.invocations (id, account_id, grant_id, target_agent_id, capability, payload,
           request_hash, receipt_key)
         select uuidv7(), account_id, id, 'target', 'think', '{}', '', 1
         from generate_series(1, $2), farebox.grants where id = $1`,
        [uuidOf('grant', grant.id), OPEN_INVOCATIONS_MAX],
      );
      assertError(await invoke(), 429, 'rate_limited');
      await api.sql.query(
        `update farebox.invocations set status = 'failed', error_code = 'canceled', ended_at = now()
         where id = (select max(id::text)::uuid from farebox.invocations where grant_id = $1)`,
        [uuidOf('grant', grant.id)],
      );
      assert.equal((await invoke()).status, 202);
      assertError(await invoke(), 429, 'rate_limited');
    });

    it('creates a session that is valid until it expires', async () => {
      const expiresAt = inMs(30 * DAY_MS - 5_000);
      const grant = await made({ type: 'session', expiresAt });
      assert.equal(grant.expiresAt, expiresAt);
      assert.equal('maxUses' in grant, false);
    });

    it('creates a limited grant for the requested number of uses', async () => {
      assert.equal((await made({ type: 'limited', maxUses: 3 })).maxUses, 3);
    });

    it('accepts a caller that is not an agent, in any script', async () => {
      for (const callerId of ['nobody', 'Ĵaŭdo <b>&', '翻訳 🦦', 'x'.repeat(200)]) {
        assert.equal((await made({ callerId })).callerId, callerId);
      }
    });

    it('does not find an unregistered agent', async () => {
      for (const targetAgentId of ['none', '', 'a b', 'x'.repeat(1_000)]) {
        const answer = await post('/grant', { ...oneTime, targetAgentId });
        assertError(answer, 404, 'not_found', 'targetAgentId');
      }
    });

    const limited = { type: 'limited', maxUses: 1 };
    const refused: readonly (readonly [param: string, changes: () => object])[] = [
      ...[undefined, '', ' ', 'a\nb', '\u0000', 'x'.repeat(201), 7, null].map(
        (callerId) => ['callerId', () => ({ callerId })] as const,
      ),
      ...[undefined, 7, null, '\u0000'].map(
        (targetAgentId) => ['targetAgentId', () => ({ targetAgentId })] as const,
      ),
      ...[undefined, 'forever', 'ONE_TIME', '', 1, null].map(
        (type) => ['type', () => ({ type })] as const,
      ),
      ...['', 'soon', '2026-02-31T00:00:00Z', '2020-01-01T00:00:00Z', 7, null].map(
        (expiresAt) => ['expiresAt', () => ({ expiresAt })] as const,
      ),
      // An API process knows the database's time only to within what an answer takes.
      ['expiresAt', () => ({ expiresAt: inMs(-10_000) })],
      ['expiresAt', () => ({ expiresAt: inMs(30 * DAY_MS + 60_000) })],
      ['expiresAt', () => ({ expiresAt: inMs(60_000).slice(0, -1) })],
      ['expiresAt', () => ({ type: 'session' })],
      ['maxUses', () => ({ type: 'limited' })],
      ['maxUses', () => ({ maxUses: 1 })],
      ['maxUses', () => ({ type: 'session', expiresAt: inMs(60_000), maxUses: 1 })],
      ...[0, -1, 1.5, 1_000_001, '1', null].map(
        (maxUses) => ['maxUses', () => ({ ...limited, maxUses })] as const,
      ),
    ];
    for (const [param, changes] of refused) {
      it(`refuses ${JSON.stringify(changes()).slice(0, 60)}`, async () => {
        const before = await countOf();
        const answer = await post('/grant', { ...oneTime, ...changes() });
        assertError(answer, 400, 'invalid_request', param);
        assert.equal(await countOf(), before);
      });
    }

    it('creates one grant for one idempotency key, under concurrent requests', async () => {
      const before = await countOf();
      const answers = await Promise.all(
        Array.from({ length: 10 }, () =>
          insist('/grant', oneTime, maker, { 'idempotency-key': 'raced' }),
        ),
      );
      const ids = answers.map((answer) => bodyOf(answer, 201, GrantReply).id);
      assert.equal(new Set(ids).size, 1);
      assert.equal(await countOf(), before + 1);
      const replayed = answers.filter(({ headers }) => headers.get('idempotency-replayed'));
      assert.equal(replayed.length, 9);
    });

    it('returns the same grant for its idempotency key after its expiry', async () => {
      const { key, body, id, expiresAt } = await soonExpiring(async (expires) => {
        const keyed = { 'idempotency-key': expires };
        const asked = { ...oneTime, expiresAt: expires };
        const grant = bodyOf(await post('/grant', asked, maker, keyed), 201, GrantReply);
        return { key: keyed, body: asked, ...grant };
      });
      const count = await countOf();
      await until(async () => bodyOf(await get(id), 200, GrantReply).status === 'expired');
      assert.ok(Date.parse(expiresAt) <= Date.now());
      const again = await post('/grant', body, maker, key);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      const replayed = bodyOf(again, 201, GrantReply);
      assert.deepEqual([replayed.id, replayed.status], [id, 'expired']);
      const other = await post('/grant', { ...body, callerId: 'other' }, maker, key);
      assertError(other, 422, 'idempotency_key_reused');
      assertError(await post('/grant', body), 400, 'invalid_request', 'expiresAt');
      assert.equal(await countOf(), count);
    });

    it('refuses another grant under the same key, but not from another account', async () => {
      const key = { 'idempotency-key': 'shared' };
      bodyOf(await post('/grant', oneTime, maker, key), 201, GrantReply);
      const other = { ...oneTime, callerId: 'other' };
      assertError(await post('/grant', other, maker, key), 422, 'idempotency_key_reused');
      bodyOf(await post('/grant', other, caller, key), 201, GrantReply);
    });
  });

  describe('GET /grant/:id', () => {
    it('shows a grant to its creator and to the owner of the caller that it names', async () => {
      const grant = await made({ callerId: 'calling-agent' });
      assert.deepEqual(bodyOf(await get(grant.id), 200, GrantReply), grant);
      assert.deepEqual(bodyOf(await get(grant.id, caller), 200, GrantReply), grant);
    });

    it('neither shows it nor lends it to an account that registers the caller later', async () => {
      const { id } = await made({ callerId: 'later-agent' });
      await register(caller, 'later-agent');
      assertError(await get(id, caller), 404, 'not_found');
      const invocation = { targetAgentId: 'target', grantId: id, capability: 'any', payload: {} };
      assertError(await post('/invoke', invocation, caller), 404, 'not_found', 'grantId');
      assert.equal(bodyOf(await get(id), 200, GrantReply).uses, 0);
      const consented = await made({ callerId: 'later-agent' });
      await register(caller, 'later-agent');
      assert.deepEqual(bodyOf(await get(consented.id, caller), 200, GrantReply), consented);
    });

    it('shows it to nobody else, not even to the owner of the target', async () => {
      const { id } = await made();
      assertError(await get(id, callee), 404, 'not_found');
      assertError(await get(id, caller), 404, 'not_found');
    });

    it('finds nothing by an invalid id', async () => {
      const none = `gnt_${'0'.repeat(32)}`;
      for (const id of [none, none.toUpperCase(), none.replace('gnt', 'inv'), 'x', '%00', '%20']) {
        assertError(await get(id), 404, 'not_found');
      }
    });

    it('shows a grant as expired before its workflow has recorded it', async () => {
      const { id } = await made();
      const status = async () => bodyOf(await get(id), 200, GrantReply).status;
      assert.equal(await status(), 'active');
      await api.sql.query('update farebox.grants set expires_at = now() where id = $1', [
        uuidOf('grant', id),
      ]);
      assert.equal(await status(), 'expired');
      assertError(await post(`/grant/${id}/revoke`), 409, 'grant_not_active', undefined, {
        status: 'expired',
      });
      const again = await post('/invoke', {
        targetAgentId: 'target',
        grantId: id,
        capability: 'any',
        payload: {},
      });
      assertError(again, 409, 'grant_not_active', 'grantId');
    });
  });

  describe('POST /grant/:id/revoke', () => {
    it('revokes a grant without a body, and can be repeated', async () => {
      const grant = await made();
      for (const _ of ['once', 'again']) {
        const answer = await post(`/grant/${grant.id}/revoke`);
        assert.deepEqual(bodyOf(answer, 200, GrantReply), { ...grant, status: 'revoked' });
      }
      assert.equal(bodyOf(await get(grant.id), 200, GrantReply).status, 'revoked');
    });

    it('ignores a body', async () => {
      const { id } = await made();
      bodyOf(await post(`/grant/${id}/revoke`, { why: 'it was stolen' }), 200, GrantReply);
    });

    it('is only for the creator of the grant', async () => {
      const { id } = await made({ callerId: 'calling-agent' });
      assertError(await post(`/grant/${id}/revoke`, undefined, caller), 404, 'not_found');
      assertError(await post(`/grant/${id}/revoke`, undefined, callee), 404, 'not_found');
      assert.equal(bodyOf(await get(id), 200, GrantReply).status, 'active');
    });

    it('finds nothing by an invalid id', async () => {
      for (const id of [`gnt_${'0'.repeat(32)}`, 'x', '%00']) {
        assertError(await post(`/grant/${id}/revoke`), 404, 'not_found');
      }
    });
  });
});
