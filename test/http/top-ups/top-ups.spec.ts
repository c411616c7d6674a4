/** Top-ups over HTTP: accepted and refused requests, and what the consumer sees. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readStripeConfig } from '../../../src/config.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { MAGIC_TOP_UPS } from '../../../src/domain/magic-amounts.ts';
import { asMicros, dollarsOf } from '../../../src/domain/money.ts';
import { KEYS_OPEN_TOP_UPS_MAX, OPEN_TOP_UPS_MAX } from '../../../src/domain/top-up.ts';
import { sql } from '../../../src/store/database.ts';
import { createStripe } from '../../../src/stripe/calls.ts';
import {
  CheckoutReply,
  TopUpReply,
  TopUpRecord,
  TopUpsReply,
} from '../../../src/schemas/top-ups.ts';
import { farebox, startStack, until, type Stack } from '../../support/stack.ts';
import { keptPool } from '../../support/kept-pools.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { createAccount } from '../../support/accounts.ts';
import { signIn } from '../../support/sessions.ts';
import { askForTopUp, control, pay } from '../../support/payments.ts';

interface Owner {
  readonly consumerId: string;
  readonly consumerKey: string;
}

/** For the hosted checkout, then for the saved card: amounts that are not whole cents within the limits. */
const REFUSED: readonly (readonly [path: '/v1/checkout' | '/v1/top-up', amount: unknown])[] = [
  ...[0.005, 5.001, 4.99, 0, -5, 1_000_000, 1e21].map(
    (amount) => ['/v1/checkout', amount] as const,
  ),
  ...[0.005, 0.49, 10.005, 0, -1, 1_000_000].map((amount) => ['/v1/top-up', amount] as const),
  ...['five', '5.001', '0.4', '', null, true, [5], {}].flatMap(
    (amount) => [['/v1/checkout', amount] as const, ['/v1/top-up', amount] as const] as const,
  ),
];

