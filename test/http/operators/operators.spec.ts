/** What operators may see and do, who is one, and that each change is made once and has an author. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { ENDPOINTS } from '../../../src/http/routes.ts';
import { AuditLogReply, OperatorAuditLogReply } from '../../../src/schemas/audit-log.ts';
import {
  AccountReply,
  AccountsReply,
  AdjustmentReply,
  MovementsReply,
  OperatorChargesReply,
  OperatorHoldsReply,
  OperatorStatusReply,
  OperatorTopUpsReply,
  TopUpRefundReply,
} from '../../../src/schemas/operators.ts';
import { TopUpReply, TopUpsReply } from '../../../src/schemas/top-ups.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { askForTopUp, control, openCheckout, pay } from '../../support/payments.ts';
import { makeOperator, signIn } from '../../support/sessions.ts';
import { aloneInNamespace, farebox, startStack, until, type Stack } from '../../support/stack.ts';

const UI = 'http://127.0.0.1:9/ui';

describe('operators', () => {
  let stack: Stack;
  let sql: Client;
  let operator: TestAccount;
  let account: TestAccount;
  let accountId: string;
  let headers: { cookie: string; origin: string };

  before(async () => {
    stack = await startStack({ env: { ...(await aloneInNamespace()), TEMPORAL_UI_URL: UI } });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    operator = await createAccount(stack.env, 0);
    headers = await sessionOf(operator);
    await makeOperator(sql, operator.email);
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 20);
    accountId = (await find(account.email)).accounts[0]?.id ?? '';
  });
  after(() =>
    endAll(
      () => sql?.end(),
      () => stack && proveBooks(stack.env),
      () => stack?.stop(),
    ),
  );

  async function sessionOf({ email }: TestAccount) {
    const cookie = await signIn(stack.api, stack.database.url, email);
    return { cookie, origin: stack.api.url };
  }
  const get = (path: string) => call(stack.api, 'GET', `/v1/operator${path}`, { headers });
  const post = (path: string, body: object, key?: string): Promise<Answer> =>
    call(stack.api, 'POST', `/v1/operator${path}`, {
      headers: { ...headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
      body,
    });
  const find = async (query: string) =>
    bodyOf(await get(`/accounts?query=${encodeURIComponent(query)}`), 200, AccountsReply);
  const read = async () => bodyOf(await get(`/accounts/${accountId}`), 200, AccountReply);
  const adjust = (body: object, key?: string) =>
    post(`/accounts/${accountId}/adjustments`, body, key);
  const status = async () => bodyOf(await get('/status'), 200, OperatorStatusReply);
  const topUp = async (amount: number) => {
    const asked = { key: account.consumerKey, body: { amount } };
    const answer = await askForTopUp(stack.api, '/v1/top-up', asked);
    return bodyOf(answer, 201, TopUpReply).topUpId;
  };

  const newest = async () => {
    const answer = await get(`/accounts/${accountId}/top-ups`);
    return bodyOf(answer, 200, OperatorTopUpsReply).topUps[0];
  };
  const intentOf = async (topUpId: string) => {
    const uuid = topUpId.slice('tu_'.length);
    const { rows } = await sql.query<{ intent: string }>(
      'select payment_intent_id as intent from farebox.top_ups where id = $1',
      [uuid],
    );
    return rows[0]?.intent;
  };

  it('are accounts that were promoted and use two-factor authentication: every route refuses others', async () => {
    const routes = ENDPOINTS.filter(({ role }) => role === 'operator');
    assert.ok(routes.length >= 9);
    const someone = await createAccount(stack.env, 0);
    const others = await sessionOf(someone);
    const ask = ({ method, path, body }: (typeof routes)[number]) =>
      call(stack.api, method.toUpperCase(), path.replace(':id', accountId), {
        headers: others,
        ...(body ? { body: { amount: 5, reason: 'a test' } } : {}),
      });
    for (const route of routes) assertError(await ask(route), 403, 'operator_required');
    await farebox(['account', 'promote', someone.email], stack);
    for (const route of routes) assertError(await ask(route), 403, 'second_factor_required');
    await sql.query('update console.users set two_factor_enabled = true where email = $1', [
      someone.email,
    ]);
    const answer = await call(stack.api, 'GET', '/v1/operator/status', { headers: others });
    bodyOf(answer, 200, OperatorStatusReply);
    await farebox(['account', 'promote', someone.email, '--off'], stack);
    for (const route of routes) assertError(await ask(route), 403, 'operator_required');
    assert.equal((await read()).balance, 20);
  });

  it('find an account by its address, its ids, and those of its top-ups here and at Stripe', async () => {
    const topUpId = await topUp(10);
    const { rows } = await sql.query<{ intent: string; customer: string }>(
      `select payment_intent_id as intent, processor_customer_id as customer
       from farebox.top_ups t join farebox.accounts a on a.id = t.account_id
       where a.email = $1 and payment_intent_id is not null`,
      [account.email],
    );
    const clues = [
      account.email,
      account.email.slice(0, -3).toUpperCase(),
      account.consumerId,
      account.developerId,
      accountId,
      topUpId,
      rows[0]?.intent ?? '',
      rows[0]?.customer ?? '',
    ];
    for (const clue of clues) {
      const [found] = (await find(clue)).accounts;
      assert.deepEqual([found?.id, found?.balance], [accountId, 30], clue);
    }
    for (const clue of ['%', '_', 'nobody@example.com', `tu_${'0'.repeat(32)}`, "' or 1=1"]) {
      assert.deepEqual((await find(clue)).accounts, [], clue);
    }
  });

  it('see why a balance is what it is: every part of it, and each adds up', async () => {
    const topUpId = await topUp(10);
    await charge(stack.api, account, { amount: 2.5 });
    await askHold(stack.api, account, { amount: 3 });
    await adjust({ amount: -1, reason: 'Charged twice by mistake' });
    const books = await read();
    assert.deepEqual(
      [books.credited, books.spent, books.heldByHolds, books.heldByDisputes, books.openHolds],
      [29, 2.5, 3, 0, 1],
    );
    assert.equal(books.balance, books.credited - books.spent - books.heldByHolds);
    assert.deepEqual(
      books.movements.map(({ kind, count, amount }) => [kind, count, amount]),
      [
        ['adjustment', 1, -1],
        ['top_up', 2, 30],
      ],
    );
    const movements = bodyOf(await get(`/accounts/${accountId}/movements`), 200, MovementsReply);
    assert.deepEqual(
      movements.movements.map(({ kind, amount, reason }) => [kind, amount, reason]),
      [
        ['adjustment', -1, 'Charged twice by mistake'],
        ['top_up', 10, null],
        ['top_up', 20, null],
      ],
    );
    const topUps = bodyOf(await get(`/accounts/${accountId}/top-ups`), 200, OperatorTopUpsReply);
    assert.deepEqual(
      topUps.topUps.map(({ id, temporalUrl }) => [id === topUpId, temporalUrl]),
      [
        [true, `${UI}/namespaces/${stack.env['TEMPORAL_NAMESPACE']}/workflows/top-up%2F${topUpId}`],
        [false, null],
      ],
    );
    const charges = bodyOf(await get(`/accounts/${accountId}/charges`), 200, OperatorChargesReply);
    assert.deepEqual(
      charges.charges.map(({ amount }) => amount),
      [2.5],
    );
    const holds = bodyOf(await get(`/accounts/${accountId}/holds`), 200, OperatorHoldsReply);
    assert.deepEqual(
      holds.holds.map(({ amount }) => amount),
      [3],
    );
  });

  it('adjust a balance once per key under concurrency, and store the reason and the author', async () => {
    const key = randomUUID();
    const body = { amount: 5, reason: 'Goodwill' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => adjust(body, key)));
    for (const answer of answers) {
      assert.equal(bodyOf(answer, 201, AdjustmentReply).balance, 25);
    }
    assert.equal(answers.filter(isReplay).length, 5);
    assertError(await adjust({ ...body, amount: 6 }, key), 422, 'idempotency_key_reused');
    assertError(await adjust({ ...body, reason: 'x' }, key), 422, 'idempotency_key_reused');
    const { balance, actions } = await read();
    assert.equal(balance, 25);
    assert.deepEqual(
      actions.map(({ kind, amount, reason, operator: who }) => [kind, amount, reason, who]),
      [['adjustment', 5, 'Goodwill', operator.email]],
    );
  });

  it('never take a balance below zero, nor adjust by nothing, too much, or without a reason', async () => {
    assertError(
      await adjust({ amount: -20.000001, reason: 'r' }),
      402,
      'insufficient_balance',
      undefined,
      {
        balance: 20,
      },
    );
    for (const amount of [0, 0.0000001, 10_000_001, '1e3', '', null, true, {}]) {
      assertError(await adjust({ amount, reason: 'r' }), 400, 'invalid_amount', 'amount');
    }
    for (const reason of [undefined, '', '   ', 'x'.repeat(501), 'a\u0000b', '\u202Eabc', 7]) {
      assertError(await adjust({ amount: 1, reason }), 400, 'invalid_request', 'reason');
    }
    for (const id of ['acct_none', `acct_${'0'.repeat(32)}`, account.consumerId]) {
      const answer = await post(`/accounts/${id}/adjustments`, { amount: 1, reason: 'r' });
      assertError(answer, 404, 'not_found');
    }
    const { balance, actions } = await read();
    assert.deepEqual([balance, actions], [20, []]);
  });

  it('read the audit log of one account and of all, and owners read who changed theirs', async () => {
    const reason = 'Goodwill after an outage';
    await adjust({ amount: 2, reason });
    const log = async (query: string) =>
      bodyOf(await get(`/audit-log${query}`), 200, OperatorAuditLogReply).entries;
    const [acted, adjusted] = await log(`?accountId=${accountId}`);
    const operatorAccountId = (await find(operator.email)).accounts[0]?.id;
    assert.deepEqual(
      [acted?.action, acted?.accountId, acted?.details],
      [
        'operator.acted',
        accountId,
        { operatorAccountId, kind: 'adjustment', amount: 2, topUpId: null, reason },
      ],
    );
    assert.deepEqual(adjusted?.details, { amount: 2, reason });
    const all = await log('');
    assert.deepEqual([all[0], all[1]], [acted, adjusted]);
    assert.ok(all.some((entry) => entry.accountId !== accountId));
    assertError(await get('/audit-log?accountId=acct_1'), 400, 'invalid_request', 'accountId');

    const { cookie } = await sessionOf(account);
    const own = await call(stack.api, 'GET', '/v1/audit-log', { headers: { cookie } });
    const seen = bodyOf(own, 200, AuditLogReply).entries.find(
      ({ number }) => number === acted?.number,
    );
    assert.deepEqual(seen?.details, { kind: 'adjustment', amount: 2, topUpId: null, reason });
  });

  it('refund the unspent part of a top-up once, and not what was booked by hand', async () => {
    const topUpId = await topUp(10);
    const key = randomUUID();
    const path = `/top-ups/${topUpId}/refund`;
    const reason = 'Asked for by mail';
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => post(path, { amount: 4, reason }, key)),
    );
    const [first] = answers.map((answer) => bodyOf(answer, 201, TopUpRefundReply));
    for (const answer of answers) assert.deepEqual(answer.body, first);
    assert.equal(answers.filter(isReplay).length, 3);
    assertError(await post(path, { amount: 5, reason }, key), 422, 'idempotency_key_reused');
    assertError(await post(path, { amount: 7, reason }), 400, 'invalid_amount', 'amount', {
      refundable: 6,
    });
    assert.equal((await newest())?.refundableAmount, 6);
    const own = await call(stack.api, 'GET', '/v1/top-up', { key: account.consumerKey });
    const [listed] = bodyOf(own, 200, TopUpsReply).topUps;
    assert.deepEqual([listed?.id, listed?.amount, listed?.refunded], [topUpId, 10, 4]);
    const rest = randomUUID();
    for (let n = 0; n < 2; n += 1) {
      assert.equal(bodyOf(await post(path, { reason }, rest), 201, TopUpRefundReply).amount, 6);
    }
    await until(async () => (await newest())?.status === 'refunded');
    const topUps = bodyOf(await get(`/accounts/${accountId}/top-ups`), 200, OperatorTopUpsReply);
    assert.equal(topUps.topUps[0]?.refunded, 10);
    const byHand = await post(`/top-ups/${topUps.topUps.at(-1)?.id}/refund`, { reason });
    assertError(byHand, 409, 'top_up_not_refundable');
    assertError(await post(path, { reason }), 409, 'top_up_not_refundable');
    const unknown = await post(`/top-ups/tu_${'0'.repeat(32)}/refund`, { reason });
    assertError(unknown, 404, 'not_found');
    const { balance, actions } = await read();
    assert.deepEqual([balance, actions.length], [20, 2]);
  });

  it('see which top-ups they can refund: those that a bank suspects of fraud, not those that it disputes', async () => {
    const becomes = (status: string) => until(async () => (await newest())?.status === status);
    const topUpId = await topUp(10);
    assert.equal((await newest())?.refundable, true);
    const intent = await intentOf(topUpId);
    await control(stack.simulator, 'fraud-warnings', { payment_intent: intent });
    await becomes('disputed');
    assert.equal((await newest())?.refundable, true);
    assert.equal((await newest())?.refundableAmount, 10);
    const dispute = await control(stack.simulator, 'disputes', { payment_intent: intent });
    await until(async () => (await newest())?.refundable === false);
    assert.equal((await newest())?.refundableAmount, 0);
    const refund = await post(`/top-ups/${topUpId}/refund`, { reason: 'Asked for by mail' });
    assertError(refund, 409, 'top_up_not_refundable');
    const { id } = dispute as { id: string };
    await control(stack.simulator, `disputes/${id}/close`, { status: 'won' });
    await becomes('completed');
  });

  it('see that a refund failed, and why, when Stripe refused it or its bank did later', async () => {
    const topUpId = await topUp(10);
    assert.equal((await newest())?.failedRefund, null);
    const refused = { method: 'POST', path: '/v1/refunds', kind: 'error', status: 400 };
    await control(stack.simulator, 'faults', refused);
    const path = `/top-ups/${topUpId}/refund`;
    bodyOf(await post(path, { amount: 4, reason: 'First' }), 201, TopUpRefundReply);
    await until(async () => (await newest())?.failedRefund != null);
    const first = (await newest())?.failedRefund;
    assert.deepEqual([first?.amount, first?.failure], [4, 'An unknown error occurred.']);

    bodyOf(await post(path, { amount: 3, reason: 'Second' }), 201, TopUpRefundReply);
    const made = async () => {
      const { rows } = await sql.query<{ id: string }>(
        `select processor_id as id from farebox.reversals where top_up_id = $1 and status = 'made'`,
        [topUpId.slice('tu_'.length)],
      );
      return rows[0]?.id;
    };
    await until(async () => (await made()) !== undefined);
    await control(stack.simulator, `refunds/${await made()}/fail`, {});
    await until(async () => (await newest())?.failedRefund?.amount === 3);
    assert.equal((await newest())?.failedRefund?.failure, 'expired or canceled card');
    const { actions } = await read();
    assert.deepEqual(
      actions.slice(0, 2).map(({ reason, failure }) => [reason, failure]),
      [
        ['Second', 'expired or canceled card'],
        ['First', 'An unknown error occurred.'],
      ],
    );
  });

  it('see which parts answer, what is stuck, what differs, and what doctor found last', async () => {
    const topUpId = await topUp(10);
    // A part that answers its probe after more than a second, on a busy machine, counts as down.
    const before = await until(async () => {
      const now = await status();
      return now.postgres === 'up' && now.temporal === 'up' && now;
    });
    assert.deepEqual([before.stuck, before.differences], [[], []]);
    const uuid = topUpId.slice(3);
    await sql.query(
      `insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
       values ($1, 'paid_twice', 20000000, 10000000, array['pi_1', (select payment_intent_id from farebox.top_ups where id = $1)])`,
      [uuid],
    );
    await farebox(['doctor', '--only', 'balances,delivery'], stack);
    await sql.query(
      `insert into farebox.outbox (topic, subject_id, attempts, created_at, next_attempt_at)
       select topic, $1, 9, now() - interval '1 hour', now() + interval '1 day'
       from unnest('{payment_reported,reversal_reported}'::text[]) as topic`,
      [uuid],
    );
    const seen = await status();
    assert.deepEqual(
      seen.stuck.map(({ kind, detail, topUpId: id, accountId: whose, temporalUrl }) => [
        kind,
        detail,
        id,
        whose,
        temporalUrl?.split('/').at(-1),
      ]),
      [
        ['notice', 'payment_reported', topUpId, accountId, `top-up%2F${topUpId}`],
        ['notice', 'reversal_reported', topUpId, accountId, `reversals%2F${topUpId}`],
      ],
    );
    assert.deepEqual(
      seen.differences.map(({ topUpId: id, processor, ledger }) => [id, processor, ledger]),
      [[topUpId, 20, 10]],
    );
    const [difference] = seen.differences;
    assert.deepEqual(difference?.paymentIntentIds, ['pi_1', difference?.creditedPaymentIntentId]);
    const examined = seen.examinations.map(({ part, findings }) => `${part}: ${findings.length}`);
    assert.deepEqual(examined.toSorted(), ['balances: 0', 'delivery: 0']);
    await sql.query(
      `insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
       select uuidv7(), 'unknown_top_up', 20000000, 0, '{pi_2}' from generate_series(1, 60)`,
    );
    const { differences, waiting } = await status();
    assert.deepEqual([differences.length, differences[0]?.topUpId], [50, topUpId]);
    assert.equal(waiting.find(({ what }) => what === 'differences')?.count, 61);
    await sql.query('delete from farebox.differences');
    await sql.query('delete from farebox.outbox where attempts = 9');
  });

  it('see a bank debit as stuck only if it takes longer than sixteen days', async () => {
    const { topUpId, sessionUrl } = await openCheckout(stack.api, account, 10);
    assert.ok(await pay(sessionUrl, '000123456789'));
    const uuid = topUpId.slice(3);
    await until(async () => {
      const seen = await sql.query(
        'select from farebox.top_ups where id = $1 and under_way_at is not null',
        [uuid],
      );
      return seen.rowCount === 1;
    });
    const stuckAfter = async (age: string) => {
      await sql.query(
        'update farebox.top_ups set created_at = now() - $2::interval, session_expires_at = null where id = $1',
        [uuid, age],
      );
      return (await status()).stuck.some((each) => each.topUpId === topUpId);
    };
    assert.equal(await stuckAfter('25 hours'), false);
    assert.equal(await stuckAfter('15 days'), false);
    assert.equal(await stuckAfter('17 days'), true);
    await sql.query('update farebox.top_ups set created_at = now() where id = $1', [uuid]);
    const sessionId = /cs_test_\w+/.exec(sessionUrl)?.[0];
    await control(stack.simulator, `async/${sessionId}`, { outcome: 'succeeded' });
    await until(async () => (await read()).balance === 30);
  });

  it('get from each count to the oldest things counted, with links, and not to more than 20', async () => {
    const topUpId = await topUp(10);
    const uuid = topUpId.slice(3);
    // The notice of its payment comes with the event. Notices of earlier tests may still wait as well.
    await until(async () => {
      const told = await sql.query(
        `select from farebox.processor_events where top_up_id = $1 and type = 'payment_intent.succeeded'`,
        [uuid],
      );
      return told.rowCount === 1;
    });
    await until(async () => {
      const left = await sql.query(`select from farebox.outbox where topic <> 'webhook_endpoint'`);
      return left.rowCount === 0;
    });
    await sql.query(
      `insert into farebox.outbox (topic, subject_id, attempts, next_attempt_at)
       values ('reversal_reported', $1, 1, now() + interval '1 day'), ('grant', $1, 1, now() + interval '1 day'),
         ('auto_top_up', $2, 1, now() + interval '1 day')`,
      [uuid, account.consumerId.slice(4)],
    );
    await sql.query(
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, processor_id)
       select uuidv7(), ledger, consumer_id, id, kind, 'open', 4000000, 'test_' || kind
       from farebox.top_ups, unnest('{dispute,warning}'::text[]) as kind where id = $1`,
      [uuid],
    );
    await sql.query(`update farebox.top_ups set status = 'disputed' where id = $1`, [uuid]);
    const { rows: endpoints } = await sql.query<{ id: string }>(
      `insert into farebox.webhook_endpoints (id, account_id, url, secret_master, failing_since)
       select uuidv7(), $1, 'https://hooks.example.com:8443/secret?token=1', 1, now() - n * interval '1 minute'
       from generate_series(1, 25) as n returning replace(id::text, '-', '') as id`,
      [accountId.slice(5)],
    );
    const { waiting } = await status();
    const of = (what: string) => waiting.find((each) => each.what === what) ?? assert.fail(what);
    for (const what of ['top_ups_pending', 'top_ups_disputed', 'refunds', 'failing_endpoints']) {
      assert.equal(of(what).oldest.length, Math.min(of(what).count, 20), what);
    }
    const workflows = `${UI}/namespaces/${stack.env['TEMPORAL_NAMESPACE']}/workflows/`;
    const [dispute] = of('top_ups_disputed').oldest;
    assert.deepEqual(
      [dispute?.id, dispute?.accountId, dispute?.detail, dispute?.amount, dispute?.temporalUrl],
      [topUpId, accountId, 'dispute', 8, `${workflows}reversals%2F${topUpId}`],
    );
    const failing = of('failing_endpoints');
    assert.equal(failing.count, 25);
    const oldestId = `we_${endpoints.at(-1)?.id}`;
    const [endpoint] = failing.oldest;
    assert.deepEqual(
      [endpoint?.id, endpoint?.accountId, endpoint?.host, endpoint?.temporalUrl],
      [oldestId, accountId, 'hooks.example.com:8443', `${workflows}webhooks%2F${oldestId}`],
    );
    const noticed = (what: string) =>
      of(what)
        .oldest.filter(({ detail }) => detail !== 'webhook_endpoint')
        .map(({ id, accountId: whose, detail }) => [detail, id, whose]);
    assert.deepEqual(noticed('webhooks'), [['reversal_reported', topUpId, accountId]]);
    assert.deepEqual(noticed('outbox'), [
      ['grant', `gnt_${uuid}`, accountId],
      ['auto_top_up', account.consumerId, accountId],
    ]);
    await sql.query('delete from farebox.outbox where attempts = 1');
    await sql.query('delete from farebox.webhook_endpoints');
    await sql.query('delete from farebox.reversals where top_up_id = $1', [uuid]);
    await sql.query(`update farebox.top_ups set status = 'completed' where id = $1`, [uuid]);
  });
});

function isReplay({ headers }: Answer): boolean {
  return headers.get('idempotency-replayed') === 'true';
}
