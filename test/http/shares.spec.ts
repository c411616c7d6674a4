/** What one account may have in progress in an API process: as much as docs/limits.md says, and no more. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';
import { until } from '../support/stack.ts';

describe('the share of an account', () => {
  let api: TestApi;
  let account: TestAccount;
  let other: TestAccount;
  let chargeId: string;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    other = await api.createAccount(10);
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
        const [refused] = await until(() => answers.length > 0 && answers);
        assert.ok(refused);
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

  async function waitingStatements(): Promise<number> {
    const { rows } = await api.sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length;
  }
});
