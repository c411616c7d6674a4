/** Limits of one caller: beyond them, it is told to wait, and nobody else notices. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { ChargeBatchReply } from '../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { HoldReply, PlacedHoldReply } from '../../src/schemas/holds.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { holdConsumer } from '../support/row-locks.ts';
import { testSideOf } from '../support/test-mode.ts';
import { until } from '../support/stack.ts';

const READS_PER_SECOND = 20;
const FAILED_KEYS_PER_SECOND = 10;
const CONNECTIONS_PER_ADDRESS = 300;

describe('limits', () => {
  let api: TestApi;
  let account: TestAccount;
  let other: TestAccount;

  before(async () => {
    api = await startTestApi({
      servers: 2,
      env: {
        READS_PER_SECOND: String(READS_PER_SECOND),
        CHANGES_PER_SECOND: '1',
        REFUNDS_PER_SECOND: '1',
        FAILED_KEYS_PER_SECOND: String(FAILED_KEYS_PER_SECOND),
        CONNECTIONS_PER_ADDRESS: String(CONNECTIONS_PER_ADDRESS),
      },
    });
    account = await api.createAccount(10);
    other = await api.createAccount(10);
    for (const each of [account, other]) bodyOf(await charge(api, each), 201, ChargeReply);
  });
  after(() => api?.stop());

  const balance = ({ consumerKey }: TestAccount) =>
    call(api, 'GET', '/v1/balance', { key: consumerKey });

  const list = (server: { readonly url: string }) =>
    call(server, 'GET', '/v1/charges', { key: account.developerKey });

  /** The answers to as many requests, sent at once on one connection. */
  const answersTo = (count: number) =>
    new Promise<number>((resolve) => {
      const request = 'GET /healthz HTTP/1.1\r\nHost: farebox\r\n';
      const last = `${request}Connection: close\r\n\r\n`;
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      let received = '';
      socket.on('error', () => {}).on('data', (bytes) => (received += String(bytes)));
      socket.on('close', () => resolve(received.split('HTTP/1.1 200').length - 1));
      socket.write(`${request}\r\n`.repeat(count - 1) + last);
    });

  it('close the connections of an address beyond its own, and take more when some end', async () => {
    const open = new Set<Socket>();
    // The addresses of the loopback network are this machine's, on Linux.
    const connectFrom = (localAddress: string) => {
      const socket = connect({
        host: '127.0.0.1',
        port: Number(new URL(api.url).port),
        localAddress,
      });
      open.add(socket);
      socket.on('error', () => {}).on('close', () => open.delete(socket));
      return socket;
    };
    const isAnswered = async (localAddress: string): Promise<boolean> => {
      const socket = connectFrom(localAddress);
      socket.write('GET /healthz HTTP/1.1\r\nHost: farebox\r\nConnection: close\r\n\r\n');
      return (await text(socket).catch(() => '')).startsWith('HTTP/1.1 200');
    };
    const held = Array.from({ length: CONNECTIONS_PER_ADDRESS }, () => connectFrom('127.0.0.2'));
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    await until(async () => !(await isAnswered('127.0.0.2')));
    assert.equal(await isAnswered('127.0.0.3'), true);
    held[0]?.destroy();
    await until(() => isAnswered('127.0.0.2'));
    for (const socket of open) socket.destroy();
  });

  it('close a connection that sends many requests before the first is answered, and answer a few', async () => {
    assert.equal(await answersTo(9), 9);
    assert.ok((await answersTo(100)) < 100);
    assert.equal((await balance(account)).status, 200);
  });

  it('count the reads of an account, state what remains, and refuse no other account', async () => {
    const first = await balance(account);
    assert.equal(first.status, 200);
    assert.match(first.headers.get('ratelimit') ?? '', /^"reads";r=\d+;t=\d$/);
    assert.equal(first.headers.get('ratelimit-policy'), `"reads";q=${READS_PER_SECOND};w=1`);
    const answers = await Promise.all(
      Array.from({ length: 3 * READS_PER_SECOND }, () => balance(account)),
    );
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0);
    for (const answer of refused) {
      assertError(answer, 429, 'rate_limited');
      assert.match(answer.headers.get('ratelimit') ?? '', /^"reads";r=0;t=\d$/);
      assert.equal(answer.headers.get('retry-after'), '1');
    }
    assert.equal((await balance(other)).status, 200);
    bodyOf(await charge(api, account), 201, ChargeReply);
    await until(async () => (await balance(account)).status === 200);
  });

  it('count changes of an account, and leave it its charges', async () => {
    const change = () =>
      call(api, 'PATCH', '/v1/low-balance', {
        key: account.developerKey,
        body: { threshold: 1 },
      });
    const answers = await Promise.all([change(), change(), change()]);
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0);
    for (const answer of refused) {
      assertError(answer, 429, 'rate_limited');
      assert.equal(answer.headers.get('ratelimit-policy'), '"changes";q=1;w=1');
    }
    bodyOf(await charge(api, account), 201, ChargeReply);
  });

  it('count requests for top-ups as changes, of play money too', async () => {
    const test = await testSideOf(api, api.databaseUrl, account);
    for (const path of ['/v1/top-up', '/v1/checkout']) {
      const ask = () => call(api, 'POST', path, { key: test.consumerKey, body: { amount: 5 } });
      const answers = await Promise.all([ask(), ask(), ask()]);
      const refused = answers.filter(({ status }) => status !== 201);
      assert.ok(refused.length > 0, path);
      for (const answer of refused) {
        assertError(answer, 429, 'rate_limited');
        assert.equal(answer.headers.get('ratelimit-policy'), '"changes";q=1;w=1');
      }
    }
  });

  it('count no release of a hold, which passes with the charges', async () => {
    const key = account.developerKey;
    const body = { apiKey: account.consumerKey, tool: 'search', amount: 0.01 };
    const placed = await Promise.all(
      Array.from({ length: 2 * READS_PER_SECOND }, async () =>
        bodyOf(await call(api, 'POST', '/v1/holds', { key, body }), 201, PlacedHoldReply),
      ),
    );
    const released = await Promise.all(
      placed.map(({ id }) => call(api, 'POST', `/v1/holds/${id}/release`, { key })),
    );
    for (const answer of released) bodyOf(answer, 200, HoldReply);
  });

  it('count refunds of an account', async () => {
    const { id } = bodyOf(await charge(api, account), 201, ChargeReply);
    const refund = () =>
      call(api, 'POST', `/v1/charges/${id}/refund`, {
        key: account.developerKey,
        body: { amount: 0.001 },
      });
    const answers = await Promise.all([refund(), refund(), refund()]);
    const refused = answers.filter(({ status }) => status !== 201);
    assert.ok(refused.length > 0);
    for (const answer of refused) assertError(answer, 429, 'rate_limited');
  });

  it('count invalid keys from an address, and let valid ones in', async () => {
    const key = 'fare_ck_live_none';
    const answers = await Promise.all(
      Array.from({ length: 3 * FAILED_KEYS_PER_SECOND }, () =>
        call(api, 'GET', '/v1/balance', { key }),
      ),
    );
    const codes = new Set(answers.map(({ status }) => status));
    assert.deepEqual(codes, new Set([401, 429]));
    assert.equal((await balance(other)).status, 200);
  });

  it('leave connections for others while an account reads slowly, and for charges', async () => {
    const blocker = new Client({ connectionString: api.databaseUrl });
    await blocker.connect();
    await blocker.query('begin; lock table farebox.charge_refunds in access exclusive mode');
    const listAtBoth = async () => {
      let isWaiting = true;
      const lists = Array.from({ length: READS_PER_SECOND / 2 }, async () => {
        const answer = await list(api);
        if (answer.status !== 429) isWaiting = false;
        return answer;
      });
      await until(async () => !isWaiting || (await api.waitingBackend()));
      // While the first list waits, which it does longer than this request may.
      const atOtherServer = await list(api.servers[1] ?? api);
      if (isWaiting) return { lists, atOtherServer };
      // On a busy machine the first list may end before.
      await Promise.all(lists);
      return false;
    };
    try {
      const { lists, atOtherServer } = await until(listAtBoth);
      assertError(atOtherServer, 429, 'rate_limited');
      for (let n = 0; n < 10; n += 1) {
        for (const each of [account, other]) bodyOf(await charge(api, each), 201, ChargeReply);
      }
      for (const each of [account, other]) assert.equal((await balance(each)).status, 200);
      // One list waits for the table. The other lists of the account wait for this one, and occupy no connection.
      const { rows } = await blocker.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      assert.ok(rows.length <= 1);
      await until(async () => (await call(api, 'GET', '/readyz')).status === 200);
      // Its own reads have to wait, and those that would wait too long are refused.
      const refused = (await Promise.all(lists)).filter(({ status }) => status === 429);
      assert.ok(refused.length > 0);
      for (const answer of refused) assertError(answer, 429, 'rate_limited');
    } finally {
      await blocker.end();
    }
  });

  it('do not count batches among reads, and forget batches whose senders have left', async () => {
    const locked = await holdConsumer(api.databaseUrl, account.consumerId);
    const member = { apiKey: account.consumerKey, tool: 'search', amount: 0.000001 };
    const left = new AbortController();
    try {
      // Two of them are what an account may have in progress, so the others wait unread.
      const charges = Array.from({ length: 1_000 }, () => member);
      const batches = Array.from({ length: 6 }, () =>
        fetch(`${api.url}/v1/charges/batch`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${account.developerKey}`,
            'content-type': 'application/json',
          },
          body: JSON.stringify({ charges }),
          signal: left.signal,
        }),
      );
      await locked.waited(1);
      assert.equal((await balance(account)).status, 200);
      left.abort();
      await Promise.allSettled(batches);
    } finally {
      await locked.release();
    }
    bodyOf(
      await call(api, 'POST', '/v1/charges/batch', {
        key: account.developerKey,
        body: { charges: [member] },
      }),
      200,
      ChargeBatchReply,
    );
  });
});
