/**
 * Answers that the console does not get, and requests that come to nothing: nothing happens twice, and the
 * user is told.
 */
import assert from 'node:assert/strict';
import type { Page, Route } from 'playwright-core';
import { ask } from '../support/approval-requests.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { call, charge } from '../support/http.ts';
import {
  openForEach,
  openPage,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { until } from '../support/stack.ts';

const UNKNOWN = { error: { code: 'outcome_unknown', message: 'The answer was lost' } };
const DECLINED = {
  error: {
    code: 'card_declined',
    message: 'The card was declined',
    topUpId: `tu_${'0'.repeat(32)}`,
  },
};
const LIMITED = { error: { code: 'rate_limited', message: 'Too many requests' } };

const keyOf = (route: Route) => route.request().headers()['idempotency-key'];

describe('the console without an answer', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { expected: 'any' },
  );

  const button = (name: string | RegExp) => page.getByRole('button', { name });

  /** The request arrives, its answer does not. */
  const loseNext = (url: string) =>
    page.route(
      url,
      async (route) => {
        await route.fetch();
        await route.fulfill({ status: 500, json: UNKNOWN });
      },
      { times: 1 },
    );
  const openRefund = async (account: TestAccount) => {
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    await window.enter(account, '/developer/charges');
    await button(/^Charge for search/).click();
    return (await openedDialog(page, 'Charge')).getByLabel('Amount to refund in dollars');
  };
  const answerWithCard = async (account: TestAccount) => {
    await window.enter(account);
    await button('Set up').click();
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
    await button('Withdraw consent').waitFor();
    await window.go('/approvals');
  };
  const read = async (path: string, { consumerKey: key }: TestAccount) =>
    (await call(harness.stack.api, 'GET', path, { key })).body;
  const spentBy = async (account: TestAccount) =>
    ((await read('/v1/usage', account)) as { total: number }).total;
  const balanceOf = async (account: TestAccount) =>
    ((await read('/v1/balance', account)) as { balance: number }).balance;

  it('refunds a part of a charge once when the answer is lost', async () => {
    const account = await harness.newAccount(5);
    const amount = await openRefund(account);
    await amount.fill('0.5');
    await loseNext('**/refund');
    await button('Refund').click();
    await page.getByText('The outcome is not known. You can safely try again').waitFor();
    await button('Refund').click();
    await page.getByText('Refunded $0.50.').waitFor();
    assert.equal(await spentBy(account), 1.5);
  });

  it('refunds a part of a charge once when Enter is pressed twice', async () => {
    const account = await harness.newAccount(5);
    const amount = await openRefund(account);
    await amount.fill('0.5');
    await amount.press('Enter');
    await page.getByText('Refunded $0.50.').waitFor();
    await amount.press('Enter');
    await amount.fill('0.25');
    // It waits until the page has been read again after the first refund.
    await button('Refund').click();
    await page.getByText('Refunded $0.25.').waitFor();
    assert.equal(await spentBy(account), 1.25);
  });

  it('does not add a changed refund to the one whose answer was lost', async () => {
    const account = await harness.newAccount(5);
    const amount = await openRefund(account);
    await loseNext('**/refund');
    await amount.fill('0.5');
    await button('Refund').click();
    await page.getByText('The outcome is not known. You can safely try again').waitFor();
    await amount.fill('0.75');
    await button('Refund').click();
    await page.getByText('Your earlier request, with different values, did arrive.').waitFor();
    assert.equal(await spentBy(account), 1.5);
    // Now that it is known, the same refund is one more.
    await button('Refund').click();
    await page.getByText('Refunded $0.75.').waitFor();
    assert.equal(await spentBy(account), 0.75);
  });

  it('charges the saved card once when Enter is pressed twice', async () => {
    const account = await createAccount(harness.stack.env, 0);
    await window.enter(account);
    await page.getByText('Test card').click();
    const amount = page.getByLabel('Amount in dollars');
    await amount.fill('6');
    await amount.press('Enter');
    await page.getByText('$6.00 was added to your balance.').waitFor();
    await amount.press('Enter');
    await amount.fill('7');
    await amount.press('Enter');
    await page.getByText('$7.00 was added to your balance.').waitFor();
    assert.equal(await balanceOf(account), 13);
  });

  it('charges the saved card once when somebody leaves the form after a lost answer', async () => {
    const account = await createAccount(harness.stack.env, 0);
    await window.enter(account);
    const pay = async () => {
      await page.getByText('Test card').click();
      await page.getByLabel('Amount in dollars').fill('6');
      await button('Pay $6.00').click();
    };
    await loseNext('**/v1/top-up');
    await pay();
    await page.getByText('The outcome is not known. You can safely try again').waitFor();
    for (const name of ['Usage', 'Balance']) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
    }
    await pay();
    await page.getByText('$6.00 was added to your balance.').waitFor();
    assert.equal(await balanceOf(account), 6);
  });

  it('says so when the top-up of a payment page cannot be read', async () => {
    await window.enter(await harness.newAccount(0));
    const topUp = `tu_${'0'.repeat(32)}`;
    for (const result of ['paid', 'canceled']) {
      await page.route(`**/v1/top-up/${topUp}`, (route) =>
        route.fulfill({ status: 500, json: UNKNOWN }),
      );
      await window.go(`/balance?topUp=${topUp}&result=${result}`);
      await page.getByText('This could not be loaded').waitFor();
      assert.equal(await page.getByText('No payment has arrived').count(), 0, result);
      await page.unroute(`**/v1/top-up/${topUp}`);
      await button('Try again').click();
      await page.getByText('Not in this account').waitFor();
    }
  });

  it('shows what an answer to an approval charges, and charges that', async () => {
    const account = await harness.newAccount(0.75);
    const { api } = harness.stack;
    const budget = await makeBudget(api, account.consumerKey, { limit: 10 });
    const { key: spendKey } = await makeKey(api, account.consumerKey, budget.id);
    await ask(api, account, spendKey, 2);
    await answerWithCard(account);
    const [sent] = await Promise.all([
      page.waitForRequest('**/decide'),
      button('Top up $1.25 from the saved card').click(),
    ]);
    assert.deepEqual(sent.postDataJSON(), { decision: 'top_up', amount: 1.25 });
  });

  it('pays for an approval under one key, and under another one only after a payment that failed', async () => {
    const account = await harness.newAccount(0);
    const { api } = harness.stack;
    const budget = await makeBudget(api, account.consumerKey, { limit: 10 });
    const { key: spendKey } = await makeKey(api, account.consumerKey, budget.id);
    const { id } = await ask(api, account, spendKey, 2);
    await answerWithCard(account);
    const keys: (string | undefined)[] = [];
    const answers = [
      { status: 500, json: UNKNOWN },
      { status: 402, json: DECLINED },
      { status: 500, json: UNKNOWN },
    ];
    await page.route('**/decide', async (route) => {
      keys.push(keyOf(route));
      await route.fulfill(answers[keys.length - 1] ?? { status: 500, json: UNKNOWN });
    });
    for (let n = 1; n <= 4; n += 1) {
      await button('Top up $2.00 from the saved card').click();
      await until(async () => keys.length === n);
      await page
        .getByText(n === 2 ? 'The card was declined.' : 'The outcome is not known.')
        .waitFor();
    }
    const [, , third] = keys;
    assert.notEqual(third, id);
    assert.deepEqual(keys, [id, id, third, third]);
  });

  it('asks for the page of a checkout again under the same key, four times for one press of the button', async () => {
    await window.enter(await harness.newAccount(0));
    const keys: (string | undefined)[] = [];
    await page.route('**/v1/checkout', async (route) => {
      keys.push(keyOf(route));
      await route.fulfill({
        status: 202,
        json: { topUpId: `tu_${'0'.repeat(32)}`, status: 'pending' },
      });
    });
    await button('Pay $25.00').click();
    await page.getByText('The payment page is not ready yet.').waitFor();
    assert.equal(keys.length, 4);
    await button('Pay $25.00').click();
    await until(async () => keys.length === 5);
    assert.equal(new Set(keys).size, 1, keys.join(' '));
  });

  it('opens the checkout that was asked for, although the saved card was chosen while Farebox was busy', async () => {
    await window.enter(await createAccount(harness.stack.env, 0));
    const charges: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/top-up')) charges.push(request.method());
    });
    const isRefused = Promise.withResolvers<void>();
    const json = { error: { code: 'service_unavailable', message: 'Try again shortly' } };
    const answers = [
      { status: 202, json: { topUpId: `tu_${'0'.repeat(32)}`, status: 'pending' } },
      { status: 503, json, headers: { 'retry-after': '1' } },
    ];
    // The route that was added last answers first.
    for (const answer of answers) {
      const refuse = (route: Route) => route.fulfill(answer).then(isRefused.resolve);
      await page.route('**/v1/checkout', refuse, { times: 1 });
    }
    await page.getByText('Checkout', { exact: true }).click();
    await button('Pay $25.00').click();
    await isRefused.promise;
    await page.getByText('Test card').click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    assert.ok(!charges.includes('POST'), charges.join(' '));
  });

  it('pays under the same key when the request after a lost answer is one too many', async () => {
    await window.enter(await harness.newAccount(0));
    const keys: (string | undefined)[] = [];
    const answers = [
      { status: 500, json: UNKNOWN },
      { status: 429, json: LIMITED },
    ];
    await page.route('**/v1/checkout', async (route) => {
      keys.push(keyOf(route));
      await route.fulfill(answers[keys.length - 1] ?? { status: 402, json: DECLINED });
    });
    for (const said of ['The outcome is not known.', 'Too many requests.', 'The card was']) {
      await button('Pay $25.00').click();
      await page.getByText(said).waitFor();
    }
    assert.equal(new Set(keys).size, 1, keys.join(' '));
    await button('Pay $25.00').click();
    await until(async () => keys.length === 4);
    assert.notEqual(keys[3], keys[0]);
  });

  it('can pay again when somebody comes back from the checkout to the page as it was left', async () => {
    await window.enter(await harness.newAccount(0));
    const keys: (string | undefined)[] = [];
    const sessionUrl = 'https://checkout.example.com/pay';
    // The browser stays on the page after a 204.
    await page.route(sessionUrl, (route) => route.fulfill({ status: 204 }));
    await page.route('**/v1/checkout', async (route) => {
      keys.push(keyOf(route));
      await route.fulfill({
        status: 201,
        json: { topUpId: `tu_${'0'.repeat(32)}`, status: 'pending', sessionUrl },
      });
    });
    const left = page.waitForResponse(sessionUrl);
    await button('Pay $25.00').click();
    await left;
    await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`);
    // A window that is still on its way to another host may not close.
    const leftAgain = page.waitForResponse(sessionUrl);
    await button('Pay $25.00').click();
    await leftAgain;
    assert.equal(keys.length, 2);
    assert.notEqual(keys[0], keys[1]);
  });

  it('shows a new key after an answer that was cut off', async () => {
    await window.enter(await harness.newAccount(0), '/keys');
    await button('Create key').click();
    const form = await openedDialog(page, 'Create key');
    let isCut = false;
    await page.route('**/v1/keys', async (route) => {
      if (isCut || route.request().method() !== 'POST') return route.fallback();
      isCut = true;
      const answer = await route.fetch();
      return route.fulfill({ response: answer, body: (await answer.text()).slice(0, 60) });
    });
    await form.getByRole('button', { name: 'Create key' }).click();
    await form.getByText('You can safely try again: it will happen only once.').waitFor();
    await form.getByRole('button', { name: 'Create key' }).click();
    const made = await openedDialog(page, 'Your new key');
    await made.getByText(/^\w+_ck_live_\w+$/).waitFor();
    await made.getByRole('button', { name: 'Done' }).click();
    // The one that the account had, and the new one.
    await until(async () => (await button(/^Actions for/).count()) === 2);
  });

  it('says in plain words that an earlier payment arrived, when the amount was changed after a lost answer', async () => {
    await window.enter(await harness.newAccount(0));
    await page.route(
      '**/v1/checkout',
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await button('Pay $25.00').click();
    await page.getByText('You can safely try again: it will happen only once.').waitFor();
    await page.getByLabel('Amount in dollars').fill('50');
    await button('Pay $50.00').click();
    await page.getByText('Your earlier request, with different values, did arrive.').waitFor();
    await page.getByRole('link', { name: 'Pay now' }).waitFor();
  });

  it('says that signing out may have failed', async () => {
    await window.enter(await harness.newAccount(0));
    await page.route('**/sign-out', (route) => route.abort());
    await button('Account').click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByText('You may still be signed in.').waitFor();
  });

  it('shows the page when a link names no month or no day', async () => {
    const account = await harness.newAccount(5);
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    await window.enter(account);
    for (const [path, heading] of [
      ['/statements?month=../balance', 'Statements'],
      ['/usage?from=20261-01-01', 'Usage'],
      ['/developer/charges?to=20261-01-01', 'Charges'],
    ] as const) {
      const read = page.waitForResponse((answer) => answer.status() >= 400);
      await window.go(path);
      await read;
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      assert.equal(await page.getByRole('dialog').count(), 0, path);
    }
    assert.deepEqual(
      window.problems.filter((text) => !/status of 4\d\d/.test(text)),
      [],
    );
  });

  it('reads again what was refused because the account read too much at a time', async () => {
    // Without a retry, the page would ask once more than the router, so two requests are refused.
    const refusal = { status: 429, json: LIMITED, headers: { 'retry-after': '1' } };
    await page.route('**/v1/consent', (route) => route.fulfill(refusal), { times: 2 });
    await window.enter(await harness.newAccount(0));
    await button('Set up').waitFor();
  });

  it('sends again what was refused because the session had just been replaced', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    await page.getByText('$5.00', { exact: true }).first().waitFor();
    const json = { error: { code: 'session_required', message: 'Sign in' } };
    await page.route('**/v1/balance', (route) => route.fulfill({ status: 401, json }), {
      times: 1,
    });
    await charge(harness.stack.api, account, { tool: 'search', amount: 1 });
    await page.getByText('$4.00', { exact: true }).first().waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  it('does not ask to sign in when it hears of the end of the session after somebody has signed in again', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    await page.getByText('$5.00', { exact: true }).first().waitFor();
    const json = { error: { code: 'session_required', message: 'Sign in' } };
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const refuseLate = async (route: Route) => {
      asked.resolve();
      await answered.promise;
      await route.fulfill({ status: 401, json });
    };
    await page.route('**/v1/session', refuseLate, { times: 1 });
    await page.route('**/v1/balance', (route) => route.fulfill({ status: 401, json }), {
      times: 1,
    });
    await charge(harness.stack.api, account, { tool: 'search', amount: 1 });
    await asked.promise;
    await page.evaluate(`void (window.heard = new Promise((resolve) => {
      new BroadcastChannel('farebox-session').addEventListener('message', () => resolve());
    }))`);
    const second = await openPage(window.context);
    await second.goto(`${harness.stack.api.url}/console/usage`);
    await page.evaluate('window.heard');
    answered.resolve();
    await page.getByText('$4.00', { exact: true }).first().waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  it('shows the answer of a change, and not that of a read that was sent before it', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    await button('Set up').click();
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
    await button('Withdraw consent').waitFor();
    const [read, shown] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(
      '**/v1/consent',
      async (route) => {
        const response = await route.fetch();
        read.resolve();
        await shown.promise;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    // A charge changes the balance, and then the page reads the consent as well.
    await charge(harness.stack.api, account, { tool: 'search', amount: 1 });
    await read.promise;
    await button('Withdraw consent').click();
    await button('Set up').waitFor();
    const late = page.waitForResponse('**/v1/consent');
    shown.resolve();
    await (await late).finished();
    // No other read of the consent may mend the page. Once the balance is shown, the page has handled that one.
    await page.route('**/v1/consent', () => undefined);
    await charge(harness.stack.api, account, { tool: 'search', amount: 1 });
    await page.getByText('$3.00', { exact: true }).first().waitFor();
    assert.equal(await button('Withdraw consent').count(), 0);
  });

  it('keeps working when a part of its code cannot be loaded, and says what to do', async () => {
    const account = await harness.newAccount(20);
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    const [chart, usage] = ['**/assets/chart-*.js', '**/assets/usage-*.js'];
    await page.route(chart, (route) => route.abort());
    await page.route(usage, (route) => route.abort());
    await window.enter(account);
    await page.getByText('The chart could not be loaded.').waitFor();
    await button('Pay $25.00').waitFor();
    await window.go('/usage');
    await page.getByText('This page could not be loaded').waitFor();
    await page.getByRole('link', { name: 'Balance' }).waitFor();
    await page.unroute(usage);
    // The page also tries again by itself, and then the button is gone.
    const loaded = page.getByRole('heading', { level: 1, name: 'Usage' });
    await button('Reload').or(loaded).first().click();
    await loaded.waitFor();
  });

  it('waits for the tax before it charges the saved card, also of an amount with spaces', async () => {
    const account = await createAccount(harness.stack.env, 0);
    await page.route('**/v1/session', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), taxed: true } });
    });
    await window.enter(account);
    const quotes: string[] = [];
    await page.route('**/v1/top-up/quote?*', async (route) => {
      quotes.push(new URL(route.request().url()).searchParams.get('amount') ?? '');
      await route.fulfill({ json: { amount: 30, tax: 2, total: 32 } });
    });
    await button('Pay $25.00').waitFor();
    assert.deepEqual(quotes, [], 'a quote for a checkout');
    await page.getByText('Test card').click();
    await page.getByLabel('Amount in dollars').fill(' 30 ');
    await button('Pay $32.00').waitFor();
    assert.equal(quotes.at(-1), '30');
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    quotes.length = 0;
    await page.getByLabel('Amount in dollars').fill('');
    await page.getByLabel('Amount in dollars').pressSequentially('123.45');
    assert.deepEqual(quotes, []);
    await page.clock.resume();
    await button('Pay $125.45').waitFor();
    assert.deepEqual(quotes, ['123.45'], 'a quote for each key');
  });
});