describe('top-ups over HTTP', () => {
  let stack: Stack;
  let owner: Owner;

  before(async () => {
    stack = await startStack();
    const made = await farebox(
      ['account', 'create', '--email', 'owner@example.com', '--json'],
      stack,
    );
    owner = JSON.parse(made) as Owner;
  });
  after(() => stack?.stop());

  const post = (
    path: '/v1/checkout' | '/v1/top-up',
    amount: unknown,
    headers: Record<string, string> = {},
  ) => askForTopUp(stack.api, path, { key: owner.consumerKey, body: { amount }, headers });
  const read = (path: string): Promise<Answer> =>
    call(stack.api, 'GET', path, { key: owner.consumerKey });
  const list = async () => bodyOf(await read('/v1/top-up?limit=100'), 200, TopUpsReply).topUps;

  it('refuse amounts that are not whole cents within limits, and leave nothing behind', async () => {
    const before = await list();
    for (const [path, amount] of REFUSED) {
      assertError(await post(path, amount), 400, 'invalid_amount', 'amount');
    }
    assertError(await post('/v1/top-up', undefined), 400, 'invalid_amount', 'amount');
    assert.deepEqual(await list(), before);
  });

  it('accept an amount as a decimal string, too', async () => {
    const checkout = bodyOf(await post('/v1/checkout', '5.50'), 201, CheckoutReply);
    const asked = (await list()).find(({ id }) => id === checkout.topUpId);
    assert.equal(asked?.amount, 5.5);
    const key = { 'idempotency-key': 'text, then number' };
    const first = await post('/v1/checkout', '6.20', key);
    const again = await post('/v1/checkout', 6.2, key);
    assert.equal(
      bodyOf(again, 201, CheckoutReply).topUpId,
      bodyOf(first, 201, CheckoutReply).topUpId,
    );
  });

  it('are opened by keys at most eighty times for one consumer, even when they are asked for at once', async () => {
    const made = await createAccount(stack.env, 0);
    const ask = () =>
      askForTopUp(stack.api, '/v1/checkout', { key: made.consumerKey, body: { amount: 5 } });
    const first = bodyOf(await ask(), 201, CheckoutReply);
    await openLike(first.topUpId, KEYS_OPEN_TOP_UPS_MAX - 3, false);
    const answers = await Promise.all(Array.from({ length: 5 }, ask));
    const refused = answers.filter(({ status }) => status !== 201);
    assert.equal(refused.length, 3);
    for (const answer of refused) {
      assertError(answer, 429, 'rate_limited');
      assert.equal(answer.headers.get('retry-after'), '60');
    }
    bodyOf(await post('/v1/checkout', 5), 201, CheckoutReply);
  });

  it('are possible for the owner while keys have opened as many as they may', async () => {
    const made = await createAccount(stack.env, 0);
    const cookie = await signIn(stack.api, stack.database.url, made.email);
    const headers = { cookie, origin: stack.api.url };
    const ask = (by: object) =>
      askForTopUp(stack.api, '/v1/checkout', { ...by, body: { amount: 5 } });
    const byKey = { key: made.consumerKey };
    const first = bodyOf(await ask(byKey), 201, CheckoutReply);
    await openLike(first.topUpId, KEYS_OPEN_TOP_UPS_MAX - 1, false);
    assertError(await ask(byKey), 429, 'rate_limited');
    bodyOf(await ask({ headers }), 201, CheckoutReply);
    await openLike(first.topUpId, OPEN_TOP_UPS_MAX - KEYS_OPEN_TOP_UPS_MAX - 1, false);
    assertError(await ask({ headers }), 429, 'rate_limited');
  });

  it('are possible for the owner while links have opened as many checkouts as they may', async () => {
    const made = await createAccount(stack.env, 0);
    const ask = () =>
      askForTopUp(stack.api, '/v1/checkout', { key: made.consumerKey, body: { amount: 5 } });
    const first = bodyOf(await ask(), 201, CheckoutReply);
    await openLike(first.topUpId, OPEN_TOP_UPS_MAX, true);
    bodyOf(await ask(), 201, CheckoutReply);

    const refused = await charge(stack.api, made, { amount: 1 });
    const { topUpUrl } = (refused.body as { error: { topUpUrl: string } }).error;
    const link = new URL(topUpUrl).searchParams.get('link') ?? '';
    const body = new URLSearchParams({ link, amount: '5' });
    const page = await fetch(`${stack.api.url}/top-up`, { method: 'POST', body });
    assert.equal(page.status, 429);
    assert.match(await page.text(), /Too many payment pages are open for this balance/);
  });

  /** Further open top-ups of the same consumer. */
  async function openLike(topUpId: string, count: number, byLink: boolean): Promise<void> {
    const pool = await keptPool(stack.database.url);
    await pool.query(sql.typeAlias('nothing')`
      insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, opened_at, by_link)
      select uuidv7(), ledger, consumer_id, account_id, method, amount_micros, opened_at, ${byLink}
      from farebox.top_ups, generate_series(1, ${count}) where id = ${uuidOf('topUp', topUpId) ?? ''}
    `);
  }

  it('take money from the saved card and report completed, once for a key', async () => {
    const headers = { 'idempotency-key': 'direct-1' };
    const first = bodyOf(await post('/v1/top-up', 12.34, headers), 201, TopUpReply);
    assert.equal(first.status, 'completed');
    assert.equal(first.balance, 12.34);
    const again = await post('/v1/top-up', 12.34, headers);
    assert.deepEqual(bodyOf(again, 201, TopUpReply), first);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assertError(await post('/v1/top-up', 12.35, headers), 422, 'idempotency_key_reused');
    const record = bodyOf(await read(`/v1/top-up/${first.topUpId}`), 200, TopUpRecord);
    assert.equal(record.method, 'direct');
    assert.equal(record.amount, 12.34);
    assert.notEqual(record.completedAt, null);
  });

  it('have no link to pay while a bank debit is in progress, and a retry of the request returns the same response', async () => {
    const headers = { 'idempotency-key': 'by-debit' };
    const checkout = bodyOf(await post('/v1/checkout', 25, headers), 201, CheckoutReply);
    const record = async () =>
      bodyOf(await read(`/v1/top-up/${checkout.topUpId}`), 200, TopUpRecord);
    assert.equal((await record()).sessionUrl, checkout.sessionUrl);
    assert.ok(await pay(checkout.sessionUrl ?? '', '000123456789'));
    await until(async () => (await record()).sessionUrl === undefined);
    assert.equal((await record()).status, 'pending');
    assert.deepEqual(bodyOf(await post('/v1/checkout', 25, headers), 201, CheckoutReply), checkout);
    const sessionId = /cs_test_\w+/.exec(checkout.sessionUrl ?? '')?.[0];
    await control(stack.simulator, `async/${sessionId}`, { outcome: 'succeeded' });
    await until(async () => (await record()).status === 'completed');
  });

  it('credit in live mode each amount that gives another answer in test mode', async () => {
    const rich = JSON.parse(
      await farebox(['account', 'create', '--email', 'rich@example.com', '--json'], stack),
    ) as Owner;
    await farebox(['account', 'consent', rich.consumerId, '--ceiling', '5000'], stack);
    const amounts = [...MAGIC_TOP_UPS.keys()].map((micros) => dollarsOf(asMicros(micros)));
    const replies = await Promise.all(
      amounts.map((amount) =>
        askForTopUp(stack.api, '/v1/top-up', { key: rich.consumerKey, body: { amount } }),
      ),
    );
    const made = replies.map((reply) => bodyOf(reply, 201, TopUpReply));
    assert.deepEqual(
      made.map(({ amount }) => amount),
      amounts,
    );
    for (const { status } of made) assert.equal(status, 'completed');
  });

  it('open one checkout for a key, and show where to pay while it can be paid', async () => {
    // The response to the first request. On a busy machine the address may come only with a later one.
    const { headers, answer } = await until(async () => {
      const key = { 'idempotency-key': randomUUID() };
      const now = await call(stack.api, 'POST', '/v1/checkout', {
        key: owner.consumerKey,
        headers: key,
        body: { amount: 5 },
      });
      return now.status === 201 && { headers: key, answer: now };
    });
    const first = bodyOf(answer, 201, CheckoutReply);
    assert.equal(answer.headers.get('idempotency-replayed'), null);
    assert.match(first.sessionUrl ?? '', new RegExp(`^${stack.simulator.url}/`));
    const again = await post('/v1/checkout', 5, headers);
    assert.deepEqual(bodyOf(again, 201, CheckoutReply), first);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    const record = bodyOf(await read(`/v1/top-up/${first.topUpId}`), 200, TopUpRecord);
    assert.equal(record.status, 'pending');
    assert.equal(record.sessionUrl, first.sessionUrl);
  });

  it('take no more in a month than the owner consented to, and nothing without consent', async () => {
    const consent = (ceiling: string) =>
      farebox(['account', 'consent', owner.consumerId, '--ceiling', ceiling], stack);
    const before = await list();
    await consent('13');
    const topUpUrl = `${stack.api.url}/top-up`;
    const facts = { left: 0.66, topUpUrl };
    assertError(await post('/v1/top-up', 1), 403, 'consent_ceiling_reached', undefined, facts);
    await assert.rejects(consent('1000000'), /from \$0 to \$999,999\.99/);
    await consent('0');
    assertError(await post('/v1/top-up', 1), 403, 'consent_required', undefined, { topUpUrl });
    assert.deepEqual(await list(), before);
    await consent('1000');
  });

  it('that the card declines include a link to a checkout of the amount', async () => {
    const stripe = createStripe(readStripeConfig(stack.env));
    const { data: payments } = await stripe.paymentIntents.list({ limit: 100 });
    const paid = payments.find(({ status, amount }) => status === 'succeeded' && amount === 12_34);
    await control(stack.simulator, `cards/${paid?.payment_method as string}/expire`, {});
    const headers = { 'idempotency-key': 'expired-1' };
    const refused = await post('/v1/top-up', 21.5, headers);
    const [record] = await list();
    assert.equal(record?.failure?.code, 'card_expired');
    const topUpUrl = `${stack.api.url}/top-up`;
    const facts = { topUpUrl, topUpId: record?.id };
    assertError(refused, 402, 'card_expired', undefined, facts);
    assertError(await post('/v1/top-up', 21.5, headers), 402, 'card_expired', undefined, facts);
    const { error } = refused.body as { error: { topUpUrl: string } };
    assert.match(await (await fetch(error.topUpUrl)).text(), /Pay \$22\.00/);

    for (let declines = 1; declines < 5; declines += 1) {
      const answer = await post('/v1/top-up', 21.5);
      assert.equal(answer.status, 402);
    }
    const before = await list();
    const limited = await post('/v1/top-up', 21.5);
    assertError(limited, 402, 'declined_too_often', undefined, { topUpUrl });
    assert.ok(Number(limited.headers.get('retry-after')) > 3_000);
    assert.deepEqual(await list(), before);
  });

  it('are listed newest first, page by page', async () => {
    const all = await list();
    assert.ok(all.length >= 2);
    const page = bodyOf(await read('/v1/top-up?limit=1'), 200, TopUpsReply);
    assert.deepEqual(page.topUps, all.slice(0, 1));
    const next = bodyOf(
      await read(`/v1/top-up?limit=1&cursor=${page.nextCursor}`),
      200,
      TopUpsReply,
    );
    assert.deepEqual(next.topUps, all.slice(1, 2));
  });

  it('leave the books correct', async () => {
    assert.match(await farebox(['doctor'], stack), /^All checks passed/);
  });
});
