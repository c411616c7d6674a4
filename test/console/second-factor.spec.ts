/**
 * After a change of the password or of two-factor authentication, earlier sessions, links and half-finished
 * sign-ins give no access.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import {
  authBodyOf,
  cookiesOf,
  mailedToken,
  makeOperator,
  refusalOf,
  signIn,
  signInLink,
  useSignInLink,
} from '../support/sessions.ts';
import { farebox, until } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('a change of a password or of two-factor authentication', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApiProcesses({
      env: { DEV_MAIL: 'true', CLIENT_ADDRESS_HEADER: 'X-Client' },
    });
  });
  after(() => api?.stop());
  beforeEach(() => api.sql.query('delete from console.rate_limits'));

  const auth = (path: string, body: object, cookie = '', place = 1) =>
    call(api, 'POST', `/console/auth${path}`, {
      body,
      headers: {
        origin: api.url,
        'x-client': `198.51.100.${place}`,
        ...(cookie === '' ? {} : { cookie }),
      },
    });
  const enter = (email: string, cookie = '', password = PASSWORD) =>
    auth('/sign-in/email', { email, password }, cookie);
  const sessionOf = async (cookie: string) =>
    (await call(api, 'GET', '/v1/session', { headers: { cookie } })).status;

  async function tokenFor(email: string): Promise<string> {
    await api.sql.query('delete from console.mails where recipient = $1', [email]);
    await auth('/sign-up', { email });
    return mailedToken(api.sql, email);
  }

  async function member(email: string): Promise<string> {
    const set = await auth('/reset-password', {
      token: await tokenFor(email),
      newPassword: PASSWORD,
    });
    assert.equal(set.status, 200, JSON.stringify(set.body));
    return signIn(api, api.databaseUrl, email);
  }

  async function enroll(cookie: string): Promise<string> {
    const enabled = await auth('/two-factor/enable', { password: PASSWORD }, cookie);
    const { totpURI } = authBodyOf(enabled) as { totpURI: string };
    return new URL(totpURI).searchParams.get('secret') ?? '';
  }

  async function turnOn(cookie: string) {
    const secret = await enroll(cookie);
    const confirmed = await auth('/two-factor/verify-totp', { code: totp(secret) }, cookie);
    assert.equal(confirmed.status, 200, JSON.stringify(confirmed.body));
    return { secret, renewed: cookiesOf(confirmed) };
  }

  it('leaves no browser that is asked for no code', async () => {
    const email = 'trusting@example.com';
    const { secret } = await turnOn(await member(email));
    const half = cookiesOf(await enter(email));
    const body = { code: totp(secret, 1), trustDevice: true };
    const entered = await auth('/two-factor/verify-totp', body, half);
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    const again = await enter(email, cookiesOf(entered));
    assert.equal((authBodyOf(again) as { twoFactorRedirect?: boolean }).twoFactorRedirect, true);
    assert.equal(await sessionOf(cookiesOf(again)), 401);
  });

  it('leaves no other link to set a password, and nobody who had only typed the old one', async () => {
    const email = 'noticed@example.com';
    const { secret } = await turnOn(await member(email));
    const earlier = await tokenFor(email);
    const half = cookiesOf(await enter(email));
    const newPassword = 'another horse battery';
    const set = await auth('/reset-password', { token: await tokenFor(email), newPassword });
    assert.equal(set.status, 200, JSON.stringify(set.body));

    const late = await auth('/two-factor/verify-totp', { code: totp(secret, 1) }, half);
    assert.equal(late.status, 401, JSON.stringify(late.body));
    const stolen = await auth('/reset-password', { token: earlier, newPassword: PASSWORD });
    assert.equal(stolen.status, 400, JSON.stringify(stolen.body));
    assert.equal((await enter(email, '', newPassword)).status, 200);
  });

  for (const [what, event] of [
    ['the old one', 'insert on console.sessions'],
    ['the old one, while it is replaced', 'update on console.credentials'],
  ] as const) {
    it(`leaves no session of somebody who signs in by ${what}, at the same moment`, async () => {
      const email = `raced-${event.slice(0, 6)}@example.com`;
      await member(email);
      const token = await tokenFor(email);
      const isSignIn = event.startsWith('insert');
      const set = () => auth('/reset-password', { token, newPassword: 'another horse battery' });
      await waitBefore(event);
      try {
        const first = isSignIn ? enter(email) : set();
        await someoneWaits();
        const second = isSignIn ? set() : enter(email);
        if (isSignIn) assert.equal((await second).status, 200);
        else await until(async () => (await sessionsOf(email)) === 2);
        await api.sql.query('select pg_advisory_unlock(4711)');
        const [entered, changed] = isSignIn
          ? [await first, await second]
          : [await second, await first];
        assert.equal(changed.status, 200, JSON.stringify(changed.body));
        assert.equal(entered.status, 401, JSON.stringify(entered.body));
        assert.equal(await sessionsOf(email), 0);
      } finally {
        await waitNoMore();
      }
      assert.equal((await enter(email, '', 'another horse battery')).status, 200);
    });
  }

  for (const way of ['the password', 'a link'] as const) {
    it(`leaves no session of somebody who signs in by ${way} alone, while it is turned on`, async () => {
      const email = `racing-${way.slice(-4)}@example.com`;
      const own = await member(email);
      const secret = await enroll(own);
      const link = await signInLink(api, api.databaseUrl, email);
      await waitBefore('insert on console.sessions', `new.ip_address = '198.51.100.9'`);
      try {
        const entering =
          way === 'a link'
            ? useSignInLink(link, { 'x-client': '198.51.100.9' })
            : auth('/sign-in/email', { email, password: PASSWORD }, '', 9);
        await someoneWaits();
        const on = await auth('/two-factor/verify-totp', { code: totp(secret) }, own);
        assert.equal(on.status, 200, JSON.stringify(on.body));
        await api.sql.query('select pg_advisory_unlock(4711)');
        await entering;
      } finally {
        await waitNoMore();
      }
      assert.equal(await sessionsOf(email), 1);
    });
  }

  it('leaves no session of somebody who gives the right code after the old password at the same moment', async () => {
    const email = 'raced-half@example.com';
    const { secret } = await turnOn(await member(email));
    const half = cookiesOf(await enter(email));
    const body = { token: await tokenFor(email), newPassword: 'another horse battery' };
    await waitBefore('insert on console.sessions');
    try {
      const entering = auth('/two-factor/verify-totp', { code: totp(secret, 1) }, half);
      await someoneWaits();
      assert.equal((await auth('/reset-password', body)).status, 200);
      await api.sql.query('select pg_advisory_unlock(4711)');
      const entered = await entering;
      assert.equal(entered.status, 401, JSON.stringify(entered.body));
    } finally {
      await waitNoMore();
    }
    assert.equal(await sessionsOf(email), 0);
  });

  /** Until this connection releases its lock. */
  async function waitBefore(event: string, condition = 'true'): Promise<void> {
    await api.sql.query(`
      create function console.wait() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(4711); return new; end $$;
      create trigger wait before ${event} for each row when (${condition}) execute function console.wait();
      select pg_advisory_lock(4711);
    `);
  }

  const someoneWaits = () =>
    until(async () => {
      const { rows } = await api.sql.query(
        `select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted`,
      );
      return rows.length > 0;
    });

  async function waitNoMore(): Promise<void> {
    await api.sql.query('select pg_advisory_unlock_all()');
    await api.sql.query('drop function console.wait() cascade');
  }

  async function sessionsOf(email: string): Promise<number> {
    const { rows } = await api.sql.query(
      'select from console.sessions s join console.users u on u.id = s.user_id where email = $1',
      [email],
    );
    return rows.length;
  }

  it('tells the owner of a new password, and how many passkeys still sign in', async () => {
    const email = 'taken-over@example.com';
    await member(email);
    const first = { token: await tokenFor(email), newPassword: 'one more horse battery' };
    assert.equal((await auth('/reset-password', first)).status, 200);
    const told = () =>
      until(async () => {
        const { rows } = await api.sql.query<{ body: string }>(
          'select body from console.mails where recipient = $1 and subject = $2',
          [email, 'Your Farebox password was set'],
        );
        return rows[0]?.body;
      });
    assert.match(await told(), /no passkeys/);
    await api.sql.query(
      `insert into console.passkeys (user_id, name, credential_id, public_key, counter, device_type, backed_up)
       select id, 'Click http://mallory.example', 'c', 'k', 0, 'singleDevice', false
       from console.users where email = $1`,
      [email],
    );
    const body = { token: await tokenFor(email), newPassword: 'another horse battery' };
    assert.equal((await auth('/reset-password', body)).status, 200);
    const mail = await told();
    assert.match(mail, /has 1 passkey, which still signs in without a password/);
    assert.match(mail, new RegExp(`${api.url}/console/security`));
    assert.doesNotMatch(mail, /mallory/);
  });

  it('tells the owner when two-factor authentication is turned off, and not for a wrong password', async () => {
    const email = 'turned-off@example.com';
    const { renewed } = await turnOn(await member(email));
    const mails = async () => {
      const { rows } = await api.sql.query<{ body: string }>(
        'select body from console.mails where recipient = $1 and subject like $2',
        [email, 'Two-factor authentication was turned off%'],
      );
      return rows;
    };
    const off = (password: string) => auth('/two-factor/disable', { password }, renewed);
    assert.equal((await off('wrong')).status, 400);
    assert.equal((await off(PASSWORD)).status, 200);
    const [mail, ...others] = await until(async () => {
      const found = await mails();
      return found.length > 0 && found;
    });
    assert.match(mail?.body ?? '', new RegExp(`${api.url}/console/security`));
    assert.deepEqual(others, []);
  });

  it('lets an owner sign in without a code once an operator has turned it off', async () => {
    const email = 'lost@example.com';
    const { renewed } = await turnOn(await member(email));
    await until(async () => {
      const { rows } = await api.sql.query<{ body: string }>(
        'select body from console.mails where recipient = $1 and subject like $2',
        [email, 'Two-factor authentication was turned on%'],
      );
      return rows.length === 1 && /Set a new password/.test(rows[0]?.body ?? '');
    });
    const output = await farebox(['account', 'two-factor-off', email], api);
    assert.match(output, /^Two-factor authentication is off for lost@example\.com/);
    assert.equal(await sessionOf(renewed), 401);
    assert.equal(await sessionOf(cookiesOf(await enter(email))), 200);
    const { rows: audited } = await api.sql.query(
      `select action from farebox.audit_entries where program = 'farebox account two-factor-off' order by 1`,
    );
    assert.deepEqual(audited, [{ action: 'session.ended' }, { action: 'two_factor.changed' }]);
    const { rows: owed } = await api.sql.query(
      `select kind from console.owed_mails o join console.users u on u.id = o.user_id where u.email = $1`,
      [email],
    );
    assert.deepEqual(owed, [{ kind: 'second_factor_off' }]);
    const again = await farebox(['account', 'two-factor-off', email], api);
    assert.match(again, /is not on for lost@example\.com\. Nothing was changed/);
    // It can be set up again.
    await turnOn(cookiesOf(await enter(email)));
  });

  it('lets its owner give a code, although somebody who knew the old password gave too many wrong ones', async () => {
    const email = 'guessed-codes@example.com';
    const { secret } = await turnOn(await member(email));
    /** Each half of a sign-in allows five codes, and each place ten a minute. */
    const guess = async (times: number, password: string) => {
      const half = cookiesOf(await enter(email, '', password));
      const wrong = { code: totp(secret, 100) };
      for (let n = 0; n < times; n += 1) {
        assert.equal((await auth('/two-factor/verify-totp', wrong, half)).status, 401);
      }
      await api.sql.query('delete from console.rate_limits');
    };
    const giveRight = async (step: number, password: string) => {
      const half = cookiesOf(await enter(email, '', password));
      return auth('/two-factor/verify-totp', { code: totp(secret, step) }, half);
    };
    const lock = async (password: string) => {
      await guess(5, password);
      await guess(5, password);
      const refused = await giveRight(1, password);
      assert.equal(refused.status, 429, JSON.stringify(refused.body));
    };
    await lock(PASSWORD);
    const setPassword = async (newPassword: string) => {
      const set = await auth('/reset-password', { token: await tokenFor(email), newPassword });
      assert.equal(set.status, 200, JSON.stringify(set.body));
    };
    await setPassword('another horse battery');
    const entered = await giveRight(1, 'another horse battery');
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    // Somebody who can read the mailbox guesses no more codes by setting one password after the other.
    await lock('another horse battery');
    await setPassword('one more horse battery');
    assert.equal((await giveRight(2, 'one more horse battery')).status, 429);
  });

  it('signs in once by each code, also under concurrent requests', async () => {
    const email = 'overheard@example.com';
    const { secret } = await turnOn(await member(email));
    const halves: string[] = [];
    for (let place = 1; place <= 4; place += 1) halves.push(cookiesOf(await enter(email)));
    const code = totp(secret, 1);
    const [late = '', ...atOnce] = halves;
    const answers = await Promise.all(
      atOnce.map((half) => auth('/two-factor/verify-totp', { code }, half)),
    );
    answers.push(await auth('/two-factor/verify-totp', { code }, late));
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    const refused = answers.filter(({ status }) => status === 401);
    assert.equal(refused.length, 3);
    for (const answer of refused) {
      assert.equal(refusalOf(answer).reason, 'CODE_ALREADY_USED');
      assert.equal(await sessionOf(cookiesOf(answer)), 401);
    }
  });

  it('leaves no session without a code, even when it fails halfway and is repeated', async () => {
    const email = 'interrupted@example.com';
    const own = await member(email);
    const earlier = await signIn(api, api.databaseUrl, email);
    await makeOperator(api.sql, email, false);
    const secret = await enroll(own);
    await api.sql.query('begin');
    await api.sql.query(
      `select from console.sessions s join console.users u on u.id = s.user_id
       where u.email = $1 for update of s`,
      [email],
    );
    const failed = await auth('/two-factor/verify-totp', { code: totp(secret) }, own);
    await api.sql.query('rollback');
    assert.equal(failed.status, 503, JSON.stringify(failed.body));
    const confirmed = await auth('/two-factor/verify-totp', { code: totp(secret) }, own);
    assert.equal(confirmed.status, 200, JSON.stringify(confirmed.body));
    assert.equal(await sessionOf(earlier), 401);
  });

  it('cannot be had by guessing the password with a stolen session from many places', async () => {
    const email = 'stolen@example.com';
    const cookie = await member(email);
    const guess = async (place: number, path: string) =>
      (await auth(path, { password: `guess ${place}` }, cookie, place)).status;
    const statuses: number[] = [];
    for (let place = 1; place <= 10; place += 1) {
      statuses.push(await guess(place, place % 2 ? '/two-factor/enable' : '/two-factor/disable'));
    }
    assert.deepEqual(new Set(statuses), new Set([400]));
    assert.equal(await guess(11, '/two-factor/enable'), 429);
    const late = await auth('/two-factor/disable', { password: 'guess 12' }, cookie, 12);
    assert.equal(late.status, 429);
    assert.equal(late.headers.get('retry-after'), '900');
    assert.match(refusalOf(late).message, /Wait 15 minutes, or choose a new password/);
    const lines = (await readFile(api.logFile, 'utf8')).split('\n');
    for (const path of ['/two-factor/enable', '/two-factor/disable']) {
      assert.ok(lines.some((l) => l.includes(path) && l.includes('an attempt to sign in failed')));
    }
    // The owner can sign in all the same, and end that session.
    assert.equal((await enter(email)).status, 200);
  });

  it('forgets wrong passwords after the right one', async () => {
    const cookie = await member('typo@example.com');
    const guess = async (path: string, by: string, password: string) => {
      await api.sql.query('delete from console.rate_limits');
      return (await auth(path, { password }, by)).status;
    };
    for (let n = 0; n < 9; n += 1) {
      assert.equal(await guess('/two-factor/enable', cookie, 'wrong'), 400);
    }
    const { renewed } = await turnOn(cookie);
    for (let n = 0; n < 9; n += 1) {
      assert.equal(await guess('/two-factor/disable', renewed, 'wrong'), 400);
    }
    assert.equal(await guess('/two-factor/disable', renewed, PASSWORD), 200);
    const { rows } = await api.sql.query(
      `select from console.sign_in_attempts where email_hash = sha256('typo@example.com')`,
    );
    assert.equal(rows.length, 0);
  });
});
