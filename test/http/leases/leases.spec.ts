/**
 * Leases over HTTP: taken, settled, renewed, released and expired. A refusal changes nothing, and every entry
 * is one charge.
 */
import assert from 'node:assert/strict';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { ChargesReply } from '../../../src/schemas/charges.ts';
import { LeasesReply } from '../../../src/schemas/leases.ts';
import { LEASED_TOOLS_MAX } from '../../../src/domain/lease.ts';
import { ToolReply } from '../../../src/schemas/tools.ts';
import type { Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
} from '../../support/budget-requests.ts';
import { askCapture, askExtension, askRelease, keyed } from '../../support/hold-requests.ts';
import { assertError, assertErrorBody, bodyOf, call } from '../../support/http.ts';
import { keptPool } from '../../support/kept-pools.ts';
import {
  askLease,
  askLeaseRelease,
  askRenewal,
  askSettle,
  copyLease,
  endAllLeases,
  makeLeasable,
  renew,
  settle,
  settleAtLast,
  showLease,
  takeLease,
} from '../../support/lease-requests.ts';
import { assertLinkFor } from '../../support/top-up-links.ts';

const NOTHING = `lse_${'0'.repeat(32)}`;
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => ({ sequence: from + n }));

describe('leases', () => {
  const api = openTestApi();
  let database: Database;
  let account: TestAccount;
  let key: string;

  before(async () => {
    database = await keptPool(api.databaseUrl);
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    key = account.consumerKey;
  });

  const balance = async () =>
    bodyOf(await call(api, 'GET', '/v1/balance', { key }), 200, BalanceReply).balance;
  const register = async (name: string, price?: number) => {
    const asked = { key: account.developerKey, body: { name, price } };
    return bodyOf(await call(api, 'POST', '/v1/tools', asked), 201, ToolReply).id;
  };
  /** Moves the whole lease this long into the past. */
  const age = async (id: string, interval: string) => {
    await api.sql.query(
      `with aged as (update farebox.hold_expiries set due_at = due_at - $2::interval where $1 = any (holds))
       update farebox.holds set expires_at = expires_at - $2::interval, placed_at = placed_at - $2::interval
       where id = $1`,
      [id.slice(4), interval],
    );
  };

  it('reserve money, charge what is settled, and give the rest back', async () => {
    const { spendKey, budgetId } = await makeLeasable(api, key, { limit: 5 });
    const lease = await takeLease(api, account, spendKey, { amount: '2', expiresIn: 60 });
    assert.match(lease.id, /^lse_[0-9a-f]{32}$/);
    const { amount, remaining, settled, fence, tools, status } = lease;
    assert.deepEqual(
      [amount, remaining, settled, fence, status, lease.balance],
      [2, 2, 0, 1, 'open', 8],
    );
    assert.deepEqual(tools, [{ name: 'search', price: 0.02 }]);
    assert.ok(lease.expiresIn > 50 && lease.expiresIn <= 60, String(lease.expiresIn));
    assert.equal((await showBudget(api, key, budgetId)).used, 2);

    const first = await settle(api, account, lease.id, [
      ...numbered(1, 3),
      { sequence: 4, amount: 0.005, metadata: { call: 'four' } },
    ]);
    assert.deepEqual(statuses(first.results), [201, 201, 201, 201]);
    assert.deepEqual([first.lease.settled, first.lease.remaining], [0.065, 1.935]);
    const again = await settle(api, account, lease.id, numbered(1, 3));
    assert.deepEqual(
      again.results,
      first.results.slice(0, 3).map((each) => ({ ...each, replayed: true })),
    );
    const last = await settle(api, account, lease.id, numbered(7, 7), { final: true });
    assert.deepEqual(
      [last.lease.status, last.lease.settled, last.lease.released, last.lease.remaining],
      ['released', 0.085, 1.915, 0],
    );
    assert.equal(await balance(), 9.915);
    assert.equal((await showBudget(api, key, budgetId)).used, 0.085);

    const listed = bodyOf(
      await call(api, 'GET', '/v1/charges?limit=100', { key: account.developerKey }),
      200,
      ChargesReply,
    ).charges;
    assert.equal(listed.length, 5);
    assert.ok(listed.every((charge) => charge.leaseId === lease.id && !('holdId' in charge)));
    const [newest] = last.results;
    assert.ok(newest && 'receipt' in newest);
    const { receipt, id } = newest;
    assert.equal(listed.find((charge) => charge.id === id)?.receipt, receipt);
    const refund = { key: account.developerKey, body: {} };
    assert.equal((await call(api, 'POST', `/v1/charges/${id}/refund`, refund)).status, 201);
    assert.equal((await showBudget(api, key, budgetId)).used, 0.065);
  });

  it('are refused to keys and budgets that do not allow them', async () => {
    await register('search');
    const refused = async (apiKey: string, budgetId: string | null) =>
      assertError(
        await api.changingNothing(() => askLease(api, account, apiKey)),
        403,
        'lease_not_allowed',
        undefined,
        budgetId === null ? {} : { budgetId },
      );
    await refused(key, null);
    const plain = await makeBudget(api, key);
    await refused((await makeKey(api, key, plain.id)).key, plain.id);
    // A child cannot allow what its parent does not.
    const child = await makeLeasable(api, key, { parentId: plain.id });
    await refused(child.spendKey, plain.id);
    assert.equal((await askLease(api, account, 'fare_ck_live_no')).status, 401);
  });

  it('are refused beyond maxLease, a limit, the balance or the price of a call', async () => {
    const { spendKey, budgetId } = await makeLeasable(api, key, {
      maxLease: 3,
      limit: 4,
      maxPerCall: 0.5,
    });
    const facts = { budgetId, resetsAt: null };
    await register('search');
    const ask = (changes: Readonly<Record<string, unknown>>) =>
      api.changingNothing(() => askLease(api, account, spendKey, changes));
    assertError(await ask({ amount: 3.01 }), 402, 'spend_limit_reached', undefined, {
      ...facts,
      scope: 'per_lease',
      limit: 3,
      remaining: 3,
    });
    const many = Array.from({ length: LEASED_TOOLS_MAX + 1 }, (_, n) => ({
      name: `tool-${n}`,
      price: 0.01,
    }));
    assertError(await ask({ tools: many }), 400, 'invalid_request', 'tools');
    const dear = [{ name: 'search', price: 0.51 }];
    assertError(await ask({ tools: dear }), 402, 'spend_limit_reached', undefined, {
      ...facts,
      scope: 'per_call',
      limit: 0.5,
      remaining: 0.5,
    });
    await takeLease(api, account, spendKey, { amount: 3 });
    assertError(await ask({ amount: 1.5 }), 402, 'spend_limit_reached', undefined, {
      ...facts,
      scope: 'total',
      limit: 4,
      remaining: 1,
    });
    const open = await makeLeasable(api, key);
    const short = await askLease(api, account, open.spendKey, { amount: 7.5 });
    assert.equal(short.status, 402);
    assert.equal((short.body as { error: { code: string } }).error.code, 'insufficient_balance');
    await assertLinkFor(api, short, account);
  });

  it('take registered prices, and refuse tools that have none or that the budget does not allow', async () => {
    const { spendKey, budgetId } = await makeLeasable(api, key, { tools: ['priced', 'search'] });
    await register('priced', 0.07);
    const { tools } = await takeLease(api, account, spendKey, {
      tools: ['priced', { name: 'search', price: '0.01' }],
    });
    assert.deepEqual(tools, [
      { name: 'priced', price: 0.07 },
      { name: 'search', price: 0.01 },
    ]);
    const ask = (...asked: unknown[]) => askLease(api, account, spendKey, { tools: asked });
    assertError(await ask('priced', 'nobody'), 400, 'unknown_tool', 'tools.1');
    assertError(await ask('search'), 400, 'invalid_amount', 'tools.0');
    assertError(await ask('priced', 'priced'), 400, 'invalid_request', 'tools.1');
    assert.match(JSON.stringify(await ask('nobody')), /take the lease with a price/);
    assert.match(JSON.stringify(await ask('search')), /take the lease with a price/);
    const other = { name: 'other', price: 1 };
    assertError(await ask(other), 403, 'tool_not_allowed', 'tool', { budgetId });
    for (const price of [-1, true, null]) {
      assertError(await ask({ name: 'search', price }), 400, 'invalid_amount', 'tools.0.price');
    }
    assertError(await ask({ name: 7 }), 400, 'invalid_request', 'tools.0.name');
    for (const wrong of [{ amount: 0 }, { amount: -1 }, { amount: 0.0000001 }]) {
      assertError(await askLease(api, account, spendKey, wrong), 400, 'invalid_amount', 'amount');
    }
    for (const expiresIn of [0, -5, 86_401, 1.5, 'soon']) {
      const answer = await askLease(api, account, spendKey, { expiresIn });
      assertError(answer, 400, 'invalid_request', 'expiresIn');
    }
  });

  it('are taken once by an idempotency key', async () => {
    const { spendKey } = await makeLeasable(api, key);
    const first = await askLease(api, account, spendKey, {}, keyed('one'));
    const again = await askLease(api, account, spendKey, {}, keyed('one'));
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual((again.body as { id: string }).id, (first.body as { id: string }).id);
    const changed = await askLease(api, account, spendKey, { amount: 2 }, keyed('one'));
    assertError(changed, 422, 'idempotency_key_reused');
    assert.equal(await balance(), 9);
  });

  describe('entries', () => {
    let spendKey: string;
    let lease: string;

    beforeEach(async () => {
      ({ spendKey } = await makeLeasable(api, key));
      lease = (await takeLease(api, account, spendKey, { amount: 0.1 })).id;
    });

    it('with a number that was settled for another amount, tool or metadata are refused alone', async () => {
      await settle(api, account, lease, numbered(1, 1));
      const changed = [{ sequence: 1, amount: 0.01 }, { sequence: 2 }];
      const { results } = await settle(api, account, lease, changed);
      assert.deepEqual(statuses(results), [422, 201]);
      const noted = [{ sequence: 1, metadata: { a: 1 } }, { sequence: 1_000_000 }];
      assert.deepEqual(statuses((await settle(api, account, lease, noted)).results), [422, 201]);
    });

    it('are refused if they are more than a thousand', async () => {
      const many = await api.changingNothing(() =>
        askSettle(api, account, lease, numbered(1, 1_001)),
      );
      assertError(many, 400, 'invalid_request', 'entries');
    });

    it('for another tool, above the price or beyond the lease are refused, each alone', async () => {
      const asked = [
        { sequence: 1, tool: 'other' },
        { sequence: 2, amount: 0.020001 },
        ...numbered(3, 7),
        { sequence: 8 },
        { sequence: 9, amount: 0.02 },
      ];
      const answer = await askSettle(api, account, lease, asked);
      const { results } = answer.body as { results: { status: number; error?: object }[] };
      assert.deepEqual(statuses(results), [403, 400, 201, 201, 201, 201, 201, 402, 402]);
      const requestId = answer.headers.get('x-request-id') ?? '';
      const errorAt = (n: number) => ({ error: results[n]?.error });
      assertErrorBody(errorAt(0), requestId, 'tool_not_allowed', 'tool');
      assertErrorBody(errorAt(1), requestId, 'invalid_amount', 'amount');
      assertErrorBody(errorAt(7), requestId, 'exceeds_lease', 'amount', { remaining: 0 });
      assert.equal((await showLease(api, key, lease)).status, 'settled');
      const after = await settle(api, account, lease, numbered(3, 3));
      assert.deepEqual(statuses(after.results), [201]);
      assert.deepEqual(
        statuses((await settle(api, account, lease, numbered(20, 20))).results),
        [409],
      );
    });

    it('of a lease that another developer holds are refused, and it is found by no one else', async () => {
      const stranger = await api.createAccount(1);
      assertError(await askSettle(api, stranger, lease, numbered(1, 1)), 404, 'lease_not_found');
      assertError(await askRenewal(api, stranger, lease), 404, 'lease_not_found');
      assertError(await askLeaseRelease(api, stranger, lease), 404, 'lease_not_found');
      for (const by of [stranger.developerKey, stranger.consumerKey]) {
        const answer = await call(api, 'GET', `/v1/leases/${lease}`, { key: by });
        assertError(answer, 404, 'lease_not_found');
      }
      for (const id of [NOTHING, 'lse_x', lease.replace('lse', 'hld')]) {
        assertError(await askSettle(api, account, id, numbered(1, 1)), 404, 'lease_not_found');
      }
      for (const by of [key, account.developerKey]) {
        const { leases } = bodyOf(
          await call(api, 'GET', '/v1/leases', { key: by }),
          200,
          LeasesReply,
        );
        assert.deepEqual(
          leases.map(({ id }) => id),
          [lease],
        );
      }
    });

    it('cannot be taken as captures, nor the lease released or extended as a hold', async () => {
      const hold = lease.replace('lse', 'hld');
      for (const answer of [
        await askCapture(api, account, hold),
        await askRelease(api, account, hold),
        await askExtension(api, account, hold, 60),
        await call(api, 'GET', `/v1/holds/${hold}`, { key }),
      ]) {
        assertError(answer, 404, 'hold_not_found');
      }
      const { body } = await call(api, 'GET', '/v1/holds', { key });
      assert.deepEqual((body as { holds: unknown[] }).holds, []);
    });

    it('are charged once when many settlements with the same numbers arrive together', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => settleAtLast(api, account, lease, numbered(1, 4))),
      );
      const ids = answers.map(({ results }) => results.map((each) => 'id' in each && each.id));
      assert.equal(new Set(ids.map((each) => each.join())).size, 1);
      assert.equal((await showLease(api, key, lease)).settled, 0.08);
    });

    it('lose against an expiry or a release that came first, and replays do not', async () => {
      await settle(api, account, lease, numbered(1, 2));
      await age(lease, '1 hour');
      const late = await settle(api, account, lease, numbered(2, 3));
      assert.deepEqual(statuses(late.results), [201, 409]);
      assert.deepEqual([late.lease.status, late.lease.remaining], ['expired', 0]);
      while ((await expireHolds(database)).holds > 0);
      assert.equal(await balance(), 9.96);
      const swept = await showLease(api, key, lease);
      assert.deepEqual([swept.settled, swept.released], [0.04, 0.06]);
      assert.deepEqual(
        statuses((await settle(api, account, lease, numbered(2, 3))).results),
        [201, 409],
      );
      const facts = { status: 'expired' };
      const released = await askLeaseRelease(api, account, lease);
      assertError(released, 409, 'lease_closed', undefined, facts);
      assertError(await askRenewal(api, account, lease), 409, 'lease_closed', undefined, facts);
    });

    it('are settled or released with the lease, never both', async () => {
      for (let round = 0; round < 8; round += 1) {
        const { id } = await takeLease(api, account, spendKey, { amount: 0.04 });
        await age(id, '300 seconds');
        const [settled] = await Promise.all([
          settleAtLast(api, account, id, numbered(1, 2)),
          expireHolds(database),
          askLeaseRelease(api, account, id),
        ]);
        const made = statuses(settled.results).filter((status) => status === 201).length;
        while ((await expireHolds(database)).holds > 0);
        const { settled: taken, released } = await showLease(api, key, id);
        assert.deepEqual([taken, taken + released], [made * 0.02, 0.04]);
      }
    });
  });

  describe('renewals', () => {
    it('raise the fence, and older fences are refused', async () => {
      const { spendKey } = await makeLeasable(api, key);
      const { id } = await takeLease(api, account, spendKey, { expiresIn: 60 });
      const renewed = await renew(api, account, id, { expiresIn: 120, fence: 1 });
      assert.equal(renewed.fence, 2);
      assert.ok(renewed.expiresIn > 100);
      const facts = { fence: 2 };
      for (const answer of [
        await askSettle(api, account, id, numbered(1, 1), { fence: 1 }),
        await askRenewal(api, account, id, { fence: 1, expiresIn: 300 }),
      ]) {
        assertError(answer, 409, 'lease_fenced', undefined, facts);
      }
      const { results } = await settle(api, account, id, numbered(1, 1), { fence: 2 });
      assert.deepEqual(statuses(results), [201]);
    });

    it('take effect once by an idempotency key', async () => {
      const { spendKey } = await makeLeasable(api, key);
      const { id } = await takeLease(api, account, spendKey);
      const body = { expiresIn: 600, fence: 1 };
      for (const replayed of [null, 'true']) {
        const answer = await askRenewal(api, account, id, body, keyed('r'));
        assert.equal(answer.headers.get('idempotency-replayed'), replayed);
        assert.equal((answer.body as { fence: number }).fence, 2);
      }
      const other = await askRenewal(api, account, id, { expiresIn: 700, fence: 2 }, keyed('r'));
      assertError(other, 422, 'idempotency_key_reused');
    });

    it('have the prices of now, and what was decided at the old ones can still be settled', async () => {
      const { spendKey } = await makeLeasable(api, key);
      const tool = await register('priced', 0.07);
      const { id } = await takeLease(api, account, spendKey, { tools: ['priced'] });
      const change = { key: account.developerKey, body: { price: 0.05 } };
      await call(api, 'PATCH', `/v1/tools/${tool}`, change);
      const { tools } = await renew(api, account, id, { expiresIn: 600 });
      assert.deepEqual(tools, [{ name: 'priced', price: 0.05 }]);
      const { results } = await settle(api, account, id, [
        { sequence: 1, tool: 'priced', amount: 0.07 },
      ]);
      assert.deepEqual(statuses(results), [201]);
    });

    it('are refused to revoked keys, closed budgets, passed limits and ended windows', async () => {
      const taken = async (body: object) => {
        const leasable = await makeLeasable(api, key, { ...body });
        const { id } = await takeLease(api, account, leasable.spendKey);
        return { ...leasable, id };
      };
      const refused = (id: string) =>
        api.changingNothing(() => askRenewal(api, account, id, { expiresIn: 600 }));

      const revoked = await taken({});
      await call(api, 'POST', `/v1/keys/${revoked.keyId}/revoke`, { key });
      assertError(await refused(revoked.id), 401, 'invalid_api_key', 'apiKey');
      // What it has left can still be settled until it expires.
      const { results } = await settle(api, account, revoked.id, numbered(1, 1));
      assert.deepEqual(statuses(results), [201]);

      const closed = await taken({});
      await closeBudget(api, key, closed.budgetId);
      assertError(await refused(closed.id), 401, 'invalid_api_key', 'apiKey');

      const off = await taken({});
      await changeBudget(api, key, off.budgetId, { allowLeases: false });
      const facts = { budgetId: off.budgetId };
      assertError(await refused(off.id), 403, 'lease_not_allowed', undefined, facts);

      const lowered = await taken({ limit: 5, window: { per: 'month', limit: 4 } });
      await changeBudget(api, key, lowered.budgetId, { limit: 0.5 });
      const total = { scope: 'total', limit: 0.5, remaining: 0, resetsAt: null };
      assertError(await refused(lowered.id), 402, 'spend_limit_reached', undefined, {
        budgetId: lowered.budgetId,
        ...total,
      });

      const turned = await taken({ window: { per: 'hour', limit: 4 } });
      const uuid = turned.id.slice(4);
      await api.sql.query(
        `update farebox.holds set placed_at = placed_at - interval '1 hour' where id = $1`,
        [uuid],
      );
      assertError(await refused(turned.id), 409, 'lease_not_renewable');
      await api.sql.query(
        `update farebox.holds set placed_at = placed_at + interval '1 hour' where id = $1`,
        [uuid],
      );

      const old = await taken({});
      await age(old.id, '23 hours 58 minutes');
      await api.sql.query(
        `update farebox.holds set expires_at = placed_at + interval '24 hours' where id = $1`,
        [old.id.slice(4)],
      );
      assertError(await refused(old.id), 409, 'lease_not_renewable');
      assert.equal((await askLeaseRelease(api, account, old.id)).status, 200);
    });
  });

  it('give everything back at expiry, ten thousand at once', async () => {
    const { spendKey, budgetId } = await makeLeasable(api, key, { limit: 9 });
    const { id } = await takeLease(api, account, spendKey, {
      amount: 0.0001,
      expiresIn: 3_600,
    });
    const uuid = id.slice(4);
    await copyLease(api.sql, uuid, 9_999);
    assert.equal(await balance(), 9);
    await endAllLeases(api.sql);
    while ((await expireHolds(database)).hasMore);
    assert.equal(await balance(), 10);
    assert.equal((await showBudget(api, key, budgetId)).used, 0);
    assert.equal((await showLease(api, key, id)).status, 'expired');
  });
});

function statuses(results: readonly { status: number }[]): number[] {
  return results.map(({ status }) => status);
}
