/** Tax on top-ups over HTTP: what it costs is shown before it is paid, in the list of top-ups and in the statement. */
import assert from 'node:assert/strict';
import { TopUpLinks } from '../../../src/signing/top-up-links.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { ConsumerStatementReply } from '../../../src/schemas/statements.ts';
import {
  CheckoutReply,
  TopUpQuoteReply,
  TopUpRecord,
  TopUpReply,
} from '../../../src/schemas/top-ups.ts';
import { readMasterSecrets } from '../../../src/read-setting.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { askForTopUp, control, faultsOf, forgetFaults } from '../../support/payments.ts';
import { signIn } from '../../support/sessions.ts';
import { startStack, until, type Stack } from '../../support/stack.ts';

describe('tax on top-ups', () => {
  let stack: Stack;
  let account: TestAccount;

  before(async () => {
    stack = await startStack({ env: { STRIPE_TAX: 'automatic', SAVE_TEST_CARD: 'false' } });
    account = await createAccount(stack.env, 0);
  });
  after(() => stack?.stop());

  const get = (path: string) => call(stack.api, 'GET', path, { key: account.consumerKey });
  const post = (path: '/v1/checkout' | '/v1/top-up', body: object) =>
    askForTopUp(stack.api, path, { key: account.consumerKey, body });
  const quote = async (amount: number) =>
    bodyOf(await get(`/v1/top-up/quote?amount=${amount}`), 200, TopUpQuoteReply);

  /** A payment of $5.00 by somebody in this state. */
  async function payAtCheckout(state: string): Promise<void> {
    const opened = bodyOf(await post('/v1/checkout', { amount: 5 }), 201, CheckoutReply);
    const total = state === 'NY' ? '544' : '536';
    const body = new URLSearchParams({ card: '4242424242424242', state, shown: total });
    await fetch(opened.sessionUrl ?? '', { method: 'POST', body });
    const path = `/v1/top-up/${opened.topUpId}`;
    await until(async () => bodyOf(await get(path), 200, TopUpRecord).status === 'completed');
  }

  /** Slows down the calculations, and tells how many have begun. */
  async function countCalculations(ms: number): Promise<() => Promise<number>> {
    const times = 1_000;
    const path = '/v1/tax/calculations';
    await control(stack.simulator, 'faults', { method: 'POST', path, kind: 'delay', ms, times });
    return async () => {
      const [left] = await faultsOf(stack.simulator);
      return times - (left?.times ?? 0);
    };
  }

  it('is shown before, at and after the payment, and in the statement', async () => {
    assert.deepEqual(await quote(20), { amount: 20, tax: null, total: null });
    assertError(await get('/v1/top-up/quote?amount=0.1'), 400, 'invalid_amount', 'amount');
    assertError(await get('/v1/top-up/quote'), 400, 'invalid_request', 'amount');

    const opened = bodyOf(await post('/v1/checkout', { amount: 20 }), 201, CheckoutReply);
    const topUp = async () => bodyOf(await get(`/v1/top-up/${opened.topUpId}`), 200, TopUpRecord);
    assert.equal((await topUp()).tax, null);
    const page = await (await fetch(opened.sessionUrl ?? '')).text();
    assert.match(page, /<dt>Tax<\/dt><dd>\$1\.78<\/dd>\s*<dt>Total<\/dt><dd>\$21\.78<\/dd>/);
    const body = new URLSearchParams({ card: '4242424242424242', state: 'NY', shown: '2178' });
    await fetch(opened.sessionUrl ?? '', { method: 'POST', body });
    await until(async () => (await topUp()).status === 'completed');
    assert.deepEqual([(await topUp()).amount, (await topUp()).tax], [20, 1.78]);
    assert.deepEqual(await quote(12.5), { amount: 12.5, tax: 1.11, total: 13.61 });

    const month = new Date().toISOString().slice(0, 7);
    const statement = bodyOf(await get(`/v1/statements/${month}`), 200, ConsumerStatementReply);
    assert.deepEqual(
      statement.movements.map(({ kind, amount, tax }) => [kind, amount, tax]),
      [['top_up', 20, 1.78]],
    );
    assert.equal(statement.closingBalance, 20);
  });

  describe('in a quote', () => {
    before(async () => {
      account = await createAccount(stack.env, 0);
      await payAtCheckout('NY');
    });
    afterEach(() => forgetFaults(stack.simulator));

    it('is calculated once for an amount, until the account pays at a checkout again', async () => {
      const calculations = await countCalculations(1);
      for (let i = 0; i < 5; i += 1) assert.equal((await quote(100)).tax, 8.88);
      assert.equal(await calculations(), 1);
      await payAtCheckout('CA');
      assert.equal((await quote(100)).tax, 7.25);
      assert.equal(await calculations(), 2);
    });

    it('leaves the other reads of the account alone while Stripe takes long', async () => {
      const calculations = await countCalculations(3_500);
      const quotes = [quote(201), quote(202)];
      await until(async () => (await calculations()) > 0);
      bodyOf(await get('/v1/balance'), 200, BalanceReply);
      for (const { tax } of await Promise.all(quotes)) assert.ok(tax !== null);
    });

    it('is calculated for at most 20 new amounts of an account in an hour', async () => {
      const calculations = await countCalculations(1);
      for (let amount = 301; (await calculations()) < 16; amount += 1) await quote(amount);
      const refused = await get('/v1/top-up/quote?amount=400');
      assertError(refused, 429, 'rate_limited');
      assert.match(JSON.stringify(refused.body), /At most 20 new quotes per hour/);
      assert.equal((await quote(100)).tax, 7.25);
      assert.equal(await calculations(), 16);
      bodyOf(await get('/v1/balance'), 200, BalanceReply);
    });

    it('is calculated in a session, although the keys of the account ask for as many quotes as they may', async () => {
      const owner = await createAccount(stack.env, 0);
      const cookie = await signIn(stack.api, stack.database.url, owner.email);
      account = owner;
      await payAtCheckout('NY');
      const calculations = await countCalculations(1);
      for (let amount = 301; (await calculations()) < 20; amount += 1) await quote(amount);
      assertError(await get('/v1/top-up/quote?amount=400'), 429, 'rate_limited');
      const path = '/v1/top-up/quote?amount=400';
      const ofOwner = await call(stack.api, 'GET', path, { headers: { cookie } });
      assert.equal(bodyOf(ofOwner, 200, TopUpQuoteReply).tax, 35.5);
    });
  });

  it('is in the amount that the cardholder confirms at the bank', async () => {
    account = await createAccount(stack.env, 0);
    const { sessionUrl } = bodyOf(await post('/v1/checkout', { amount: 5 }), 201, CheckoutReply);
    // Needs the cardholder each time, as it was saved without being set up.
    const card = { card: '4000002500003155', save: 'true' };
    const body = new URLSearchParams({ ...card, state: 'NY', shown: '544' });
    await fetch(sessionUrl ?? '', { method: 'POST', body });
    await until(async () => bodyOf(await get('/v1/balance'), 200, BalanceReply).balance === 5);
    const topUp = bodyOf(await post('/v1/top-up', { amount: 20 }), 202, TopUpReply);
    const page = await (await fetch(topUp.sessionUrl ?? '')).text();
    assert.match(page, /a top-up of \$20\.00, plus \$1\.78 tax \(\$21\.78 in total\), from your/);
  });

  it('refuses an amount that leaves no room for the tax below the maximum of a card, before anything is started', async () => {
    const tooMuch = 750_000.01;
    for (const path of ['/v1/top-up', '/v1/checkout'] as const) {
      const refusal = await post(path, { amount: tooMuch });
      assertError(refusal, 400, 'invalid_amount', 'amount');
      assert.match(JSON.stringify(refusal.body), /from \$(0\.50|5\.00) to \$750,000\.00/);
    }
    const path = `/v1/top-up/quote?amount=${tooMuch}`;
    assertError(await get(path), 400, 'invalid_amount', 'amount');
    const secrets = readMasterSecrets(stack.env);
    const consumerId = uuidOf('consumer', account.consumerId) ?? '';
    const url = new TopUpLinks(secrets, stack.api.url, { nowMs: Date.now }).urlFor(
      consumerId,
      undefined,
      asMicros(9e12),
    );
    assert.match(await (await fetch(url)).text(), /Pay \$750,000\.00/);
    const link = new URL(url).searchParams.get('link') ?? '';
    const body = new URLSearchParams({ link, amount: String(tooMuch) });
    const page = await fetch(`${stack.api.url}/top-up`, { method: 'POST', body });
    assert.equal(page.status, 400);
    assert.match(await page.text(), /at least \$5\.00 and at most \$750,000\.00/);
    assert.equal((await quote(750_000)).amount, 750_000);
    bodyOf(await post('/v1/checkout', { amount: 750_000 }), 201, CheckoutReply);
  });
});
