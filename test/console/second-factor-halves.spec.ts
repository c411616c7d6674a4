/** Two-factor authentication that is turned on or off while the database fails: on or off, and never half. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { authBodyOf, cookiesOf, mailedToken, signIn } from '../support/sessions.ts';
import { until } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('two-factor authentication, when the database fails halfway', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ env: { DEV_MAIL: 'true' } });
  });
  after(() => api?.stop());
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const headersOf = (cookie: string) => ({
    origin: api.url,
    ...(cookie === '' ? {} : { cookie }),
  });
  const auth = (path: string, body: object, cookie = '') =>
    call(api, 'POST', `/console/auth${path}`, { body, headers: headersOf(cookie) });
  const sessionOf = async (cookie: string) =>
    (await call(api, 'GET', '/v1/session', { headers: { cookie } })).status;
  /** A person with a password, and the secret of an app that is not confirmed yet. */
  const enrolled = async (email: string) => {
    await auth('/sign-up', { email });
    const token = await mailedToken(api.sql, email);
    await auth('/reset-password', { token, newPassword: PASSWORD });
    const cookie = await signIn(api, api.databaseUrl, email);
    return { cookie, secret: await enroll(cookie) };
  };
  const enroll = async (cookie: string) => {
    const enabled = await auth('/two-factor/enable', { password: PASSWORD }, cookie);
    assert.equal(enabled.status, 200, JSON.stringify(enabled.body));
    const { totpURI } = authBodyOf(enabled) as { totpURI: string };
    return new URL(totpURI).searchParams.get('secret') ?? '';
  };
  const enter = (email: string) => auth('/sign-in/email', { email, password: PASSWORD });

  it('locks nobody out when turning on two-factor authentication fails halfway', async () => {
    const email = 'halfway@example.com';
    const { cookie, secret } = await enrolled(email);
    const code = totp(secret);
    // The last session is ended, the flag is set, and then no session can be made.
    const failed = await whileFailing('insert', 'sessions', () =>
      auth('/two-factor/verify-totp', { code }, cookie),
    );
    assert.equal(failed.status, 500, JSON.stringify(failed.body));
    const half = await enter(email);
    assert.equal(half.status, 200, JSON.stringify(half.body));
    const entered = await auth(
      '/two-factor/verify-totp',
      { code: totp(secret, 1) },
      cookiesOf(half),
    );
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    assert.equal(await sessionOf(cookiesOf(entered)), 200);
  });

  it('has one secret, even when several tabs set it up at the same moment', async () => {
    const email = 'tabs@example.com';
    await auth('/sign-up', { email });
    const token = await mailedToken(api.sql, email);
    await auth('/reset-password', { token, newPassword: PASSWORD });
    const cookie = await signIn(api, api.databaseUrl, email);
    // All of them find no secret, then add one.
    await api.sql.query('begin');
    await api.sql.query('lock table console.two_factors in share mode');
    const answers = [1, 2, 3].map(() => auth('/two-factor/enable', { password: PASSWORD }, cookie));
    await until(async () => (await waiting()) === 3);
    await api.sql.query('commit');
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 200).length, 1);
    const secret = await enroll(cookie);
    const on = await auth('/two-factor/verify-totp', { code: totp(secret) }, cookie);
    assert.equal(on.status, 200, JSON.stringify(on.body));
    const { rows } = await api.sql.query(
      `select verified from console.two_factors t join console.users u on u.id = t.user_id where email = $1`,
      [email],
    );
    assert.deepEqual(rows, [{ verified: true }]);
    const half = cookiesOf(await enter(email));
    const entered = await auth('/two-factor/verify-totp', { code: totp(secret, 1) }, half);
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
  });

  for (const first of ['enable', 'verify-totp'] as const) {
    it(`never asks for a code of a secret that nobody confirmed, when two tabs set it up and ${first} is first`, async () => {
      const email = `overlap-${first}@example.com`;
      const { cookie, secret } = await enrolled(email);
      // Both have read the secret. Only one may succeed: the one that replaces it, or the one that confirms it.
      await api.sql.query('begin');
      await api.sql.query('select from console.two_factors for update');
      const requests = {
        enable: () => auth('/two-factor/enable', { password: PASSWORD }, cookie),
        'verify-totp': () => auth('/two-factor/verify-totp', { code: totp(secret) }, cookie),
      };
      const second = first === 'enable' ? 'verify-totp' : 'enable';
      const won = requests[first]();
      await until(async () => (await countWaiting()) === 1);
      const lost = requests[second]();
      await until(async () => (await countWaiting()) === 2);
      await api.sql.query('commit');
      const answers = await Promise.all([won, lost]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 400],
        JSON.stringify(answers.map(({ body }) => body)),
      );
      const entered = await enter(email);
      if (first === 'enable') {
        assert.equal(await sessionOf(cookiesOf(entered)), 200);
        return;
      }
      const code = totp(secret, 1);
      const done = await auth('/two-factor/verify-totp', { code }, cookiesOf(entered));
      assert.equal(done.status, 200, JSON.stringify(done.body));
    });
  }

  for (const [event, table] of [
    ['update', 'users'],
    ['delete', 'two_factors'],
    ['insert', 'sessions'],
  ] as const) {
    it(`can turn two-factor authentication on again after turning it off failed at ${table}`, async () => {
      const email = `off-${table.replace('_', '-')}@example.com`;
      const { cookie, secret } = await enrolled(email);
      const on = await auth('/two-factor/verify-totp', { code: totp(secret) }, cookie);
      assert.equal(on.status, 200, JSON.stringify(on.body));
      const renewed = cookiesOf(on);
      const off = () => auth('/two-factor/disable', { password: PASSWORD }, renewed);
      const failed = await whileFailing(event, table, off);
      assert.equal(failed.status, 500, JSON.stringify(failed.body));
      const { rows } = await api.sql.query<{ is_on: boolean }>(
        'select two_factor_enabled as is_on from console.users where email = $1',
        [email],
      );
      if (rows[0]?.is_on === true) {
        assert.equal((await off()).status, 200);
        return;
      }
      assert.equal(await sessionOf(renewed), 200);
      const code = totp(await enroll(renewed));
      const again = await auth('/two-factor/verify-totp', { code }, renewed);
      assert.equal(again.status, 200, JSON.stringify(again.body));
      assert.equal(
        (authBodyOf(await enter(email)) as { twoFactorRedirect?: boolean }).twoFactorRedirect,
        true,
      );
    });
  }

  it('locks nobody out when one tab turns it off while another one finishes turning it on', async () => {
    const email = 'on-and-off@example.com';
    const { cookie, secret } = await enrolled(email);
    // The library stores again, as a second step, that it is on.
    const release = await holdBack(
      `exists (select from console.users where two_factor_enabled and email = '${email}')`,
    );
    const turnedOn = auth('/two-factor/verify-totp', { code: totp(secret) }, cookie);
    await until(async () => (await countWaiting()) === 1);
    const other = await signInWithCode(email, totp(secret, 1));
    const off = await auth('/two-factor/disable', { password: PASSWORD }, other);
    assert.equal(off.status, 200, JSON.stringify(off.body));
    await release();
    await turnedOn;
    assert.equal(await sessionOf(cookiesOf(await enter(email))), 200);
  });

  it('locks nobody out when one tab turns it on again while another one finishes turning it off', async () => {
    const email = 'off-and-on@example.com';
    const { cookie, secret } = await enrolled(email);
    const on = await auth('/two-factor/verify-totp', { code: totp(secret) }, cookie);
    const renewed = cookiesOf(on);
    // The library stores again, as a second step, that it is off, and then removes the secret again.
    const release = await holdBack(
      `not exists (select from console.users where two_factor_enabled and email = '${email}')`,
    );
    const turnedOff = auth('/two-factor/disable', { password: PASSWORD }, renewed);
    await until(async () => (await countWaiting()) === 1);
    const next = await enroll(renewed);
    const again = await auth('/two-factor/verify-totp', { code: totp(next) }, renewed);
    assert.equal(again.status, 200, JSON.stringify(again.body));
    await release();
    await turnedOff;
    assert.equal(await sessionOf(await signInWithCode(email, totp(next, 1))), 200);
  });

  async function signInWithCode(email: string, code: string): Promise<string> {
    const half = cookiesOf(await enter(email));
    return cookiesOf(await auth('/two-factor/verify-totp', { code }, half));
  }

  /**
   * The library's updates of people wait, before they lock a row, if the condition is true. Resolves with
   * what ends that.
   */
  async function holdBack(condition: string): Promise<() => Promise<void>> {
    await api.sql.query('select pg_advisory_lock(7)');
    await api.sql.query(`
      create function console.hold_back() returns trigger language plpgsql as $$
      begin
        if current_query() like '%"users"%' and ${condition} then
          perform pg_advisory_xact_lock_shared(7);
        end if;
        return null;
      end $$;
      create trigger hold_back before update on console.users
        for each statement execute function console.hold_back();
    `);
    return async () => {
      await api.sql.query('select pg_advisory_unlock(7)');
      await api.sql.query('drop function console.hold_back() cascade');
    };
  }

  async function countWaiting(): Promise<number> {
    const { rows } = await api.sql.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_clear_snapshot(), pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }

  async function waiting(): Promise<number> {
    const { rows } = await api.sql.query<{ count: number }>(
      `select count(*)::integer as count from pg_locks
       where relation = 'console.two_factors'::regclass and not granted`,
    );
    return rows[0]?.count ?? 0;
  }

  async function whileFailing<T>(event: string, table: string, work: () => Promise<T>): Promise<T> {
    await api.sql.query(`
      create function console.fail() returns trigger language plpgsql as $$
      begin raise exception 'planted'; end $$;
      create trigger fail before ${event} on console.${table} execute function console.fail();
    `);
    try {
      return await work();
    } finally {
      await api.sql.query('drop function console.fail() cascade');
    }
  }
});
