/**
 * API processes with a wrong clock: they make no charges, rather than charge a retry twice. What they do make
 * has the time of Postgres, and what ends, ends by it.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { uuidOf } from '../../src/domain/ids.ts';
import { ChargeReply, RefundReply } from '../../src/schemas/charges.ts';
import { UsageByDayReply } from '../../src/schemas/balance.ts';
import { EarningsReply } from '../../src/schemas/earnings.ts';
import { ListedHold } from '../../src/schemas/holds.ts';
import { DeveloperStatementReply } from '../../src/schemas/statements.ts';
import { TopUpReply } from '../../src/schemas/top-ups.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { ask } from '../support/approval-requests.ts';
import { askBudget, makeBudget, makeKey, spend } from '../support/budget-requests.ts';
import { askHold, place } from '../support/hold-requests.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { askLease, askSettle, makeLeasable, takeLease } from '../support/lease-requests.ts';
import { testSideOf } from '../support/test-mode.ts';
import { soonExpiring } from '../support/soon-expiring.ts';
import { startApiProcess, until, type ServerProcess } from '../support/stack.ts';

const PRELOAD = join(import.meta.dirname, '../support/shiftable-clock.ts');
const DAY_AND_HOUR_MS = 90_000_000;
/** Longer than any month, so that it ends in an earlier one. */
const MONTH_AND_DAY_MS = 32 * 86_400_000;

