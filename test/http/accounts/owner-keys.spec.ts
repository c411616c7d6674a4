/** Keys created, rolled and revoked by their signed-in owner, as on the console's key pages. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { AuditLogReply } from '../../../src/schemas/audit-log.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { KeysReply, KeyReply, NewKeyReply, SessionReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { until } from '../../support/stack.ts';

/** Leaves no entry in the audit log. */
const untold = (statement: string) => `
  alter table farebox.api_keys disable trigger user;
  ${statement};
  alter table farebox.api_keys enable trigger user`;

describe('keys of the signed-in owner', () => {
  let api: TestApi;
  let account: TestAccount;
  let headers: { cookie: string; origin: string };

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(3);
    headers = { cookie: await signIn(api, api.databaseUrl, account.email), origin: api.url };
  });
  after(() => api.stop());

  const get = (path: string) => call(api, 'GET', path, { headers });
  const post = (path: string, body: object = {}) => call(api, 'POST', path, { headers, body });
  const list = async () => bodyOf(await get('/v1/keys'), 200, KeysReply).keys;
  const active = async () => (await list()).filter(({ revokedAt }) => revokedAt === null).length;
  const balanceBy = async (key: string) => (await call(api, 'GET', '/v1/balance', { key })).status;

  it('belong to the account with the email address of the session', async () => {
    const session = bodyOf(await get('/v1/session'), 200, SessionReply);
    assert.equal(session.email, account.email);
    assert.equal(session.consumerId, account.consumerId);
    assert.equal(bodyOf(await get('/v1/balance'), 200, BalanceReply).balance, 3);
    assert.equal((await get('/v1/earnings')).status, 200);
    assert.deepEqual((await list()).map(({ kind }) => kind).toSorted(), [
      'consumer',
      'developer',
      'legacy',
    ]);
  });

  it('are shown once and never cached, with the name that the owner gave', async () => {
    const answer = await post('/v1/keys', { kind: 'consumer', name: 'Claude 🦊' });
    const made = bodyOf(answer, 201, NewKeyReply);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(await balanceBy(made.key), 200);
    const listed = (await list()).find(({ id }) => id === made.id);
    assert.deepEqual([listed?.name, listed?.lastFour], ['Claude 🦊', made.key.slice(-4)]);
    assert.ok(!JSON.stringify(await list()).includes(made.key));
  });

  it('show their last use at once', async () => {
    const { key, id } = bodyOf(await post('/v1/keys', { kind: 'consumer' }), 201, NewKeyReply);
    const lastUse = async () => (await list()).find((each) => each.id === id)?.lastUsedAt;
    assert.equal(await lastUse(), null);
    assert.equal(await balanceBy(key), 200);
    assert.ok(await lastUse());
  });

  it('are rolled with an overlap, in which both keys work', async () => {
    const old = bodyOf(
      await post('/v1/keys', { kind: 'consumer', name: 'laptop' }),
      201,
      NewKeyReply,
    );
    const rolled = await post(`/v1/keys/${old.id}/roll`, { overlapSeconds: 3_600 });
    const fresh = bodyOf(rolled, 201, NewKeyReply);
    assert.equal(fresh.name, 'laptop');
    assert.deepEqual([await balanceBy(old.key), await balanceBy(fresh.key)], [200, 200]);
    const ending = (await list()).find(({ id }) => id === old.id);
    const leftMs = Date.parse(ending?.expiresAt ?? '') - Date.now();
    assert.ok(leftMs > 3_500_000 && leftMs < 3_700_000, String(leftMs));
    bodyOf(await post(`/v1/keys/${fresh.id}/roll`), 201, NewKeyReply);
    await until(async () => (await balanceBy(fresh.key)) === 401);
  });

  it('are created and rolled once under an idempotency key, and shown again to its retry', async () => {
    const once = (path: string, body: object, idempotencyKey: string) =>
      call(api, 'POST', path, { headers: { ...headers, 'idempotency-key': idempotencyKey }, body });
    const before = await active();
    for (const [mode, kind] of [
      ['live', 'developer'],
      ['test', 'consumer'],
    ]) {
      const body = { kind, mode, name: 'server' };
      const made = await Promise.all([1, 2, 3].map(() => once('/v1/keys', body, `make ${mode}`)));
      const [first] = made.map((answer) => bodyOf(answer, 201, NewKeyReply));
      for (const answer of made) {
        assert.deepEqual(bodyOf(answer, 201, NewKeyReply), first);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
      }
      const replays = made.filter(
        (answer) => answer.headers.get('idempotency-replayed') === 'true',
      );
      assert.equal(replays.length, 2);
      const path = `/v1/keys/${first?.id}/roll`;
      const rolled = bodyOf(await once(path, {}, `roll ${mode}`), 201, NewKeyReply);
      assert.notEqual(rolled.key, first?.key);
      assert.deepEqual(bodyOf(await once(path, {}, `roll ${mode}`), 201, NewKeyReply), rolled);
      assertError(
        await once(path, { overlapSeconds: 60 }, `roll ${mode}`),
        422,
        'idempotency_key_reused',
      );
      assertError(await once('/v1/keys', { kind }, `make ${mode}`), 422, 'idempotency_key_reused');
      assert.equal(await active(), before + 1);
      bodyOf(await post(`/v1/keys/${rolled.id}/revoke`), 200, KeyReply);
    }
    const stranger = await api.createAccount(0);
    const theirs = {
      cookie: await signIn(api, api.databaseUrl, stranger.email),
      origin: api.url,
      'idempotency-key': 'make live',
    };
    const body = { kind: 'developer', mode: 'live', name: 'server' };
    const another = await call(api, 'POST', '/v1/keys', { headers: theirs, body });
    assert.equal(another.headers.get('idempotency-replayed'), null);
    bodyOf(another, 201, NewKeyReply);
  });

  it('are revoked by their owner only, and a repeated revocation changes nothing', async () => {
    const made = bodyOf(await post('/v1/keys', { kind: 'developer' }), 201, NewKeyReply);
    const stranger = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, stranger.email);
    for (const action of ['revoke', 'roll']) {
      const path = `/v1/keys/${made.id}/${action}`;
      const answer = await call(api, 'POST', path, { headers: { ...headers, cookie }, body: {} });
      assertError(answer, 404, 'not_found');
    }
    const revoked = bodyOf(await post(`/v1/keys/${made.id}/revoke`), 200, KeyReply);
    assert.notEqual(revoked.revokedAt, null);
    assert.deepEqual(bodyOf(await post(`/v1/keys/${made.id}/revoke`), 200, KeyReply), revoked);
    assertError(await post(`/v1/keys/${made.id}/roll`), 404, 'not_found');
  });

  const BAD: readonly (readonly [object, string])[] = [
    [{}, 'kind'],
    [{ kind: 'root' }, 'kind'],
    [{ kind: 'consumer', name: '' }, 'name'],
    [{ kind: 'consumer', name: 'x'.repeat(101) }, 'name'],
    [{ kind: 'consumer', name: '\u202Egnp.exe' }, 'name'],
    [{ kind: 'consumer', name: 7 }, 'name'],
  ];
  for (const [body, param] of BAD) {
    it(`are not created from ${JSON.stringify(body).slice(0, 40)}`, async () => {
      const before = await list();
      assertError(await post('/v1/keys', body), 400, 'invalid_request', param);
      const ids = (keys: typeof before) => keys.map(({ id }) => id);
      assert.deepEqual(ids(await list()), ids(before));
    });
  }

  for (const overlapSeconds of [-1, 1.5, 2_592_001, '60', null]) {
    it(`are not rolled with an overlap of ${JSON.stringify(overlapSeconds)}`, async () => {
      const [first] = await list();
      const answer = await post(`/v1/keys/${first?.id}/roll`, { overlapSeconds });
      assertError(answer, 400, 'invalid_request', 'overlapSeconds');
      assert.equal((await list())[0]?.expiresAt, null);
    });
  }

  it('are limited to 100 active keys per account, and a roll with an overlap counts too', async () => {
    const { rows } = await api.sql.query<{ id: string }>(
      `insert into farebox.api_keys (id, hash, kind, account_id, last_four)
       select uuidv7(), uuid_send(uuidv7()) || uuid_send(uuidv7()), 'consumer', a.id, 'many'
       from farebox.accounts a, generate_series(1, 100 - (
         select count(*) from farebox.api_keys where account_id = a.id and revoked_at is null
           and (expires_at is null or expires_at > now()))) where a.email = $1 returning id`,
      [account.email],
    );
    const last = `key_${rows[0]?.id.replaceAll('-', '')}`;
    await api.changingNothing(async () => {
      assertError(await post('/v1/keys', { kind: 'consumer' }), 400, 'invalid_request');
      assertError(
        await post(`/v1/keys/${last}/roll`, { overlapSeconds: 60 }),
        400,
        'invalid_request',
      );
    });
    bodyOf(await post(`/v1/keys/${last}/roll`), 201, NewKeyReply);
    for (const [index, ended] of ['revoked_at', 'expires_at'].entries()) {
      await api.sql.query(`update farebox.api_keys set ${ended} = now() where id = $1`, [
        rows[index + 1]?.id,
      ]);
      const raced = await Promise.all(
        Array.from({ length: 6 }, () => post('/v1/keys', { kind: 'consumer' })),
      );
      assert.equal(raced.filter(({ status }) => status === 201).length, 1);
    }
    await api.sql.query(
      "update farebox.api_keys set revoked_at = now(), changed_at = now() where last_four = 'many' and revoked_at is null",
    );
  });

  it('are limited to 10,000 per account, revoked ones included, and a roll counts too', async () => {
    const [first] = await list();
    await api.sql.query(
      untold(`insert into farebox.api_keys (id, hash, kind, account_id, last_four, revoked_at)
        select uuidv7(), uuid_send(uuidv7()) || uuid_send(uuidv7()), 'consumer', account_id, 'gone', now()
        from farebox.api_keys, generate_series(1, 10000 - (
          select count(*) from farebox.api_keys o where o.account_id = api_keys.account_id))
        where id = '${uuidOf('key', first?.id ?? '')}'`),
    );
    assertError(await post('/v1/keys', { kind: 'consumer' }), 400, 'invalid_request');
    assertError(await post(`/v1/keys/${first?.id}/roll`), 400, 'invalid_request');
    assert.equal((await list())[0]?.revokedAt, null);
    await api.sql.query(untold(`delete from farebox.api_keys where last_four = 'gone'`));
    bodyOf(await post('/v1/keys', { kind: 'consumer' }), 201, NewKeyReply);
  });

  it('need a session: after signing out, the owner has to sign in again', async () => {
    const cookie = await signIn(api, api.databaseUrl, account.email);
    const out = await fetch(`${api.url}/console/auth/sign-out`, {
      method: 'POST',
      headers: { cookie, origin: api.url, 'content-type': 'application/json' },
      body: '{}',
    });
    assert.equal(out.status, 200);
    const answer = await call(api, 'GET', '/v1/balance', { headers: { cookie } });
    assertError(answer, 401, 'session_required');
  });

  it('are in the audit log, and so is the session, without any secret', async () => {
    const made = bodyOf(await post('/v1/keys', { kind: 'legacy' }), 201, NewKeyReply);
    bodyOf(await post(`/v1/keys/${made.id}/revoke`), 200, KeyReply);
    const { entries } = bodyOf(await get('/v1/audit-log?limit=100'), 200, AuditLogReply);
    assert.deepEqual(
      entries.slice(0, 2).map(({ action, subjectId, program }) => [action, subjectId, program]),
      [
        ['key.revoked', made.id, 'farebox api'],
        ['key.created', made.id, 'farebox api'],
      ],
    );
    assert.deepEqual(entries[1]?.details, { kind: 'legacy', lastFour: made.key.slice(-4) });
    const signIns = entries.filter(({ action }) => /^(session|sign_in_link)/.test(action));
    assert.deepEqual(
      signIns.slice(-2).map(({ action }) => action),
      ['session.started', 'sign_in_link.created'],
    );
    const [token = ''] = /session_token=([^.]+)/.exec(headers.cookie)?.slice(1) ?? [];
    assert.ok(token.length >= 32);
    const text = JSON.stringify(entries);
    for (const secret of [made.key, token, account.email]) assert.ok(!text.includes(secret));
  });

  it('are in pages of the audit log, which other accounts cannot see', async () => {
    const all = bodyOf(await get('/v1/audit-log?limit=100'), 200, AuditLogReply).entries;
    const first = bodyOf(await get('/v1/audit-log?limit=2'), 200, AuditLogReply);
    assert.equal(first.hasMore, true);
    const next = await get(`/v1/audit-log?limit=98&cursor=${first.nextCursor}`);
    const second = bodyOf(next, 200, AuditLogReply);
    assert.deepEqual([...first.entries, ...second.entries], all.slice(0, 100));
    for (const cursor of ['0', '-1', '1e3', 'x', '1'.repeat(16), '%27']) {
      const answer = await get(`/v1/audit-log?cursor=${cursor}`);
      assertError(answer, 400, 'invalid_cursor', 'cursor');
    }
    const stranger = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, stranger.email);
    const theirs = await call(api, 'GET', '/v1/audit-log?limit=100', { headers: { cookie } });
    const seen = bodyOf(theirs, 200, AuditLogReply).entries;
    assert.ok(seen.length > 0);
    assert.ok(!seen.some(({ number }) => all.some((own) => own.number === number)));
  });
});
