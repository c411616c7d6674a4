/** Pages say what happened, what still loads and where to look, so that nobody mistakes silence for success. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import type { ChargesReply } from '../../src/schemas/charges.ts';
import type {
  DeliveriesReply,
  NewWebhookEndpointReply,
} from '../../src/schemas/webhook-endpoints.ts';
import type { TestAccount } from '../support/accounts.ts';
import { ask, decide } from '../support/approval-requests.ts';
import { changeBudget, makeBudget, makeKey } from '../support/budget-requests.ts';
import { openForEach, openedDialog, type ConsoleHarness, type Window } from '../support/console.ts';
import { call, charge } from '../support/http.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { until } from '../support/stack.ts';

const BROKEN = { error: { code: 'internal_error', message: 'Something broke' } };

describe('the console says', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  let receiver: Receiver;

  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver?.stop());
  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { stack: { env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } }, expected: /status of|ERR_FAILED/ },
  );

  const button = (name: string | RegExp) => page.getByRole('button', { name });
  const link = (name: string) => page.getByRole('navigation').getByRole('link', { name });

  /** Keeps the requests until it is called. */
  const holdBack = async (url: string) => {
    const gate = Promise.withResolvers<void>();
    await page.route(url, async (route) => {
      await gate.promise;
      await route.continue();
    });
    return gate.resolve;
  };

  it('that an approval was decided elsewhere, after the question is gone', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(10);
    const { id } = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key } = await makeKey(api, account.consumerKey, id);
    const asked = await ask(api, account, key, 2);
    await window.enter(account, '/approvals');
    await button('Allow once').waitFor();
    const release = await holdBack('**/v1/approvals?*');
    await decide(api, account.consumerKey, asked.id, 'deny');
    await button('Allow once').click();
    const refusal = page.getByText(
      /^The approval was already decided at .+\. The decision: deny\.$/,
    );
    await refusal.first().waitFor();
    release();
    await button('Allow once').waitFor({ state: 'detached' });
    assert.equal(await refusal.isVisible(), true);
  });

  it('what a page missed during an outage, even if another request is the first to succeed', async () => {
    await window.enter(await harness.newAccount(10));
    await page.route('**/v1/**', (route) => route.abort());
    await link('Statements').click();
    await page.getByText('This could not be loaded').waitFor();
    await page.route('**/v1/session', () => {});
    await page.unroute('**/v1/**');
    await page.getByText('Closing balance').waitFor();
  });

  it('beside the button that the next page of a list failed, and reads only that page again', async () => {
    const account = await harness.newAccount(10);
    for (let n = 0; n < 51; n += 1) {
      await charge(harness.stack.api, account, { tool: 'search', amount: 0.01 });
    }
    await window.enter(account, '/usage');
    await page.route(
      '**/v1/usage?*cursor*',
      (route) => route.fulfill({ status: 500, json: BROKEN }),
      {
        times: 1,
      },
    );
    await button('Load more').click();
    const alert = page.getByRole('alert');
    await alert.waitFor();
    assert.ok((await topOf(alert)) > (await topOf(page.locator('tbody tr').last())));
    await button('Try again').click();
    await until(async () => (await page.locator('tbody tr').count()) === 51);
    assert.equal(await alert.count(), 0);
  });

  it('that a list is loading', async () => {
    await window.enter(await harness.newAccount(0));
    const release = await holdBack('**/v1/usage?*');
    await link('Usage').click();
    await page.locator('main section').getByLabel('Loading').waitFor();
    release();
    await page.getByText('No charges', { exact: true }).waitFor();
    assert.equal(await page.locator('main').getByLabel('Loading').count(), 0);
  });

  it('where the deliveries of an endpoint are, below a long list', async () => {
    const account = await harness.newAccount(0);
    for (let n = 0; n < 12; n += 1) await addEndpoint(account, `${receiver.url}/${n}`);
    await page.setViewportSize({ width: 390, height: 500 });
    await window.enter(account, '/developer/webhooks');
    await button(/^Actions for/)
      .first()
      .click();
    await page.getByRole('menuitem', { name: 'Show deliveries' }).click();
    const heading = page.getByRole('heading', { name: 'Deliveries' });
    await until(async () => {
      const top = await topOf(heading);
      return top >= 0 && top < 400;
    });
  });

  it('how a delivery ended while its details are open, and why it cannot be sent again', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    const { id } = await addEndpoint(account, receiver.url);
    const path = `/v1/webhook-endpoints/${id}`;
    await call(api, 'POST', `${path}/test`, { key: account.developerKey });
    let isWaiting = true;
    await page.route('**/deliveries?*', async (route) => {
      const response = await route.fetch();
      const { deliveries, ...rest } = (await response.json()) as DeliveriesReply;
      const waiting = { status: 'waiting', responseStatus: null, failureReason: null };
      const json = { ...rest, deliveries: deliveries.map((each) => ({ ...each, ...waiting })) };
      await route.fulfill(isWaiting ? { response, json } : { response });
    });
    await window.enter(account, '/developer/webhooks');
    await button(/^Actions for/).click();
    await page.getByRole('menuitem', { name: 'Show deliveries' }).click();
    await button(/^Details/).click();
    const dialog = await openedDialog(page, 'Delivery');
    await dialog.getByText('Response: None yet').waitFor();
    isWaiting = false;
    await dialog.getByText('Response: 200 in').waitFor();
    const body = { enabled: false };
    await call(api, 'PATCH', path, { key: account.developerKey, body });
    await dialog.getByText('Enable the endpoint to send the event again.').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Send again' }).isDisabled(), true);
  });

  it('that a change failed for as long as the page is open', async () => {
    const account = await harness.newAccount(0);
    await addEndpoint(account, receiver.url);
    await page.clock.install();
    await window.enter(account, '/developer/webhooks');
    await page.route('**/v1/webhook-endpoints/*', (route) =>
      route.fulfill({ status: 500, json: BROKEN }),
    );
    await button(/^Actions for/).click();
    await page.getByRole('menuitem', { name: 'Disable' }).click();
    await page.getByText('Something broke.').waitFor();
    await page.clock.runFor(60_000);
    assert.equal(await page.getByText('Something broke.').isVisible(), true);
  });

  it('what a charge was, from its id alone', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(100);
    await charge(api, account, { tool: 'complained about', amount: 1.25 });
    const { body } = await call(api, 'GET', '/v1/charges', { key: account.developerKey });
    const [found] = (body as ChargesReply).charges;
    for (let n = 0; n < 50; n += 1) await charge(api, account, { tool: 'later', amount: 0.01 });
    await window.enter(account);
    for (const path of ['/usage', '/developer/charges']) {
      await window.go(path);
      const field = page.getByLabel('Charge ID');
      await field.fill('chg_1');
      await field.press('Enter');
      await page.getByText('Enter the whole ID: chg_ and 32 characters.').waitFor();
      await field.fill(` ${found?.id} `);
      await field.press('Enter');
      const sheet = await openedDialog(page, 'Charge');
      await sheet.getByText('complained about').waitFor();
      await sheet.getByText('$1.25').first().waitFor();
    }
  });

  it('in each field why the saved card cannot be set up with it', async () => {
    await window.enter(await harness.newAccount(0));
    await button('Set up').click();
    await page.getByLabel('Monthly limit in dollars').fill('0.1');
    await page.getByText('Enter $0.50 to $999,999.99, in whole cents.').waitFor();
  });

  it('the month of a statement that a link names, however old', async () => {
    await window.enter(await harness.newAccount(0), '/statements?month=2020-01');
    await until(
      async () =>
        (await page.getByRole('combobox', { name: 'Month' }).inputValue()) === 'January 2020',
    );
  });

  it('what to do when the script of the page cannot be loaded', async () => {
    await page.route('**/console/assets/*.js', (route) => route.fulfill({ status: 404 }));
    await window.go('/balance');
    await page.getByText('The console has not loaded').waitFor();
    await page.unroute('**/console/assets/*.js');
    await page.getByRole('link', { name: 'Reload' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('a tool’s words as another tab wrote them, while a form that changes only the price was open', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    const options = { key: account.developerKey };
    const made = await call(api, 'POST', '/v1/tools', {
      ...options,
      body: { name: 'shared', price: 0.02, description: 'Ours.' },
    });
    const path = `/v1/tools/${(made.body as { id: string }).id}`;
    await window.enter(account, path.replace('/v1', '/developer'));
    await button('Edit tool').click();
    const form = await openedDialog(page, 'Edit tool');
    await call(api, 'PATCH', path, { ...options, body: { description: 'Theirs.' } });
    // As when the user comes back to the tab.
    await until(async () => {
      await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
      return (await page.getByText('Theirs.').count()) > 0;
    });
    await form.getByLabel('Price per call in dollars').fill('0.5');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    const { body } = await call(api, 'GET', path, options);
    const { price, description } = body as { price: number; description: string };
    assert.deepEqual({ price, description }, { price: 0.5, description: 'Theirs.' });
  });

  it('the page before a filter, at the first step back from a typed date', async () => {
    await window.enter(await harness.newAccount(0));
    await link('Usage').click();
    const from = page.getByLabel('From');
    await from.focus();
    await page.keyboard.type('11052026');
    await until(() => new URL(page.url()).searchParams.get('from') === '2026-11-05');
    await page.goBack();
    assert.equal(new URL(page.url()).pathname, '/console/balance');
  });

  it('whole names of 100 characters on a phone, and counts beside a name that runs right to left', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(100);
    const { id } = await makeBudget(api, account.consumerKey, { name: 'w'.repeat(100), limit: 1 });
    const { key } = await makeKey(api, account.consumerKey, id);
    await decide(api, account.consumerKey, (await ask(api, account, key, 2)).id, 'deny');
    await charge(api, account, { tool: 'اختبار שלום', amount: 1 });
    await window.enter(account, '/statements');
    assert.equal(await page.locator('td bdi').first().textContent(), 'اختبار שלום');
    await page.setViewportSize({ width: 390, height: 800 });
    await window.go(`/budgets?budget=${id}`);
    await button('Close').click();
    await openedDialog(page, 'Close budget');
    assert.deepEqual(await cutTexts(page), []);
    await page.setViewportSize({ width: 1_440, height: 800 });
    await window.go('/approvals');
    await page.getByText('Denied').waitFor();
    assert.deepEqual(await cutTexts(page), []);
  });

  it('in the audit log which budget, key and endpoint was changed', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    const { consumerKey } = account;
    const changed = await makeBudget(api, consumerKey, { name: 'research', limit: 10 });
    await makeBudget(api, consumerKey, { name: 'other', limit: 10 });
    await changeBudget(api, consumerKey, changed.id, { limit: 25.3 });
    const spendKey = await makeKey(api, consumerKey, changed.id);
    const endpoint = await addEndpoint(account, receiver.url);
    await window.enter(account, '/audit-log');
    const row = (action: string) =>
      page.getByRole('region', { name: 'Audit log' }).getByRole('row', { name: action });
    await row('Webhook endpoint created').getByText(`${receiver.url}, ${endpoint.id}`).waitFor();
    await row('Spend key created').getByText(spendKey.id).waitFor();
    const raised = row('Budget changed');
    await raised.getByText(`research, ${changed.id}`).waitFor();
    await raised.getByRole('link', { name: changed.id }).click();
    await page.getByRole('heading', { name: 'research' }).waitFor();
  });

  it('nothing to somebody who is not signed in until the sign-in page has loaded', async () => {
    const [asked, loaded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route('**/assets/sign-in-*.js', async (route) => {
      asked.resolve();
      await loaded.promise;
      await route.continue();
    });
    await window.go('/budgets');
    await asked.promise;
    await page.evaluate(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
    );
    assert.equal(await page.getByRole('alert').count(), 0);
    assert.equal(await page.getByRole('navigation').count(), 0);
    loaded.resolve();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('next'), '/budgets');
  });

  it('by its place in the tree where a budget belongs, also with a name that runs right to left', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(10);
    await makeBudget(api, account.consumerKey, { name: 'team' });
    await makeBudget(api, account.consumerKey, { name: 'צוות שלום' });
    await window.enter(account, '/budgets');
    await page.getByRole('link', { name: 'team' }).waitFor();
    for (const width of [1_280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const lefts = await page.evaluate<
        number[]
      >(`[...document.querySelectorAll('td a')].map((link) => {
        const text = document.createRange();
        text.selectNodeContents(link.querySelector('bdi'));
        return Math.round(text.getBoundingClientRect().left);
      })`);
      assert.equal(lefts.length, 2);
      assert.equal(lefts[0], lefts[1], `at ${width} pixels`);
    }
  });

  async function addEndpoint(account: TestAccount, url: string): Promise<NewWebhookEndpointReply> {
    const options = { key: account.developerKey, body: { url } };
    const { body } = await call(harness.stack.api, 'POST', '/v1/webhook-endpoints', options);
    return body as NewWebhookEndpointReply;
  }
});

async function topOf(element: Locator): Promise<number> {
  return (await element.boundingBox())?.y ?? Number.NaN;
}

/** Texts that leave the window, or the part of the page that they are in. */
function cutTexts(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('main :is(h2, p, td, .mantine-Badge-root), [role=dialog] :is(h2, p)')]
    .filter((each) => each.offsetParent !== null)
    .filter((each) => each.getBoundingClientRect().right > innerWidth || (each.matches('p, h2') && each.scrollWidth > each.clientWidth))
    .map((each) => each.tagName + ' ' + each.textContent.slice(0, 60))`);
}
