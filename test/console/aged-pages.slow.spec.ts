/** Open pages while other tabs change something, time passes, or a part of Farebox is away: they say so and undo nothing. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createAccount } from '../support/accounts.ts';
import { changeBudget, makeBudget, showBudget } from '../support/budget-requests.ts';
import {
  mailedLink,
  openForEach,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { call } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('a page of the console that stays open', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { expected: 'any' },
  );

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const ask = async (method: 'GET' | 'PATCH', path: string, key: string, body?: object) => {
    const answer = await call(harness.stack.api, method, path, { key, body });
    assert.equal(answer.status, 200);
    return answer.body as Readonly<Record<string, unknown>>;
  };
  const pay = async (dollars: string) => {
    await page.getByLabel('Amount in dollars').fill(dollars);
    await page.getByRole('button', { name: 'Pay $' }).click();
  };

  it('names the part that is unavailable, and does not say that Farebox is', async () => {
    await window.enter(await harness.newAccount(0));
    const message =
      'Top-ups are unavailable at the moment; nothing was started. Try again shortly.';
    await page.route('**/v1/checkout', (route) =>
      route.fulfill({
        status: 503,
        json: { error: { code: 'service_unavailable', message } },
        headers: { 'retry-after': '5' },
      }),
    );
    await button('Pay $25.00').click();
    await page.getByText(message).waitFor();
    assert.equal(await page.getByText('Farebox cannot be reached').count(), 0);
  });

  it('says that an earlier payment had arrived, and pays the next one', async () => {
    const account = await createAccount(harness.stack.env, 0);
    await window.enter(account);
    await page.route(
      '**/v1/top-up',
      async (route) => {
        await route.fetch();
        await route.fulfill({ status: 500, json: { error: { code: 'outcome_unknown' } } });
      },
      { times: 1 },
    );
    await page.getByText('Test card').click();
    await pay('6');
    await page.getByText('The outcome is not known. You can safely try again').waitFor();
    await pay('6');
    const earlier = page.getByText(
      'Your earlier request had arrived, so nothing was done a second',
    );
    await earlier.waitFor();
    await pay('6');
    await earlier.waitFor({ state: 'detached' });
    await page.getByText('$6.00 was added to your balance.').waitFor();
    assert.equal((await ask('GET', '/v1/balance', account.consumerKey))['balance'], 12);
  });

  it('keeps the period of a budget that another tab changed, when an older form changes its limit', async () => {
    const account = await harness.newAccount(5);
    const { api } = harness.stack;
    const key = account.consumerKey;
    const { id } = await makeBudget(api, key, { window: { per: 'day', limit: 5 } });
    await window.enter(account, '/budgets');
    await page.getByText('agent', { exact: true }).first().click();
    await button('Edit limits').click();
    const form = await openedDialog(page, 'Edit limits');
    await changeBudget(api, key, id, { window: { per: 'week', limit: 5 } });
    await form.getByLabel('Limit in each').fill('6');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    const changed = (await showBudget(api, key, id)).window;
    assert.deepEqual([changed?.per, changed?.limit], ['week', 6]);
  });

  it('saves no setting that another tab has replaced, and shows the newer one', async () => {
    const account = await harness.newAccount(0);
    const path = '/v1/low-balance';
    const key = account.developerKey;
    await ask('PATCH', path, key, { threshold: 5 });
    await window.enter(account, '/developer/webhooks');
    const field = page.getByLabel('Send balance.low when');
    await until(async () => (await field.inputValue()) === '5');
    await ask('PATCH', path, key, { threshold: 7 });
    await button('Save').click();
    await page.getByText('Saved.').waitFor();
    assert.equal((await ask('GET', path, key))['threshold'], 7);
    await until(async () => (await field.inputValue()) === '7');
  });

  it('says from when it is while it cannot be refreshed', async () => {
    await window.enter(await harness.newAccount(5));
    await page.getByText('$5.00', { exact: true }).first().waitFor();
    const json = { error: { code: 'internal_error', message: 'Something went wrong' } };
    await page.route('**/v1/balance', (route) => route.fulfill({ status: 500, json }));
    const note = page.getByText('and could not be refreshed.').first();
    const isNoted = async () => {
      await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
      return note.isVisible();
    };
    await until(isNoted);
    await page.getByText('$5.00', { exact: true }).first().waitFor();
    await page.unroute('**/v1/balance');
    await until(async () => !(await isNoted()));
  });

  it('counts on how long ago something was', async () => {
    await page.clock.install();
    await window.enter(await harness.newAccount(0), '/security');
    const ago = page.getByText(/^(just now|\d+ minutes? ago)$/).last();
    const minutes = async () => Number(/\d+/.exec(await ago.innerText())?.[0] ?? 0);
    const before = await minutes();
    await page.clock.fastForward('05:00');
    await until(async () => (await minutes()) >= before + 5);
  });

  it('can save a card again when somebody comes back from the page where that is done', async () => {
    await window.enter(await createAccount(harness.stack.env, 0));
    const url = 'https://checkout.example.com/setup';
    // The browser stays on the page after a 204.
    await page.route(url, (route) => route.fulfill({ status: 204 }));
    await page.route('**/v1/cards/setup', (route) => route.fulfill({ status: 201, json: { url } }));
    for (let n = 0; n < 2; n += 1) {
      const left = page.waitForResponse(url);
      await button('Save a card').click();
      await left;
      await page.evaluate(
        `dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`,
      );
    }
  });

  it('asks for a first password before two-factor authentication is set up', async () => {
    await window.enter(await harness.newAccount(0), '/security');
    await page.getByLabel('Your password').fill(PASSWORD);
    await button('Set up').click();
    await page.getByText('Your account has no password yet.').waitFor();
  });

  it('reads the sessions again when two-factor authentication is turned off, also after a failed read', async () => {
    const { api } = harness.stack;
    const { email } = await harness.newAccount(0);
    const headers = { origin: api.url };
    const post = (path: string, body: object) =>
      call(api, 'POST', `/console/auth${path}`, { headers, body });
    await post('/sign-up', { email });
    const token = new URL(await mailedLink(harness, email)).searchParams.get('token');
    assert.equal((await post('/reset-password', { token, newPassword: PASSWORD })).status, 200);
    await window.enter({ email }, '/security');
    await page.getByLabel('Your password').fill(PASSWORD);
    await button('Set up').click();
    const secret = await page.locator('code').first().innerText();
    await page.getByLabel('Code', { exact: true }).fill(totp(secret));
    await button('Turn on').click();
    await page.getByText('Two-factor authentication is on.').waitFor();

    const ended = page.getByRole('dialog', { name: 'Your session has ended' });
    const json = { error: { code: 'session_required', message: 'Sign in' } };
    await page.route('**/two-factor/disable', async (route) => {
      // Another request hears that the session has ended, and then the new session cannot be read at first.
      for (const path of ['**/revoke-other-sessions', '**/v1/session']) {
        await page.route(path, (other) => other.fulfill({ status: 401, json }), { times: 1 });
      }
      await button('Sign out everywhere else').click();
      await ended.waitFor();
      await page.route('**/v1/session', (other) => other.abort(), { times: 1 });
      await route.continue();
    });
    await page.getByLabel('Your password').fill(PASSWORD);
    const listed = page.waitForResponse('**/list-sessions');
    await button('Turn off').click();
    await listed;
    await ended.waitFor({ state: 'detached' });
    await page.getByText('Two-factor authentication is off.').waitFor();
    await page.getByText('This session').waitFor();
  });
});
