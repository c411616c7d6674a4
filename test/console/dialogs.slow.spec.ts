/** Dialogs that send a request: they close when that is over, and nothing that is typed or shown once gets lost. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import {
  openForEach,
  openPage,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { call, charge } from '../support/http.ts';
import { createSignInLinkToken } from '../support/sessions.ts';
import { until } from '../support/stack.ts';

const CHARGES_ON_A_PAGE = 50;
const BESIDE = { x: 20, y: 700 } as const;
const AWAY = { error: { code: 'service_unavailable', message: 'The database is read-only.' } };

describe('a dialog of the console', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { expected: /status of/ },
  );

  const button = (name: string | RegExp) => page.getByRole('button', { name });
  const scrolled = () => page.evaluate<number>('window.scrollY');
  const tryToLeave = async () => {
    await page.keyboard.press('Escape');
    await page.mouse.click(BESIDE.x, BESIDE.y);
    await page.goBack();
  };
  /** Until it is called, requests to the address wait. They fail, or reach the API. */
  const holdBack = async (url: string, end: 'fails' | 'continues') => {
    const gate = Promise.withResolvers<void>();
    await page.route(url, async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await gate.promise;
      await (end === 'fails' ? route.fulfill({ status: 503, json: AWAY }) : route.continue());
    });
    return gate.resolve;
  };
  /** Wherever Tab leads, it is in the dialog. */
  const holdsFocus = async (dialog: Locator) => {
    for (let n = 0; n < 3; n += 1) {
      await page.keyboard.press('Tab');
      assert.equal(await dialog.evaluate((part) => part.matches(':focus-within')), true);
    }
  };
  const askToRevoke = async (name: string): Promise<Locator> => {
    await button(new RegExp(`^Actions for ${name}`)).click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    return openedDialog(page, 'Revoke key');
  };

  it('stays open while its request runs, and shows the failure', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(10);
    const { id } = await makeBudget(api, account.consumerKey, { name: 'agent' });
    await makeKey(api, account.consumerKey, id, { name: 'leaked' });
    await charge(api, account, { tool: 'search', amount: 1 });
    await window.enter(account, '/budgets');

    const showsFailure = async (dialog: Locator, work: string, url: string) => {
      const fail = await holdBack(url, 'fails');
      const submit = dialog.getByRole('button', { name: work, exact: true });
      await submit.press('Enter');
      await until(async () => (await dialog.locator('button[data-loading]').count()) === 1);
      await holdsFocus(dialog);
      await tryToLeave();
      await page.keyboard.press('Tab');
      await dialog.getByRole('button', { name: 'Close', exact: true }).press('Enter');
      assert.equal(await dialog.count(), 1);
      assert.equal(
        await dialog.getByRole('button', { name: 'Close', exact: true }).isDisabled(),
        true,
      );
      fail();
      await dialog.getByRole('alert').getByText('The database is read-only.').waitFor();
      await page.unroute(url);
      await dialog.getByRole('button', { name: 'Close', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await page.getByRole('link', { name: 'agent' }).click();
    await showsFailure(await askToRevoke('leaked'), 'Revoke key', '**/revoke');
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await showsFailure(await openedDialog(page, 'Close budget'), 'Close budget', '**/close');
    await page.getByRole('navigation').getByRole('link', { name: 'Charges' }).click();
    await button(/^Charge for search/).click();
    const sheet = await openedDialog(page, 'Charge');
    await sheet.getByLabel('Amount to refund in dollars').waitFor();
    await showsFailure(sheet, 'Refund', '**/refund');
  });

  it('can be left when its request gets no answer, and the request sent again happens once', async () => {
    const account = await harness.newAccount(10);
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    await window.enter(account, '/developer/charges');
    await page.clock.install();
    const openSheet = async () => {
      await button(/^Charge for search/).click();
      return openedDialog(page, 'Charge');
    };
    const sheet = await openSheet();
    await sheet.getByLabel('Amount to refund in dollars').fill('0.5');
    const arrived = Promise.withResolvers<void>();
    // The refund is made, and the line is silent.
    await page.route('**/refund', (route) => route.fetch().then(() => arrived.resolve()), {
      times: 1,
    });
    await sheet.getByRole('button', { name: 'Refund' }).click();
    await arrived.promise;
    assert.equal(await sheet.getByRole('alert').count(), 0);
    await page.clock.fastForward(60_000);
    await sheet.getByText('You can safely try again: it will happen only once.').waitFor();
    await sheet.getByRole('button', { name: 'Close', exact: true }).click();
    await sheet.waitFor({ state: 'detached' });
    const again = await openSheet();
    await again.getByLabel('Amount to refund in dollars').fill('0.5');
    await again.getByRole('button', { name: 'Refund' }).click();
    await page.getByText('Your earlier request had arrived').waitFor();
    await again.getByText('$0.50 refunded').first().waitFor();
    const key = account.consumerKey;
    const { body } = await call(harness.stack.api, 'GET', '/v1/usage', { key });
    assert.equal((body as { total: number }).total, 1.5);
  });

  it('closes by Escape when its request gets no answer, and the page says what is away', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    const { id } = await makeBudget(api, account.consumerKey);
    await makeKey(api, account.consumerKey, id, { name: 'leaked' });
    await window.enter(account, `/budgets?budget=${id}`);
    await page.clock.install();
    const dialog = await askToRevoke('leaked');
    const asked = Promise.withResolvers<void>();
    await page.route('**/v1/**', (route) => {
      if (route.request().url().endsWith('/revoke')) asked.resolve();
    });
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    await asked.promise;
    await page.clock.fastForward(60_000);
    await dialog.getByText('Your change may not have been saved.').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('We keep trying').waitFor();
    await page.unroute('**/v1/**');
    // The request that asks whether Farebox is back waits for its answer too.
    await page.clock.fastForward(60_000);
    await page.getByText('We keep trying').waitFor({ state: 'detached' });
  });

  it('names a refused field by its label', async () => {
    await window.enter(await harness.newAccount(0), '/budgets');
    await button('Create budget').click();
    const dialog = await openedDialog(page, 'Create budget');
    await dialog.getByLabel('Name').fill('Agent');
    await dialog.getByLabel('Works until').fill('2020-01-01T00:00');
    const submit = dialog.getByRole('button', { name: 'Create budget and key' });
    await submit.click();
    const alert = dialog.getByRole('alert');
    await alert.getByText('“Works until” must be a time in the future.', { exact: true }).waitFor();
    await dialog.getByLabel('Works until').fill('');
    await dialog.getByLabel('Limit for one call').fill('-1');
    await submit.click();
    await alert.getByText(/^“Limit for one call” is "-1"\. It must be/).waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await window.context.clearCookies();
    await window.go('/sign-up');
    await page.getByLabel('Email').fill('x@y');
    await page.keyboard.press('Enter');
    await page.getByText(/^Invalid email address\.$/).waitFor();
  });

  it('gives the focus back to its button when its request has failed', async () => {
    await window.enter(await harness.newAccount(0), '/budgets');
    await button('Create budget').click();
    const dialog = await openedDialog(page, 'Create budget');
    await dialog.getByLabel('Name').fill('Agent');
    const fail = await holdBack('**/v1/budgets', 'fails');
    const submit = dialog.getByRole('button', { name: 'Create budget and key' });
    await submit.press('Enter');
    await until(() => dialog.evaluate((part) => part.matches(':focus')));
    fail();
    await dialog.getByRole('alert').waitFor();
    await until(() => submit.evaluate((part) => part.matches(':focus')));
  });

  it('shows a failure before the lists of the page are read again', async () => {
    await window.enter(await harness.newAccount(0), '/budgets');
    await button('Create budget').click();
    const dialog = await openedDialog(page, 'Create budget');
    await dialog.getByLabel('Name').fill('Agent');
    const lists = Promise.withResolvers<void>();
    await page.route(/\/v1\/budgets(\?|$)/, async (route) => {
      if (route.request().method() === 'POST') return route.fulfill({ status: 503, json: AWAY });
      await lists.promise;
      await route.continue();
    });
    await dialog.getByRole('button', { name: 'Create budget and key' }).click();
    await dialog.getByRole('alert').getByText('The database is read-only.').waitFor();
    await dialog.getByRole('button', { name: 'Close', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    lists.resolve();
  });

  it('is closed by the success of its own request, and not by that of another one', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(10);
    const { id } = await makeBudget(api, account.consumerKey);
    for (const name of ['alpha', 'beta']) await makeKey(api, account.consumerKey, id, { name });
    await window.enter(account, `/budgets?budget=${id}`);
    const release = await holdBack('**/revoke', 'continues');
    const alpha = await askToRevoke('alpha');
    await alpha.getByRole('button', { name: 'Revoke key' }).click();
    await page.keyboard.press('Escape');
    assert.equal(await alpha.getByRole('button', { name: 'Cancel' }).isDisabled(), true);
    release();
    await page.getByText('The key was revoked.').waitFor();
    await alpha.waitFor({ state: 'detached' });
    await askToRevoke('beta');
    await page.keyboard.press('Escape');
    await until(async () => (await page.getByRole('dialog').count()) === 0);
    await page.getByText('Active', { exact: true }).first().waitFor();
  });

  it('keeps what was typed, until its own button closes it', async () => {
    await window.enter(await harness.newAccount(0), '/budgets');
    const open = async () => {
      await button('Create budget').click();
      return openedDialog(page, 'Create budget');
    };
    const dialog = await open();
    const name = dialog.getByLabel('Name');
    await name.fill('Agent');
    await page.keyboard.press('Escape');
    await page.mouse.click(BESIDE.x, BESIDE.y);
    assert.equal(await name.inputValue(), 'Agent');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await open();
    assert.equal(await name.inputValue(), '');
    // Nothing would be lost.
    await page.mouse.click(BESIDE.x, BESIDE.y);
    await dialog.waitFor({ state: 'detached' });
  });

  it('with a key that is shown once stays when its reader goes back', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    const { id } = await makeBudget(api, account.consumerKey, { name: 'agent' });
    await window.enter(account, '/budgets');
    await page.getByRole('link', { name: 'agent' }).click();
    await button('Create key').click();
    const form = await openedDialog(page, 'Create key');
    await form.getByRole('button', { name: 'Create key' }).click();
    const made = await openedDialog(page, 'Your new key');
    await page.goBack();
    await until(() => new URL(page.url()).searchParams.get('budget') === id);
    const [question] = await Promise.all([
      page.waitForEvent('dialog').then(async (asked) => {
        await asked.dismiss();
        return asked.type();
      }),
      page.evaluate('location.reload()'),
    ]);
    assert.equal(question, 'beforeunload');
    assert.match((await made.locator('pre').first().textContent()) ?? '', /_ck_live_/);
    await made.getByRole('button', { name: 'Done' }).click();
    await made.waitFor({ state: 'detached' });
    await page.goBack();
    await until(() => new URL(page.url()).search === '');
  });

  it('does not keep a key on the screen after another account has signed in', async () => {
    const { api, database } = harness.stack;
    const account = await harness.newAccount(0);
    const { id } = await makeBudget(api, account.consumerKey, { name: 'agent' });
    await window.enter(account, `/budgets?budget=${id}`);
    await button('Create key').click();
    const form = await openedDialog(page, 'Create key');
    await form.getByRole('button', { name: 'Create key' }).click();
    await openedDialog(page, 'Your new key');
    const questions: string[] = [];
    page.on('dialog', async (asked) => {
      questions.push(asked.type());
      await asked.dismiss();
    });
    const { email } = await harness.newAccount(0);
    const token = await createSignInLinkToken(database.url, email);
    await window.context.request.post(`${api.url}/console/auth/sign-in-link`, {
      form: { token },
      headers: { origin: api.url },
      maxRedirects: 0,
    });
    const other = await openPage(window.context);
    await other.goto(`${api.url}/console/usage`);
    await until(() => questions.length > 0 || page.url().endsWith('/console/balance'));
    assert.deepEqual(questions, []);
    await page.getByRole('heading', { level: 1, name: 'Balance' }).waitFor();
  });

  it('with a key keeps the address of its page, also after the link to the content', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    await makeBudget(api, account.consumerKey, { name: 'agent' });
    await window.enter(account, '/usage');
    await page.getByRole('navigation').getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('link', { name: 'agent' }).click();
    await button('Create key').waitFor();
    await page.getByRole('link', { name: 'Skip to content' }).press('Enter');
    await until(() => page.locator('#content').evaluate((part) => part.matches(':focus')));
    await button('Create key').click();
    const form = await openedDialog(page, 'Create key');
    await form.getByRole('button', { name: 'Create key' }).click();
    const made = await openedDialog(page, 'Your new key');
    await page.goBack();
    await made.getByRole('button', { name: 'Done' }).click();
    await made.waitFor({ state: 'detached' });
    await page.goBack();
    await until(() => page.url().endsWith('/console/budgets'));
  });

  it('keeps the place of the list of charges below it, for both roles', async () => {
    const account = await harness.newAccount(10);
    for (let n = 1; n <= CHARGES_ON_A_PAGE; n += 1) {
      await charge(harness.stack.api, account, { tool: 'search', amount: 0.01 });
    }
    await window.enter(account);
    for (const path of ['/usage', '/developer/charges']) {
      await window.go(path);
      const row = page.getByRole('button', { name: /^Charge for search/ }).nth(40);
      await row.scrollIntoViewIfNeeded();
      const before = await scrolled();
      assert.ok(before > 0, `${path} is not scrolled`);
      await row.click();
      const sheet = await openedDialog(page, 'Charge');
      assert.equal(await scrolled(), before, `${path} with the charge open`);
      await page.keyboard.press('Escape');
      await sheet.waitFor({ state: 'detached' });
      assert.equal(await scrolled(), before, `${path} with the charge closed`);
    }
  });
});
