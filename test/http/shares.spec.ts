/** What one account may have in progress in an API process: as much as docs/limits.md says, and no more. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { ChargeBatchReply } from '../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge, insistOn, type Answer } from '../support/http.ts';
import { holdConsumer, waitedTooLong } from '../support/row-locks.ts';
import { testSideOf } from '../support/test-mode.ts';
import { until } from '../support/stack.ts';

describe('the share of an account', () => {
  let api: TestApi;
  let account: TestAccount;
  let other: TestAccount;
  let chargeId: string;
  let testKey: string;

  before(async () => {
    api = await startTestApiProcesses();
    account = await api.createAccount(10);
    other = await api.createAccount(10);
    testKey = (await testSideOf(api, api.databaseUrl, account)).consumerKey;
    chargeId = bodyOf(await charge(api, account, { amount: 1 }), 201, ChargeReply).id;
  });
  after(() => api?.stop());

  const get = (path: string) => call(api, 'GET', path, { key: account.developerKey });
  const kinds = [
    // One more than may be in progress and may wait.
    {
      what: 'reads of many rows',
      table: 'charge_refunds',
      max: 1,
      sent: 102,
      send: () => get('/v1/charges'),
    },
    {
      what: 'exports',
      table: 'charge_refunds',
      max: 3,
      sent: 24,
      send: () => get('/v1/charges.csv'),
    },
    {
      what: 'changes',
      table: 'agents',
      max: 2,
      sent: 503,
      send: () =>
        call(api, 'POST', '/register', {
          headers: { 'x-service-key': account.legacyKey },
          body: {
            id: randomUUID(),
            name: 'Otter finder',
            protocol: 'http',
            endpoint: 'https://agents.example.com/otters',
          },
        }),
    },
    {
      what: 'requests for play money',
      table: 'top_ups',
      max: 2,
      sent: 103,
      send: () => call(api, 'POST', '/v1/checkout', { key: testKey, body: { amount: 5 } }),
    },
    {
      what: 'refunds of charges',
      table: 'charge_refunds',
      max: 2,
      sent: 103,
      send: () =>
        call(api, 'POST', `/v1/charges/${chargeId}/refund`, {
          key: account.developerKey,
          body: { amount: 0.001 },
        }),
    },
  ];
  for (const { what, table, max, sent, send } of kinds) {
    it(`has ${max} in progress of ${sent} ${what}; others wait, and one too many gets 429`, async () => {
      const blocker = new Client({ connectionString: api.databaseUrl });
      await blocker.connect();
      const answers: Answer[] = [];
      try {
        await blocker.query(`begin; lock table farebox.${table} in access exclusive mode`);
        const asked = Array.from({ length: sent }, async () => answers.push(await send()));
        const refused = await until(() => answers.find(({ status }) => status === 429));
        assertError(refused, 429, 'rate_limited');
        assert.equal(refused.headers.get('retry-after'), '1');
        await until(async () => (await waitingStatements()) === max);
        const balance = await call(api, 'GET', '/v1/balance', { key: other.consumerKey });
        assert.equal(balance.status, 200);
        await blocker.query('rollback');
        await Promise.all(asked);
      } finally {
        await blocker.end();
      }
      const codes = answers.map(({ status }) => status);
      assert.ok(codes.filter((status) => status < 300).length >= max);
      // 503: on a slow machine, the lock was held for longer than a statement may wait for one.
      assert.deepEqual(
        codes.filter((status) => status >= 300 && ![429, 503].includes(status)),
        [],
      );
    });
  }

  const chargeOther = async () => {
    const answer = await insistOn(() => charge(api, other, { amount: 0.000001 }));
    bodyOf(answer, 201, ChargeReply);
  };
  const sendBatch = async (apiKey: string, count: number) => {
    const charges = Array.from({ length: count }, () => ({
      apiKey,
      tool: 'search',
      amount: 0.000001,
    }));
    return call(api, 'POST', '/v1/charges/batch', { key: account.developerKey, body: { charges } });
  };

  it('has one batch of 1,000 in progress, and no other, while a developer with few charges charges', async () => {
    for (;;) {
      const locked = await holdConsumer(api.databaseUrl, account.consumerId);
      try {
        let isAnswered = false;
        const first = sendBatch(account.consumerKey, 1_000);
        await locked.waited(1, first);
        await chargeOther();
        // Again, because the first one may have waited for the locked row, and its batches are small for a second only.
        await chargeOther();
        const second = sendBatch(other.consumerKey, 1).finally(() => (isAnswered = true));
        // It would be answered as quickly as each of these.
        for (let n = 0; n < 5; n += 1) await chargeOther();
        const wasAnswered = isAnswered;
        await locked.release();
        const answers = await Promise.all([first, second]);
        // On a busy machine, the first one may wait for longer than it may, and lets the second one pass.
        if (answers.some((answer) => waitedTooLong(answer))) continue;
        assert.equal(wasAnswered, false);
        assert.deepEqual(answers.map(statusesOf), [[201], [201]]);
        return;
      } finally {
        await locked.release();
      }
    }
  });

  async function waitingStatements(): Promise<number> {
    const { rows } = await api.sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length;
  }
});

/** Each status that a member of the batch has. */
function statusesOf(batch: Answer): number[] {
  const { results } = bodyOf(batch, 200, ChargeBatchReply);
  return [...new Set(results.map(({ status }) => status))];
}