describe('a wrong clock', () => {
  let right: TestApi;
  let minutesAhead: ServerProcess;
  let minutesBehind: ServerProcess;
  /** 32 days ahead while a test shifts it. */
  let shiftable: ServerProcess;

  before(async () => {
    right = await startTestApi();
    minutesAhead = await startApiProcess(shifted(4 * 60_000));
    minutesBehind = await startApiProcess(shifted(-4 * 60_000));
    shiftable = await startApiProcess(shifted(MONTH_AND_DAY_MS, { CLOCK_SHIFTS_LATER: 'true' }));
  });
  after(async () => {
    for (const server of [shiftable, minutesBehind, minutesAhead, right]) await server?.stop();
  });

  const shifted = (aheadMs: number, more: Readonly<Record<string, string>> = {}) => ({
    env: {
      ...right.env,
      NODE_OPTIONS: `--import=${PRELOAD}`,
      CLOCK_AHEAD_MS: String(aheadMs),
      ...more,
    },
  });

  const shiftBack = async () => {
    shiftable.kill('SIGUSR2');
    await until(async () => (await call(shiftable, 'GET', '/readyz')).status === 200);
  };

  for (const [aheadMs, words] of [
    [DAY_AND_HOUR_MS, /clock of this machine is 9000\d s ahead of/],
    [-DAY_AND_HOUR_MS, /clock of this machine is (9000|8999)\d s behind/],
  ] as const) {
    it(`keeps a process from starting, with a message: ${aheadMs / 3_600_000} hours`, async () => {
      await assert.rejects(startApiProcess(shifted(aheadMs)), words);
    });
  }

  it('does not show in the times of charges: they are those of Postgres', async () => {
    const account = await right.createAccount(10);
    const fromMs = Date.now();
    const { createdAt } = bodyOf(await charge(minutesAhead, account), 201, ChargeReply);
    const atMs = Date.parse(createdAt);
    // The measured clock of Postgres may be off by the time that a reading takes, on a busy machine.
    assert.ok(atMs > fromMs - 60_000 && atMs < Date.now() + 60_000, createdAt);
  });

  it('completes no statement before its month is over', async () => {
    const account = await right.createAccount(10);
    try {
      shiftable.kill('SIGUSR2');
      await until(async () => (await charge(shiftable, account, { amount: 0.01 })).status === 503);
      const path = `/v1/statements/${new Date().toISOString().slice(0, 7)}`;
      const answer = await call(shiftable, 'GET', path, { key: account.developerKey });
      assert.equal(bodyOf(answer, 200, DeveloperStatementReply).complete, false);
    } finally {
      await shiftBack();
    }
  });

  it('does not show in the times of refunds: 4 minutes behind', () => refundOn(minutesBehind));

  it('does not show in the times of refunds: 32 days behind', async () => {
    const later = { CLOCK_SHIFTS_LATER: 'true' };
    const monthBehind = await startApiProcess(shifted(-MONTH_AND_DAY_MS, later));
    try {
      await refundOn(monthBehind, async (account) => {
        monthBehind.kill('SIGUSR2');
        // A charge that is refused shows that the clock has been shifted.
        await until(async () => (await charge(monthBehind, account, { amount: 1 })).status === 503);
      });
    } finally {
      await monthBehind.stop();
    }
  });

  async function refundOn(
    process: ServerProcess,
    shift?: (account: TestAccount) => Promise<void>,
  ): Promise<void> {
    const account = await right.createAccount(10);
    const { id } = bodyOf(await charge(right, account, { amount: 1 }), 201, ChargeReply);
    const key = account.developerKey;
    const month = new Date(Date.now() - MONTH_AND_DAY_MS).toISOString().slice(0, 7);
    const statement = async () =>
      bodyOf(
        await call(right, 'GET', `/v1/statements/${month}`, { key }),
        200,
        DeveloperStatementReply,
      );
    const complete = await statement();
    assert.equal(complete.complete, true);
    await shift?.(account);
    const before = await databaseTime();
    const answer = await call(process, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
    const refund = bodyOf(answer, 201, RefundReply);
    assert.ok(refund.createdAt >= before, `${refund.createdAt}, asked for at ${before}`);
    assert.ok(refund.createdAt <= (await databaseTime()), refund.createdAt);
    assert.deepEqual(await statement(), complete);
    const { rows } = await right.sql.query<{ at: Date }>(
      `select m.created_at as at from farebox.movements m
       join farebox.charge_refunds r using (ledger, consumer_id)
       where r.id = $1 and m.kind = 'charge_refund'`,
      [uuidOf('chargeRefund', refund.id)],
    );
    assert.deepEqual(
      rows.map(({ at }) => at.toISOString()),
      [refund.createdAt],
    );
  }

  it('does not show in the ids of top-ups, budgets, keys and approvals', async () => {
    const account = await right.createAccount(0);
    const { consumerKey: key } = account;
    const test = await testSideOf(right, right.databaseUrl, account);
    const before = await databaseTime();
    const body = { amount: 10 };
    const answer = await call(minutesBehind, 'POST', '/v1/top-up', { key: test.consumerKey, body });
    const { topUpId } = bodyOf(answer, 201, TopUpReply);
    const budget = await makeBudget(minutesBehind, key, { limit: 1 });
    const spendKey = await makeKey(minutesBehind, key, budget.id);
    const approval = await ask(minutesBehind, account, spendKey.key, 2);
    for (const [kind, id] of [
      ['topUp', topUpId],
      ['budget', budget.id],
      ['key', spendKey.id],
      ['approval', approval.id],
    ] as const) {
      const { rows } = await right.sql.query<{ at: Date }>(
        'select uuid_extract_timestamp($1::uuid) as at',
        [uuidOf(kind, id)],
      );
      const at = rows[0]?.at.toISOString() ?? '';
      assert.ok(at >= before && at <= (await databaseTime()), `${kind} of ${at}`);
    }
  });

  it('ends no key and no budget before its time: 4 minutes ahead', async () => {
    const account = await right.createAccount(10);
    const { consumerKey: key } = account;
    const expiresAt = await databaseTime(120_000);
    const lasting = await makeBudget(right, key);
    const ending = await makeBudget(right, key, { expiresAt });
    for (const { key: spendKey } of [
      await makeKey(right, key, lasting.id, { expiresAt }),
      await makeKey(right, key, ending.id),
    ]) {
      bodyOf(await spend(minutesAhead, account, spendKey, 1), 201, ChargeReply);
    }
    await makeBudget(minutesAhead, key, { expiresAt });
  });

  it('lets no key and no budget live longer: 4 minutes behind', async () => {
    const account = await right.createAccount(10);
    const { consumerKey: key } = account;
    const lasting = await makeBudget(right, key);
    const { expiresAt, keys } = await soonExpiring(async (expires) => {
      const ending = await makeBudget(right, key, { expiresAt: expires });
      const both = [
        await makeKey(right, key, lasting.id, { expiresAt: expires }),
        await makeKey(right, key, ending.id),
      ];
      for (const { key: spendKey } of both) {
        bodyOf(await spend(minutesBehind, account, spendKey, 0.01), 201, ChargeReply);
      }
      return { expiresAt: expires, keys: both };
    });
    // What the process takes for the time of Postgres may be late by the time that a reading takes.
    await until(async () => (await databaseTime(-1_000)) > expiresAt);
    for (const { key: spendKey } of keys) {
      const answer = await spend(minutesBehind, account, spendKey, 1);
      assertError(answer, 401, 'invalid_api_key', 'apiKey');
    }
    const asked = await askBudget(minutesBehind, key, { expiresAt });
    assertError(asked, 400, 'invalid_request', 'expiresAt');
  });

  it('keeps a running process from leases, and from saying that a retry was not made', async () => {
    const account = await right.createAccount(10);
    const { spendKey, keyId } = await makeLeasable(right, account.consumerKey, { limit: 5 });
    const keyed = { 'idempotency-key': 'once' };
    const lease = await takeLease(right, account, spendKey);
    const charged = await spend(right, account, spendKey, 1, {}, keyed);
    bodyOf(charged, 201, ChargeReply);
    try {
      shiftable.kill('SIGUSR2');
      await until(async () => (await charge(shiftable, account, { amount: 0.01 })).status === 503);
      const answers = [
        await askLease(shiftable, account, spendKey),
        await askLease(shiftable, account, spendKey, {}, keyed),
        await askSettle(shiftable, account, lease.id, [{ sequence: 1 }]),
      ];
      const path = `/v1/keys/${keyId}/revoke`;
      const key = account.consumerKey;
      assert.equal((await call(shiftable, 'POST', path, { key, body: {} })).status, 200);
      await until(async () => (await spend(right, account, spendKey, 1)).status === 401);
      answers.push(await spend(shiftable, account, spendKey, 1, {}, keyed));
      for (const answer of answers) assertError(answer, 503, 'service_unavailable');
    } finally {
      await shiftBack();
    }
  });

  it('shows the days, today and open links of the clock of Postgres: 32 days ahead', async () => {
    const account = await right.createAccount(2);
    const { consumerKey, developerKey, legacyKey } = account;
    await charge(right, account, { amount: 1 });
    const refused = await charge(right, account, { amount: 3 });
    const { topUpUrl } = (refused.body as { error: { topUpUrl: string } }).error;
    try {
      shiftable.kill('SIGUSR2');
      await until(async () => (await charge(shiftable, account, { amount: 0.01 })).status === 503);
      const from = `${(await databaseTime()).slice(0, 10)}T00:00:00.000Z`;
      const get = (path: string, key: string) => call(shiftable, 'GET', path, { key });
      const usage = await get(`/v1/usage/daily?from=${from}`, consumerKey);
      assert.deepEqual(bodyOf(usage, 200, UsageByDayReply).days, [{ from, spent: 1 }]);
      const earned = await get(`/v1/earnings?interval=day&from=${from}`, developerKey);
      const { todayEarnings, series } = bodyOf(earned, 200, EarningsReply);
      assert.deepEqual([todayEarnings, series?.length], [1, 1]);
      const page = await fetch(`${shiftable.url}/top-up${new URL(topUpUrl).search}`);
      assert.equal(page.status, 200);
      const headers = { 'x-service-key': legacyKey };
      const ask = (path: string, body: object) => call(shiftable, 'POST', path, { headers, body });
      const agent = { id: 'clocks', name: 'clocks', protocol: 'https' };
      const endpoint = 'https://agent.example';
      const registered = await ask('/register', { ...agent, endpoint });
      assert.equal(registered.status, 201, JSON.stringify(registered.body));
      const granted = await ask('/grant', {
        callerId: 'somebody',
        targetAgentId: agent.id,
        type: 'session',
        expiresAt: await databaseTime(3_600_000),
      });
      assert.equal(granted.status, 201, JSON.stringify(granted.body));
    } finally {
      await shiftBack();
    }
  });

  it('keeps a process from being ready, for as long as it makes no charges', async () => {
    const readiness = async (status: number, clock: string) => {
      await until(async () => {
        const answer = await call(shiftable, 'GET', '/readyz');
        const { dependencies } = answer.body as { dependencies: Record<string, string> };
        const shown = [answer.status, dependencies['postgres'], dependencies['clock']];
        return isDeepStrictEqual(shown, [status, 'up', clock]);
      });
    };
    await readiness(200, 'right');
    shiftable.kill('SIGUSR2');
    await readiness(503, 'wrong');
    shiftable.kill('SIGUSR2');
    await readiness(200, 'right');
  });

  it('leaves no hold of a revoked key open: 32 days ahead', async () => {
    const account = await right.createAccount(10);
    const { consumerKey: key } = account;
    try {
      const budget = await makeBudget(shiftable, key, { limit: 5 });
      const spendKey = await makeKey(shiftable, key, budget.id);
      const hold = await place(right, { ...account, consumerKey: spendKey.key });
      shiftable.kill('SIGUSR2');
      await until(async () => (await charge(shiftable, account, { amount: 0.01 })).status === 503);
      const path = `/v1/keys/${spendKey.id}/revoke`;
      const answer = await call(shiftable, 'POST', path, { key, body: { releaseHolds: true } });
      assert.equal(answer.status, 200);
      const shown = await call(right, 'GET', `/v1/holds/${hold.id}`, { key: account.developerKey });
      assert.equal(bodyOf(shown, 200, ListedHold).status, 'released');
    } finally {
      await shiftBack();
    }
  });

  const databaseTime = async (inMs = 0) => {
    const { rows } = await right.sql.query<{ at: Date }>('select clock_timestamp() as at');
    return new Date(Number(rows[0]?.at ?? assert.fail()) + inMs).toISOString();
  };

  const connectionsMade = async () => {
    const { rows } = await right.sql.query<{ sessions: string }>(
      'select sessions from pg_stat_database where datname = current_database()',
    );
    return Number(rows[0]?.sessions);
  };

  it('keeps a running process from charging; a retry elsewhere or later charges once', async () => {
    const account = await right.createAccount(10);
    const keyed = (server: { readonly url: string }) =>
      charge(server, account, {}, { 'idempotency-key': 'once' });
    const first = bodyOf(await keyed(shiftable), 201, ChargeReply);
    shiftable.kill('SIGUSR2');
    const refused = await until(async () => {
      const answer = await charge(shiftable, account, { amount: 0.01 });
      return answer.status === 503 && answer;
    });
    assertError(refused, 503, 'service_unavailable');
    assert.match(JSON.stringify(refused.body), /This server's clock is out of sync/);
    // A refusal costs no connection, which would have to be opened again.
    const before = await connectionsMade();
    for (let count = 1; count <= 20; count += 1) await charge(shiftable, account, { amount: 0.01 });
    const made = (await connectionsMade()) - before;
    assert.ok(made < 5, `${made} connections for 20 refused charges`);
    assert.equal((await keyed(shiftable)).status, 503);
    const unpriced = { tool: 'unpriced', amount: undefined };
    for (const answer of [
      // Refused, unless the key has made it before.
      await charge(shiftable, account, unpriced, { 'idempotency-key': 'other' }),
      await askHold(shiftable, account, unpriced, { 'idempotency-key': 'other' }),
    ]) {
      assertError(answer, 503, 'service_unavailable');
    }
    assert.deepEqual(bodyOf(await keyed(right), 201, ChargeReply), first);
    shiftable.kill('SIGUSR2');
    await until(async () => (await keyed(shiftable)).status === 201);
    assert.deepEqual(bodyOf(await keyed(shiftable), 201, ChargeReply), first);
  });
});
