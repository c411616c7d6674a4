/** Budgets beside holds and refunds: what is reserved counts at once, what comes back is given back, and only once. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { KeyReply } from '../../../src/schemas/keys.ts';
import { ChargeReply, RefundReply } from '../../../src/schemas/charges.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { CaptureReply, PlacedHoldReply } from '../../../src/schemas/holds.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { endAll } from '../../support/end-all.ts';
import {
  askCapture,
  askHold,
  capture,
  extend,
  keyed,
  place,
  release,
} from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

describe('budgets beside holds and refunds', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;
  let key: string;
  /** The account with the spend key in the place of its own. */
  let spender: TestAccount;
  let root: string;
  let leaf: string;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 2, onError: () => {} });
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    key = account.consumerKey;
    root = (await makeBudget(api, key, { limit: 8 })).id;
    leaf = (await makeBudget(api, key, { parentId: root, window: { per: 'day', limit: 5 } })).id;
    spender = { ...account, consumerKey: (await makeKey(api, key, leaf)).key };
  });
  after(() =>
    endAll(
      () => proveBooks(api.env, { processor: false }),
      () => database.end(),
      () => api.stop(),
    ),
  );

  /** In all at the root and at the leaf, and in the window of the leaf. */
  const used = async () => {
    const [above, below] = [await showBudget(api, key, root), await showBudget(api, key, leaf)];
    return [above.used, below.used, below.window?.used];
  };
  const refund = async (id: string, amount?: number) =>
    bodyOf(
      await call(api, 'POST', `/v1/charges/${id}/refund`, {
        key: account.developerKey,
        body: { amount },
      }),
      201,
      RefundReply,
    );
  /** As if everything up to now had happened in windows that are over. */
  const turnWindows = async () => {
    for (const [table, column] of [
      ['budgets', 'window_began'],
      ['holds', 'placed_at'],
    ]) {
      await api.sql.query(
        `update farebox.${table} set ${column} = ${column} - interval '40 days' where consumer_id =
          (select consumer_id from farebox.accounts where email = $1)`,
        [account.email],
      );
    }
  };

  it('count a hold when it is placed, and give back what is let go of', async () => {
    const hold = await place(api, spender, { amount: 4 });
    assert.deepEqual(await used(), [4, 4, 4]);
    const refused = await askHold(api, spender, { amount: 1.5 });
    assert.equal((refused.body as { error: { code: string } }).error.code, 'spend_limit_reached');
    await capture(api, account, hold.id, { amount: 1 });
    assert.deepEqual(await used(), [1, 1, 1]);
    const second = await place(api, spender, { amount: 4 });
    await release(api, account, second.id);
    assert.deepEqual(await used(), [1, 1, 1]);
  });

  it('give back what a hold that expired has left', async () => {
    const hold = await place(api, spender, { amount: 4 });
    await capture(api, account, hold.id, { amount: 1, final: false });
    await api.sql.query(
      `with aged as (update farebox.holds set expires_at = now() - interval '1 s' where id = $1)
       update farebox.hold_expiries set due_at = now() where $1 = any (holds)`,
      [hold.id.slice(4)],
    );
    while ((await expireHolds(database)).hasMore);
    assert.deepEqual(await used(), [1, 1, 1]);
  });

  it('count of a capture only what exceeds the hold, within every limit', async () => {
    const hold = await place(api, spender, { amount: 4 });
    const over = { over: 'overflow' };
    const answer = await askCapture(api, account, hold.id, { amount: 5.000001, ...over });
    assert.equal(answer.status, 402);
    const { error } = answer.body as { error: Record<string, unknown> };
    const { code, budgetId, scope, limit, remaining } = error;
    assert.deepEqual(
      { code, budgetId, scope, limit, remaining },
      { code: 'spend_limit_reached', budgetId: leaf, scope: 'window', limit: 5, remaining: 1 },
    );
    assert.deepEqual(await used(), [4, 4, 4]);
    await capture(api, account, hold.id, { amount: 5, ...over });
    assert.deepEqual(await used(), [5, 5, 5]);
  });

  it('let no capture take more than one call may cost', async () => {
    await changeBudget(api, key, leaf, { maxPerCall: 2 });
    const hold = await place(api, spender, { amount: 1.5 });
    const answer = await askCapture(api, account, hold.id, { amount: 2.5, over: 'overflow' });
    assertError(answer, 402, 'spend_limit_reached', undefined, {
      budgetId: leaf,
      scope: 'per_call',
      limit: 2,
      remaining: 2,
      resetsAt: null,
    });
    await capture(api, account, hold.id, { amount: 2, over: 'overflow' });
    assert.deepEqual(await used(), [2, 2, 2]);
  });

  it('that are closed strand no running call: what its hold has left can be captured, and no more', async () => {
    const hold = await place(api, spender, { amount: 2 });
    await closeBudget(api, key, root);
    const answer = await askCapture(api, account, hold.id, { amount: 3, over: 'overflow' });
    assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 2 });
    const part = () =>
      askCapture(api, account, hold.id, { amount: 0.5, final: false }, keyed('part'));
    const first = bodyOf(await part(), 201, CaptureReply);
    await capture(api, account, hold.id, { amount: 1 });
    const again = await part();
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(bodyOf(again, 201, CaptureReply).id, first.id);
    assert.deepEqual(await used(), [1.5, 1.5, 1.5]);
  });

  it('let the hold of a revoked key be extended, to 24 hours after it was placed at most, and reserve no more', async () => {
    const made = await makeKey(api, key, leaf);
    const hold = await place(api, { ...account, consumerKey: made.key }, { amount: 2 });
    bodyOf(await call(api, 'POST', `/v1/keys/${made.id}/revoke`, { key }), 200, KeyReply);
    const { createdAt, expiresAt, remaining } = await extend(api, account, hold.id, 86_400);
    assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 86_400_000);
    assert.equal(remaining, 2);
    assert.deepEqual(await used(), [2, 2, 2]);
    await release(api, account, hold.id);
  });

  it('let no capture exceed its hold because the name of its tool begins with the id of an allowed developer', async () => {
    const { developerId } = await api.createAccount(0);
    const tool = `${developerId}/search`;
    const hold = await place(api, spender, { tool, amount: 0.5 });
    await changeBudget(api, key, root, { tools: [tool] });
    const answer = await askCapture(api, account, hold.id, { amount: 0.6, over: 'overflow' });
    assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 0.5 });
  });

  it('let a capture take no more than its hold once they would refuse a new charge', async () => {
    const ended = await makeKey(api, key, leaf);
    const stranger = await api.createAccount(0);
    const changes = [
      () => changeBudget(api, key, root, { tools: ['other'] }),
      () => changeBudget(api, key, root, { tools: null, developers: [stranger.developerId] }),
      () => changeBudget(api, key, root, { developers: null, approveDevelopers: true }),
      async () => {
        await changeBudget(api, key, root, { approveDevelopers: false });
        bodyOf(await call(api, 'POST', `/v1/keys/${ended.id}/revoke`, { key }), 200, KeyReply);
      },
    ];
    for (const change of changes) {
      const hold = await place(api, { ...account, consumerKey: ended.key }, { amount: 0.5 });
      await change();
      const answer = await askCapture(api, account, hold.id, { amount: 0.6, over: 'overflow' });
      assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 0.5 });
      await capture(api, account, hold.id, { amount: 0.6, over: 'cap' });
      await changeBudget(api, key, root, {
        tools: null,
        developers: null,
        approveDevelopers: false,
      });
    }
    await changeBudget(api, key, root, { tools: [`${account.developerId}/search`] });
    const [fits, expires] = [
      await place(api, spender, { amount: 0.5 }),
      await place(api, spender, { amount: 0.5 }),
    ];
    await capture(api, account, fits.id, { amount: 0.6, over: 'overflow' });
    await api.sql.query(`update farebox.budget_details set expires_at = now() where id = $1`, [
      root.slice(4),
    ]);
    const answer = await askCapture(api, account, expires.id, { amount: 0.6, over: 'overflow' });
    assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 0.5 });
    await capture(api, account, expires.id);
    assert.deepEqual(await used(), [3.1, 3.1, 3.1]);
  });

  it('answer the retry of a hold that they would refuse now, since a refusal says that nothing was reserved', async () => {
    const made = await makeKey(api, key, leaf);
    const by = { ...account, consumerKey: made.key };
    const first = bodyOf(await askHold(api, by, {}, keyed('made')), 201, PlacedHoldReply);
    const retried = async () => {
      const again = await askHold(api, by, {}, keyed('made'));
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      assert.deepEqual(bodyOf(again, 201, PlacedHoldReply), first);
      const other = await askHold(api, by, { amount: 2 }, keyed('made'));
      assertError(other, 422, 'idempotency_key_reused');
      const batch = await call(api, 'POST', '/v1/charges/batch', {
        key: account.developerKey,
        body: {
          charges: [
            { op: 'hold', apiKey: made.key, tool: 'search', amount: 1, idempotencyKey: 'made' },
          ],
        },
      });
      const { results } = bodyOf(batch, 200, ChargeBatchReply);
      assert.deepEqual(
        results.map((each) => [each.status, (each as { replayed?: boolean }).replayed]),
        [[201, true]],
      );
    };
    await changeBudget(api, key, root, { tools: ['other'] });
    assert.equal((await askHold(api, by, {}, keyed('new'))).status, 403);
    await retried();
    bodyOf(await call(api, 'POST', `/v1/keys/${made.id}/revoke`, { key }), 200, KeyReply);
    await until(async () => (await askHold(api, by, {}, keyed('new'))).status === 401);
    await retried();
    assert.deepEqual(await used(), [1, 1, 1]);
  });

  it('that are closed release what holds by their keys and those below reserve, when they are asked to', async () => {
    const [first, captured, plain] = [
      await place(api, spender, { amount: 2 }),
      await place(api, spender, { amount: 1 }),
      await place(api, account, { amount: 1.5 }),
    ];
    await capture(api, account, captured.id, { amount: 0.25, final: false });
    const closed = await closeBudget(api, key, root, { releaseHolds: true });
    assert.deepEqual([closed.status, closed.used], ['closed', 0.25]);
    assert.deepEqual(await used(), [0.25, 0.25, 0.25]);
    for (const { id } of [first, captured]) {
      const answer = await askCapture(api, account, id, {});
      assertError(answer, 409, 'hold_closed', undefined, { status: 'released' });
    }
    assert.equal((await askCapture(api, account, plain.id, {})).status, 201);
    assert.deepEqual(await closeBudget(api, key, root, { releaseHolds: true }), closed);
  });

  it('get back what the holds of a revoked key reserve, and of no other, when the revocation asks for it', async () => {
    const other = await makeKey(api, key, leaf);
    const ended = await makeKey(api, key, leaf);
    const by = (consumerKey: string) => place(api, { ...account, consumerKey }, { amount: 1 });
    const [stays, goes] = [await by(other.key), await by(ended.key)];
    const revoke = (id: string) =>
      call(api, 'POST', `/v1/keys/${id}/revoke`, { key, body: { releaseHolds: true } });
    bodyOf(await revoke(ended.id), 200, KeyReply);
    assert.deepEqual(await used(), [1, 1, 1]);
    const answer = await askCapture(api, account, goes.id, {});
    assertError(answer, 409, 'hold_closed', undefined, { status: 'released' });
    assert.equal((await askCapture(api, account, stays.id, {})).status, 201);
    const closing = { key, body: { releaseHold: true } };
    assertError(
      await call(api, 'POST', `/v1/budgets/${root}/close`, closing),
      400,
      'invalid_request',
      'releaseHold',
    );
  });

  it('get back what the holds of a revoked key reserve when the revocation is repeated, after a lock stopped it', async () => {
    const made = await makeKey(api, key, leaf);
    const hold = await place(api, { ...account, consumerKey: made.key }, { amount: 1 });
    const revoke = () =>
      call(api, 'POST', `/v1/keys/${made.id}/revoke`, { key, body: { releaseHolds: true } });
    const close = () =>
      call(api, 'POST', `/v1/budgets/${root}/close`, { key, body: { releaseHolds: true } });
    for (const end of [revoke, close]) {
      await api.sql.query('begin');
      // What a release needs, and a revocation does not.
      await api.sql.query('lock table farebox.holds in access exclusive mode');
      assertError(await end(), 500, 'outcome_unknown');
      await api.sql.query('rollback');
    }
    bodyOf(await revoke(), 200, KeyReply);
    const answer = await askCapture(api, account, hold.id, {});
    assertError(answer, 409, 'hold_closed', undefined, { status: 'released' });
    bodyOf(await revoke(), 200, KeyReply);
    const expired = await makeKey(api, key, (await makeBudget(api, key)).id);
    await api.sql.query(
      `update farebox.spend_keys set expires_at = now() where id = $1 and revoked_at is null`,
      [uuidOf('key', expired.id)],
    );
    const body = { releaseHolds: true };
    const ended = await call(api, 'POST', `/v1/keys/${expired.id}/revoke`, { key, body });
    // Revoked too: a process whose clock is behind takes it for active.
    assert.notEqual(bodyOf(ended, 200, KeyReply).revokedAt, null);
  });

  it('get back what is refunded, bit by bit, and never twice', async () => {
    const { id } = bodyOf(await spend(api, account, spender.consumerKey, 3), 201, ChargeReply);
    await refund(id, 1);
    assert.deepEqual(await used(), [2, 2, 2]);
    await refund(id);
    assert.deepEqual(await used(), [0, 0, 0]);
    const again = await call(api, 'POST', `/v1/charges/${id}/refund`, {
      key: account.developerKey,
      body: {},
    });
    assert.equal(again.status, 400);
    assert.deepEqual(await used(), [0, 0, 0]);
    assert.equal((await spend(api, account, spender.consumerKey, 5)).status, 201);
  });

  it('get back in a window only what it has counted', async () => {
    const { id } = bodyOf(await spend(api, account, spender.consumerKey, 3), 201, ChargeReply);
    await turnWindows();
    assert.deepEqual(await used(), [3, 3, 0]);
    bodyOf(await spend(api, account, spender.consumerKey, 2), 201, ChargeReply);
    await refund(id);
    assert.deepEqual(await used(), [2, 2, 2]);
  });

  it('credit a new window only with the excess of a hold that an earlier window counted', async () => {
    const hold = await place(api, spender, { amount: 2 });
    const released = await place(api, spender, { amount: 1 });
    await turnWindows();
    const { id } = await capture(api, account, hold.id, { amount: 5, over: 'overflow' });
    assert.deepEqual(await used(), [6, 6, 3]);
    await release(api, account, released.id);
    assert.deepEqual(await used(), [5, 5, 3]);
    await refund(id, 2);
    assert.deepEqual(await used(), [3, 3, 1]);
    await refund(id);
    assert.deepEqual(await used(), [0, 0, 0]);
  });

  it('get back nothing of a charge by a key of the account', async () => {
    const { id } = bodyOf(await spend(api, account, key, 3), 201, ChargeReply);
    bodyOf(await spend(api, account, spender.consumerKey, 2), 201, ChargeReply);
    await refund(id);
    assert.deepEqual(await used(), [2, 2, 2]);
  });
});
