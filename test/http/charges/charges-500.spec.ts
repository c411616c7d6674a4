/** Answers when the database fails during a charge: never more than is certain. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';
import { Client } from 'pg';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import {
  createTestDatabase,
  farebox,
  startApiProcess,
  startWorkerProcess,
  until,
} from '../../support/stack.ts';

describe('POST /v1/charges when the database fails', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(100);
  });
  after(() => api.stop());

  it('answers outcome_unknown when the connection breaks meanwhile, and the same key resolves it', async () => {
    const headers = { 'idempotency-key': 'resolve me' };
    const unlock = await lockConsumer();
    const asked = charge(api, account, {}, headers);
    const backend = await until(api.waitingBackend);
    await api.changingNothing(async () => {
      await api.sql.query('select pg_terminate_backend($1)', [backend]);
      assertError(await asked, 500, 'outcome_unknown');
      await unlock();
    });
    const again = await charge(api, account, {}, headers);
    bodyOf(again, 201, ChargeReply);
    assert.equal(again.headers.get('idempotency-replayed'), null);
  });

  it('never makes a charge whose client disconnected before it was sent', async () => {
    let rounds = 0;
    const tool = await until(async () => {
      const name = `abandoned ${(rounds += 1)}`;
      const behind = await abandon(name);
      // On a busy machine the charge before it may wait for its row longer than it may.
      if (behind.status === 503) return false;
      bodyOf(behind, 201, ChargeReply);
      return name;
    });
    bodyOf(await charge(api, account), 201, ChargeReply);
    assert.equal(await countOf('farebox.charges', 'tool', tool), 0);
  });

  /** Disconnects the client of a charge that waits behind another, whose answer it returns. */
  async function abandon(tool: string): Promise<Answer> {
    const unlock = await lockConsumer();
    let isAnswered = false;
    const first = charge(api, account).finally(() => (isAnswered = true));
    await until(async () => isAnswered || (await api.waitingBackend()));
    const { url } = api;
    const body = JSON.stringify({ apiKey: account.consumerKey, tool, amount: 1 });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(
      [
        'POST /v1/charges HTTP/1.1',
        'Host: farebox',
        `Authorization: Bearer ${account.developerKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    );
    // Its tool is recorded just before it queues.
    await until(async () => (await countOf('farebox.tools', 'name', tool)) === 1);
    await call(api, 'GET', '/healthz');
    socket.resetAndDestroy();
    await once(socket, 'close');
    await call(api, 'GET', '/healthz');
    await unlock();
    return first;
  }

  it('answers service_unavailable while the database is down, and charges when it is back', async () => {
    await charge(api, account);
    const admin = new Client({ connectionString: adminUrl() });
    await admin.connect();
    const name = new URL(api.databaseUrl).pathname.slice(1);
    try {
      await admin.query(`alter database ${name} allow_connections false`);
      await disconnectOthers(admin, name);
      await api.changingNothing(async () => {
        const answer = await until(async () => {
          const each = await charge(api, account);
          return each.status === 503 && each;
        });
        assertError(answer, 503, 'service_unavailable');
        assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        for (const path of ['/v1/balance', '/v1/usage']) {
          const read = await call(api, 'GET', path, { key: account.consumerKey });
          assertError(read, 503, 'service_unavailable');
        }
        // Readiness is at most a second old.
        await until(async () => (await call(api, 'GET', '/readyz')).status === 503);
        assert.equal((await call(api, 'GET', '/healthz')).status, 200);
      });
    } finally {
      await admin.query(`alter database ${name} allow_connections true`);
      await admin.end();
    }
    await until(async () => (await charge(api, account)).status === 201);
    await until(async () => (await call(api, 'GET', '/readyz')).status === 200);
  });

  it('answers service_unavailable while Postgres is read-only, and is not ready then', async () => {
    const admin = new Client({ connectionString: adminUrl() });
    await admin.connect();
    const name = new URL(api.databaseUrl).pathname.slice(1);
    // Settings of a database hold for new connections.
    const set = async (setting: string) => {
      await admin.query(`alter database ${name} ${setting}`);
      await disconnectOthers(admin, name);
    };
    const readiness = async (status: number, postgres: string) => {
      const answer = await until(async () => {
        const each = await call(api, 'GET', '/readyz');
        return (
          (each.body as { dependencies: { postgres: string } }).dependencies.postgres ===
            postgres && each
        );
      });
      assert.equal(answer.status, status);
    };
    try {
      await set('set default_transaction_read_only = on');
      await api.changingNothing(async () => {
        await readiness(503, 'read_only');
        assertError(await charge(api, account), 503, 'service_unavailable');
      });
      await set('reset default_transaction_read_only');
      await set('set synchronous_commit = off');
      await readiness(503, 'not_durable');
    } finally {
      await set('reset all');
      await admin.end();
    }
    await readiness(200, 'up');
    bodyOf(await charge(api, account), 201, ChargeReply);
  });

  it('is ready again when Postgres accepts writes again and ends no session', async () => {
    const admin = new Client({ connectionString: adminUrl() });
    await admin.connect();
    const name = new URL(api.databaseUrl).pathname.slice(1);
    const ready = async () => (await call(api, 'GET', '/readyz')).status;
    try {
      await admin.query(`alter database ${name} set default_transaction_read_only = on`);
      await disconnectOthers(admin, name);
      await until(async () => (await ready()) === 503);
    } finally {
      await admin.query(`alter database ${name} reset default_transaction_read_only`);
      await admin.end();
    }
    await until(async () => (await ready()) === 200);
    bodyOf(await charge(api, account), 201, ChargeReply);
  });

  it('is not started on a PostgreSQL that is read-only', async () => {
    const database = await createTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    const admin = new Client({ connectionString: adminUrl() });
    await admin.connect();
    try {
      await admin.query(`alter database ${name} set default_transaction_read_only = on`);
      const env = { ...api.env, DATABASE_URL: database.url };
      await assert.rejects(startApiProcess({ env }), /Postgres is read-only/);
      await assert.rejects(startWorkerProcess({ env }), /Postgres is read-only/);
      await assert.rejects(farebox(['migrate'], { env }), /Postgres is read-only/);
    } finally {
      await admin.end();
      await database.drop();
    }
  });

  function adminUrl(): string {
    const url = new URL(api.databaseUrl);
    url.pathname = '/postgres';
    return url.href;
  }

  /** Autovacuum's workers are not ours to end. */
  async function disconnectOthers(admin: Client, databaseName: string): Promise<void> {
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = $1 and pid <> $2 and backend_type = 'client backend'`,
      [databaseName, await ownBackend()],
    );
  }

  async function ownBackend(): Promise<number> {
    const { rows } = await api.sql.query<{ pid: number }>('select pg_backend_pid() as pid');
    return rows[0]?.pid ?? 0;
  }

  /** Locks the consumer's row until the returned function is called. */
  async function lockConsumer(): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: api.databaseUrl });
    await client.connect();
    await client.query('begin');
    await client.query('select from farebox.consumers where id = $1 for update', [
      account.consumerId.slice('cns_'.length),
    ]);
    return () => client.end();
  }

  async function countOf(table: string, column: string, value: string): Promise<number> {
    const { rows } = await api.sql.query<{ count: number }>(
      `select count(*)::int as count from ${table} where ${column} = $1`,
      [value],
    );
    return rows[0]?.count ?? 0;
  }
});
