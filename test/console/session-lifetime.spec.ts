/** How long a session of the console lasts, used or not. */
import assert from 'node:assert/strict';
import { openTestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { signIn, signInLink, useSignInLink } from '../support/sessions.ts';

const DAY_SECONDS = 86_400;

describe('a session of the console', () => {
  const api = openTestApi();

  const session = (cookie: string) => call(api, 'GET', '/v1/session', { headers: { cookie } });

  const pass = (email: string, days: number) =>
    api.sql.query(
      `update console.sessions set created_at = created_at - make_interval(days => $2),
         expires_at = expires_at - make_interval(days => $2)
       where user_id = (select id from console.users where email = $1)`,
      [email, days],
    );

  it('ends after seven days without use, and thirty days after signing in, used or not', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    for (let day = 6; day < 30; day += 6) {
      await pass(email, 6);
      assert.equal((await session(cookie)).status, 200, `day ${day}`);
    }
    await pass(email, 6);
    assert.equal((await session(cookie)).status, 401);
    const unused = await signIn(api, api.databaseUrl, email);
    await pass(email, 7);
    assert.equal((await session(unused)).status, 401);
    const idle = await signIn(api, api.databaseUrl, email);
    assert.equal((await session(idle)).status, 200);
    await pass(email, 7);
    assert.equal((await session(idle)).status, 401);
  });

  it('has a cookie that a browser keeps as long as the session can last', async () => {
    const { email } = await api.createAccount(0);
    const link = await signInLink(api, api.databaseUrl, email);
    const [cookie = ''] = (await useSignInLink(link)).headers.getSetCookie();
    assert.equal(Number(/; Max-Age=(\d+)/.exec(cookie)?.[1]), 30 * DAY_SECONDS, cookie);
  });

  it('answers although it cannot be prolonged, as while the database is read-only', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    await api.sql.query(`
      create function console.refuse_write() returns trigger language plpgsql as
        $$ begin raise read_only_sql_transaction; end $$;
      create trigger refuse_writes before update of expires_at on console.sessions
        for each row when (new.expires_at > old.expires_at) execute function console.refuse_write();
    `);
    try {
      await pass(email, 2);
      assert.equal((await session(cookie)).status, 200);
    } finally {
      await api.sql.query('drop trigger refuse_writes on console.sessions');
    }
  });

  it('that was asked for as a short one ends after a day', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    // The library makes such a row for `rememberMe: false`.
    await api.sql.query(
      `update console.sessions set expires_at = created_at + interval '1 day'
       where user_id = (select id from console.users where email = $1)`,
      [email],
    );
    assert.equal((await session(cookie)).status, 200);
    await pass(email, 1);
    assert.equal((await session(cookie)).status, 401);
  });

  it('is written at most once a day, even when a page sends several requests at once', async () => {
    const { email } = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, email);
    await api.sql.query(`
      create sequence console.written;
      create function console.count_write() returns trigger language plpgsql as
        $$ begin perform nextval('console.written'); return null; end $$;
    `);
    const writesOf = async (work: () => Promise<unknown>): Promise<number> => {
      await api.sql.query(`
        create trigger count_writes after update on console.sessions
          for each row execute function console.count_write();
        alter sequence console.written restart;
      `);
      await work();
      await api.sql.query('drop trigger count_writes on console.sessions');
      const { rows } = await api.sql.query<{ count: number }>(
        `select nextval('console.written')::int - 1 as count`,
      );
      return rows[0]?.count ?? -1;
    };
    const writes: number[] = [];
    for (let day = 1; day < 30; day += 1) {
      await pass(email, 1);
      writes.push(
        await writesOf(async () => {
          const answers = await Promise.all(Array.from({ length: 4 }, () => session(cookie)));
          for (const { status } of answers) assert.equal(status, 200, `day ${day}`);
        }),
      );
    }
    // From day 23 on, it ends thirty days after signing in.
    const prolonged = Array.from({ length: 23 }, () => 1);
    assert.deepEqual(writes, [...prolonged, 0, 0, 0, 0, 0, 0]);
  });
});
