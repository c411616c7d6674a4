/** Test mode: play money goes through the same code, and no key, operator or link mixes it with real money. */
import assert from 'node:assert/strict';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { BalanceReply, UsageReply } from '../../../src/schemas/balance.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import { PlacedLeaseReply, SettlementReply } from '../../../src/schemas/leases.ts';
import { KeyReply, KeysReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import { AccountsReply } from '../../../src/schemas/operators.ts';
import { PublicReceiptReply, VerifyReply } from '../../../src/schemas/receipts.ts';
import {
  CheckoutReply,
  TopUpRecord,
  TopUpReply,
  TopUpsReply,
} from '../../../src/schemas/top-ups.ts';
import {
  NewWebhookEndpointReply,
  WebhookEndpointsReply,
} from '../../../src/schemas/webhook-endpoints.ts';
import { disableWebhookEndpoint } from '../../../src/store/events/webhook-endpoints.ts';
import { takeDisabled } from '../../../src/store/events/disabled-mails.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { ask } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, spend } from '../../support/budget-requests.ts';
import { askCapture, askHold, place } from '../../support/hold-requests.ts';
import { assertError, assertErrorBody, bodyOf, call, charge } from '../../support/http.ts';
import { keptPool } from '../../support/kept-pools.ts';
import { makeOperator, signIn, signInLink, useSignInLink } from '../../support/sessions.ts';
import { until } from '../../support/stack.ts';
import { testSideOf, type TestSide } from '../../support/test-mode.ts';

const MONTH = new Date().toISOString().slice(0, 7);

const claimsOf = (receipt: string) =>
  JSON.parse(Buffer.from(receipt.split('.')[2] ?? '', 'base64url').toString()) as object;

describe('test mode', () => {
  const api = openTestApi();
  let live: TestAccount;
  let test: TestSide;
  let headers: { cookie: string; origin: string };

  // Neither Temporal nor Stripe is there, and no worker: test mode needs none of them.
  before(async () => {
    live = await api.createAccount(10);
    test = await testSideOf(api, api.databaseUrl, live, 50);
    headers = { cookie: await signIn(api, api.databaseUrl, live.email), origin: api.url };
  });

  const post = (path: string, key: string, body: object = {}, more = {}) =>
    call(api, 'POST', path, { key, body, headers: more });
  const get = (path: string, key: string) => call(api, 'GET', path, { key });
  const keys = (path: string, body?: object) =>
    call(api, body ? 'POST' : 'GET', path, { headers, ...(body && { body }) });
  const pairs = () =>
    [
      { consumerKey: test.consumerKey, developerKey: live.developerKey },
      { consumerKey: live.consumerKey, developerKey: test.developerKey },
    ].map((keys) => ({ ...live, ...keys }));
  const verify = async (receipt: string, key: string) =>
    bodyOf(await post('/v1/receipts/verify', key, { receipt }), 200, VerifyReply);
  const refused = (statement: string, constraint: RegExp) =>
    assert.rejects(api.sql.query(statement), constraint);
  const balance = async ({ consumerKey }: TestAccount) =>
    bodyOf(await get('/v1/balance', consumerKey), 200, BalanceReply).balance;
  /** Everything that the live account shows, to the byte. */
  const liveBooks = async () => {
    const reads = [
      ['/v1/balance', live.consumerKey],
      ['/v1/usage', live.consumerKey],
      ['/v1/usage.csv', live.consumerKey],
      ['/v1/top-up', live.consumerKey],
      [`/v1/statements/${MONTH}`, live.consumerKey],
      ['/v1/earnings', live.developerKey],
      ['/v1/charges', live.developerKey],
      ['/v1/charges.csv', live.developerKey],
      ['/v1/top-ups', live.developerKey],
      ['/v1/holds', live.developerKey],
      ['/v1/tools', live.developerKey],
      [`/v1/statements/${MONTH}.csv`, live.developerKey],
    ] as const;
    const books = [];
    for (const [path, key] of reads) books.push((await get(path, key)).body);
    return books;
  };

  describe('keys', () => {
    it('are created, rolled and revoked by the signed-in owner, and say their mode', async () => {
      const asked = { kind: 'consumer', mode: 'test', name: 'CI' };
      const made = bodyOf(await keys('/v1/keys', asked), 201, NewKeyReply);
      assert.match(made.key, /^fare_ck_test_[0-9A-Za-z]{38}$/);
      const rolled = bodyOf(await keys(`/v1/keys/${made.id}/roll`, {}), 201, NewKeyReply);
      assert.match(rolled.key, /^fare_ck_test_/);
      assert.deepEqual([made.mode, rolled.mode], ['test', 'test']);
      assert.equal((await get('/v1/balance', made.key)).status, 401);
      assert.equal(await balance({ ...test, consumerKey: rolled.key }), await balance(test));
      const { keys: listed } = bodyOf(await keys('/v1/keys'), 200, KeysReply);
      assert.deepEqual(new Set(listed.map(({ mode }) => mode)), new Set(['live', 'test']));
      const revoked = await keys(`/v1/keys/${rolled.id}/revoke`, {});
      assert.equal(bodyOf(revoked, 200, KeyReply).mode, 'test');
      await until(async () => (await get('/v1/balance', rolled.key)).status === 401);
    });

    it('are not created by any key, and not for legacy endpoints', async () => {
      const body = { kind: 'developer', mode: 'test' };
      for (const key of [
        live.consumerKey,
        live.developerKey,
        test.consumerKey,
        test.developerKey,
      ]) {
        assert.equal((await post('/v1/keys', key, body)).status, 401);
      }
      assertError(
        await keys('/v1/keys', { ...body, kind: 'legacy' }),
        400,
        'invalid_request',
        'kind',
      );
      for (const key of [test.consumerKey, test.developerKey]) {
        const answer = await call(api, 'POST', '/resolve', {
          headers: { 'x-service-key': key },
          body: { query: 'translate' },
        });
        assertError(answer, 401, 'invalid_api_key');
      }
    });

    it("cannot be seen, rolled or revoked by another account's owner", async () => {
      const stranger = await api.createAccount(0);
      const cookie = await signIn(api, api.databaseUrl, stranger.email);
      const own = { headers: { cookie, origin: api.url } };
      const { keys: all } = bodyOf(await keys('/v1/keys'), 200, KeysReply);
      const id = all.find(({ mode }) => mode === 'test')?.id ?? '';
      assertError(
        await call(api, 'POST', `/v1/keys/${id}/revoke`, { ...own, body: {} }),
        404,
        'not_found',
      );
      const listed = bodyOf(await call(api, 'GET', '/v1/keys', own), 200, KeysReply);
      assert.ok(listed.keys.every(({ mode }) => mode === 'live'));
    });
  });

  describe('a key of each mode', () => {
    it('makes no charge, alone or in a batch, and no hold', async () => {
      await api.changingNothing(async () => {
        for (const pair of pairs()) {
          const refusal = [403, 'mode_mismatch', 'apiKey'] as const;
          assertError(await charge(api, pair, { tool: 'never' }), ...refusal);
          assertError(await charge(api, pair, {}, { 'idempotency-key': 'k' }), ...refusal);
          assertError(await askHold(api, pair), ...refusal);
          const charges = [{ apiKey: pair.consumerKey, tool: 'search', amount: 0.01 }];
          const answer = await post('/v1/charges/batch', pair.developerKey, { charges });
          const { results } = bodyOf(answer, 200, ChargeBatchReply);
          const requestId = answer.headers.get('x-request-id') ?? '';
          const { status, ...error } = results[0] as { status: number };
          assert.equal(status, 403);
          assertErrorBody(error, requestId, 'mode_mismatch', 'apiKey');
        }
      });
    });

    it('fails alone in a batch of both modes', async () => {
      const charges = [live, test].map(({ consumerKey: apiKey }) => ({
        apiKey,
        tool: 'search',
        amount: 0.25,
      }));
      const answer = await post('/v1/charges/batch', test.developerKey, { charges });
      const { results } = bodyOf(answer, 200, ChargeBatchReply);
      assert.deepEqual(
        results.map(({ status }) => status),
        [403, 201],
      );
    });

    it('reaches no hold and no charge of the other mode', async () => {
      const sides = [
        { own: live, other: test },
        { own: test, other: live },
      ];
      for (const { own, other } of sides) {
        const hold = await place(api, own);
        const made = bodyOf(await charge(api, own), 201, ChargeReply);
        const { developerKey: key } = other;
        await api.changingNothing(async () => {
          assertError(await askCapture(api, other, hold.id), 404, 'hold_not_found');
          assertError(await post(`/v1/holds/${hold.id}/release`, key), 404, 'hold_not_found');
          const extend = await post(`/v1/holds/${hold.id}/extend`, key, { expiresIn: 900 });
          assertError(extend, 404, 'hold_not_found');
          for (const reader of [key, other.consumerKey]) {
            assertError(await get(`/v1/holds/${hold.id}`, reader), 404, 'hold_not_found');
          }
          assertError(await get(`/v1/charges/${made.id}`, key), 404, 'not_found');
          assertError(await post(`/v1/charges/${made.id}/refund`, key), 404, 'not_found');
        });
        assert.equal((await askCapture(api, own, hold.id)).status, 201);
        assert.equal((await post(`/v1/charges/${made.id}/refund`, own.developerKey)).status, 201);
      }
    });
  });

  describe('play money', () => {
    it('is credited at once without card or consent, once for each idempotency key', async () => {
      const before = await balance(test);
      const key = { 'idempotency-key': 'first' };
      const topUp = (amount: number) => post('/v1/top-up', test.consumerKey, { amount }, key);
      const made = bodyOf(await topUp(7.5), 201, TopUpReply);
      assert.deepEqual([made.status, made.balance], ['completed', before + 7.5]);
      const again = await topUp(7.5);
      assert.deepEqual(bodyOf(again, 201, TopUpReply), made);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      assertError(await topUp(8), 422, 'idempotency_key_reused');
      const checkout = await post('/v1/checkout', test.consumerKey, { amount: 5 });
      const { sessionUrl = '', topUpId } = bodyOf(checkout, 201, CheckoutReply);
      assert.equal(await balance(test), before + 12.5);
      assert.ok(sessionUrl.startsWith(api.url));
      assert.match(await (await fetch(sessionUrl)).text(), /Play money was added/);
      const shown = bodyOf(await get(`/v1/top-up/${topUpId}`, test.consumerKey), 200, TopUpRecord);
      assert.deepEqual([shown.method, shown.status, shown.automatic], ['test', 'completed', false]);
      assertError(await get(`/v1/top-up/${topUpId}`, live.consumerKey), 404, 'not_found');
    });

    it('is credited once by twenty requests with one key at the same time', async () => {
      const before = await balance(test);
      const key = { 'idempotency-key': 'together' };
      // On a busy machine some wait for too long, and are to be sent again.
      const asked = Array.from({ length: 20 }, () =>
        until(async () => {
          const answer = await post('/v1/top-up', test.consumerKey, { amount: 1 }, key);
          return answer.status !== 429 && answer;
        }),
      );
      const ids = (await Promise.all(asked)).map((each) => bodyOf(each, 201, TopUpReply).topUpId);
      assert.equal(new Set(ids).size, 1);
      assert.equal(await balance(test), before + 1);
    });

    it('is added by the link of a refusal, which asks for no payment', async () => {
      const poor = await testSideOf(api, api.databaseUrl, await api.createAccount(0));
      const { body } = await charge(api, { ...test, consumerKey: poor.consumerKey }, { amount: 3 });
      const { topUpUrl } = (body as { error: { topUpUrl: string } }).error;
      const page = await (await fetch(topUpUrl)).text();
      assert.match(page, /play money and nobody pays/);
      const form = { link: new URL(topUpUrl).searchParams.get('link') ?? '', amount: '5' };
      const answer = await fetch(`${api.url}/top-up`, {
        method: 'POST',
        body: new URLSearchParams(form),
      });
      assert.match(await answer.text(), /result=test/);
      assert.equal(await balance(poor), 5);
    });

    it('is not shown as added on the page of a top-up that failed on demand', async () => {
      const failed = await post('/v1/top-up', test.consumerKey, { amount: 402.01 });
      assert.equal(failed.status, 402);
      const { topUpId } = (failed.body as { error: { topUpId: string } }).error;
      const page = await fetch(`${api.url}/top-up?id=${topUpId}&result=test`);
      assert.match(await page.text(), /Nothing was paid/);
    });

    it('is never more than can be counted', async () => {
      const rich = await testSideOf(api, api.databaseUrl, await api.createAccount(0), 1);
      await api.sql.query(
        `update farebox.consumers set credited_micros = 9007199254740991 where id = $1`,
        [rich.holder.consumerId],
      );
      const refused = await post('/v1/top-up', rich.consumerKey, { amount: 1 });
      assertError(refused, 400, 'invalid_amount', 'amount');
      await api.sql.query(`update farebox.consumers set credited_micros = 1000000 where id = $1`, [
        rich.holder.consumerId,
      ]);
    });

    it('shows in nothing of the live account, before and after a rollup', async () => {
      const before = await liveBooks();
      const made = bodyOf(await charge(api, test, { tool: 'play', amount: 4 }), 201, ChargeReply);
      const hold = await place(api, test, { tool: 'play', amount: 2 });
      assert.equal((await askCapture(api, test, hold.id, { amount: 1.5 })).status, 201);
      const refund = await post(`/v1/charges/${made.id}/refund`, test.developerKey, { amount: 1 });
      assert.equal(refund.status, 201);
      await post('/v1/tools', test.developerKey, { name: 'priced', description: '', price: 0.1 });
      await charge(api, test, { apiKey: 'fare_ck_test_wrong' });
      assert.deepEqual(await liveBooks(), before);
      const database = await keptPool(api.databaseUrl);
      assert.equal((await rollUp(database)).hasMore, false);
      assert.deepEqual(await liveBooks(), before);
      const earned = bodyOf(await get('/v1/earnings', test.developerKey), 200, EarningsReply);
      assert.equal(earned.byTool['play'], 4.5);
      const usage = await get('/v1/usage?tool=play', test.consumerKey);
      assert.equal(bodyOf(usage, 200, UsageReply).total, 4.5);
      for (const key of [test.consumerKey, test.developerKey]) {
        assert.equal((await get(`/v1/statements/${MONTH}`, key)).status, 200);
      }
    });

    it('for an approval is paid once without an idempotency key, and again with one', async () => {
      const budget = await makeBudget(api, test.consumerKey, {});
      const { key } = await makeKey(api, test.consumerKey, budget.id);
      const asked = await ask(api, test, key, 5_000);
      const topUp = (amount: number, more = {}) =>
        post(
          `/v1/approvals/${asked.id}/decide`,
          test.consumerKey,
          { decision: 'top_up', amount },
          more,
        );
      for (const _ of [1, 2]) assert.equal((await topUp(402.01)).status, 402);
      const other = await topUp(6_000);
      assertError(other, 422, 'idempotency_key_reused');
      assert.match(JSON.stringify(other.body), /already has a top-up of another amount/);
      assert.equal((await topUp(6_000, { 'idempotency-key': 'again' })).status, 200);
    });

    it('is spent by spend keys within their budgets, and by no live developer', async () => {
      const budget = await makeBudget(api, test.consumerKey, { limit: 1 });
      const { key, mode } = await makeKey(api, test.consumerKey, budget.id);
      assert.match(key, /^fare_ck_test_/);
      assert.equal(mode, 'test');
      assert.equal((await spend(api, test, key, 0.75)).status, 201);
      assert.equal((await spend(api, test, key, 0.5)).status, 402);
      assertError(await spend(api, live, key, 0.1), 403, 'mode_mismatch', 'apiKey');
      const ask = { apiKey: key, tool: 'search', amount: 0.1 };
      const approval = await post('/v1/approvals', live.developerKey, ask);
      assertError(approval, 403, 'mode_mismatch', 'apiKey');
      const { developerId } = live;
      const byPayer = await post('/v1/approvals', key, { developerId, tool: 'search', amount: 1 });
      assertError(byPayer, 404, 'not_found', 'developerId');
      const leased = await makeBudget(api, test.consumerKey, { limit: 5, allowLeases: true });
      const { key: apiKey } = await makeKey(api, test.consumerKey, leased.id);
      const lease = { apiKey, tools: [{ name: 'search', price: 0.01 }], amount: 1 };
      const mixed = await post('/v1/leases', live.developerKey, lease);
      assertError(mixed, 403, 'mode_mismatch', 'apiKey');
      const placed = await post('/v1/leases', test.developerKey, lease);
      const { id } = bodyOf(placed, 201, PlacedLeaseReply);
      const settled = await post(`/v1/leases/${id}/settle`, test.developerKey, {
        entries: [{ sequence: 1, tool: 'search', amount: 0.01 }],
        final: true,
      });
      const { results } = bodyOf(settled, 200, SettlementReply);
      const { receipt } = results[0] as { receipt: string };
      assert.deepEqual(Object.values(claimsOf(receipt)).at(-1), false);
      const checked = await post('/v1/receipts/verify', live.developerKey, { receipt });
      assert.equal(bodyOf(checked, 200, VerifyReply).charge?.livemode, false);
      assertError(
        await post(`/v1/leases/${id}/release`, live.developerKey),
        404,
        'lease_not_found',
      );
      const own = await makeBudget(api, live.consumerKey, { limit: 1 });
      const liveKey = await makeKey(api, live.consumerKey, own.id);
      assert.match(liveKey.key, /^fare_ck_live_/);
      assertError(await spend(api, test, liveKey.key, 0.1), 403, 'mode_mismatch', 'apiKey');
    });
  });

  describe('receipts', () => {
    it('of test charges say so to everyone who verifies them, with any key', async () => {
      const sides = [
        { side: test, livemode: false },
        { side: live, livemode: true },
      ];
      for (const { side, livemode } of sides) {
        const { receipt } = bodyOf(await charge(api, side), 201, ChargeReply);
        assert.equal('livemode' in claimsOf(receipt), !livemode);
        const asked = await post('/v1/receipts/public', side.consumerKey, { receipt });
        const signed = bodyOf(asked, 200, PublicReceiptReply).receipt;
        assert.equal('livemode' in claimsOf(signed), !livemode);
        for (const key of [test.developerKey, live.developerKey, live.consumerKey]) {
          for (const each of [receipt, signed]) {
            const { valid, charge: said } = await verify(each, key);
            assert.deepEqual([valid, said?.livemode], [true, livemode]);
          }
        }
      }
    });

    it('are the same in every list', async () => {
      const { id, receipt } = bodyOf(await charge(api, test), 201, ChargeReply);
      const { charges } = bodyOf(await get('/v1/usage', test.consumerKey), 200, UsageReply);
      assert.equal(charges.find((each) => each.id === id)?.receipt, receipt);
    });
  });

  describe('a test account', () => {
    it('is found and changed by no operator', async () => {
      const operator = await api.createAccount(0);
      const cookie = await signIn(api, api.databaseUrl, operator.email);
      await makeOperator(api.sql, operator.email);
      const own = { headers: { cookie, origin: api.url } };
      const id = wireId('account', test.holder.accountId);
      const { topUps } = bodyOf(await get('/v1/top-up', test.consumerKey), 200, TopUpsReply);
      const topUpId = topUps[0]?.id ?? '';
      for (const query of [id, test.consumerId, test.developerId, topUpId, 'test:']) {
        const answer = await call(api, 'GET', `/v1/operator/accounts?query=${query}`, own);
        assert.deepEqual(bodyOf(answer, 200, AccountsReply).accounts, []);
      }
      await api.changingNothing(async () => {
        const account = `/v1/operator/accounts/${id}`;
        assertError(await call(api, 'GET', account, own), 404, 'not_found');
        const body = { amount: 5, reason: 'none' };
        const adjusted = await call(api, 'POST', `${account}/adjustments`, { ...own, body });
        assertError(adjusted, 404, 'not_found');
        const path = `/v1/operator/top-ups/${topUpId}/refund`;
        const refund = await call(api, 'POST', path, { ...own, body: { reason: 'none' } });
        assertError(refund, 404, 'not_found');
      });
    });

    it('is nobody, so nobody signs in as it', async () => {
      const { rows } = await api.sql.query<{ email: string }>(
        'select email from farebox.accounts where id = $1',
        [test.holder.accountId],
      );
      const email = rows[0]?.email ?? '';
      assert.match(email, /^test:/);
      const answer = await useSignInLink(await signInLink(api, api.databaseUrl, email));
      assert.ok(!answer.headers.getSetCookie().some((cookie) => cookie.includes('session_token=')));
      await assert.rejects(
        api.sql.query(
          `insert into console.users (email, name, email_verified) values ($1, 'x', true)`,
          [email],
        ),
        /users_own_no_test_account/,
      );
    });

    it('has webhook endpoints of its own, and its owner is told at the address of the live account', async () => {
      const body = { url: 'https://example.com/events' };
      const made = await post('/v1/webhook-endpoints', test.developerKey, body);
      const { id } = bodyOf(made, 201, NewWebhookEndpointReply);
      const listed = await get('/v1/webhook-endpoints', live.developerKey);
      assert.deepEqual(bodyOf(listed, 200, WebhookEndpointsReply).webhookEndpoints, []);
      const database = await keptPool(api.databaseUrl);
      const uuid = uuidOf('webhookEndpoint', id) ?? '';
      // An endpoint's first day brings no mail.
      await api.sql.query(
        `update farebox.webhook_endpoints set created_at = created_at - interval '2 days' where id = $1`,
        [uuid],
      );
      await database.transaction((tx) => disableWebhookEndpoint(tx, uuid, 'gone'));
      const owed = await takeDisabled(database, 0);
      assert.deepEqual([owed?.id, owed?.email, owed?.reason], [uuid, live.email, 'gone']);
    });

    it('can have no card, no consent and no operator, and its top-ups no payment', async () => {
      const { accountId, ledger, consumerId } = test.holder;
      const set = (assignment: string) =>
        `update farebox.accounts set ${assignment} where id = '${accountId}'`;
      await refused(set('consent_ceiling_micros = 1'), /accounts_test_moves_no_money/);
      await refused(set("processor_customer_id = 'cus_1'"), /accounts_test_moves_no_money/);
      await refused(set('operator_since = now()'), /accounts_test_moves_no_money/);
      await refused(set('live_account_id = null'), /accounts_(mode|test)/);
      await refused(set('ledger = 1'), /accounts_mode_is_in_ledger/);
      const topUps = `farebox.top_ups set`;
      const own = `where consumer_id = '${consumerId}'`;
      await refused(`update ${topUps} method = 'manual' ${own}`, /top_ups_test_reaches/);
      await refused(`update ${topUps} payment_intent_id = 'pi_1' ${own}`, /top_ups_test_reaches/);
      await refused(`update ${topUps} method = 'test' where ledger < 2048`, /top_ups_test_reaches/);
      await refused(
        `insert into farebox.auto_top_ups (ledger, consumer_id, threshold_micros, amount_micros, ceiling_micros)
         values (${ledger}, '${consumerId}', 1, 1, 1)`,
        /auto_top_ups_are_live/,
      );
    });
  });
});
