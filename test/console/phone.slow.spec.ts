/**
 * What an owner of agents does on a phone. Nothing slides sideways on the way, and no control is cut or wraps
 * apart.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { ask } from '../support/approval-requests.ts';
import { closeBudget, makeBudget } from '../support/budget-requests.ts';
import {
  copiedBy,
  openForEach,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { place, show } from '../support/hold-requests.ts';
import { charge } from '../support/http.ts';
import { until } from '../support/stack.ts';

const PHONE = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  permissions: ['clipboard-read', 'clipboard-write'],
};

describe('the console on a phone', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { window: PHONE },
  );

  const button = (name: string | RegExp) => page.getByRole('button', { name }).first();

  async function goTo(name: string): Promise<void> {
    await button('Open navigation').tap();
    // Its name may end with what waits there.
    await page.getByRole('link', { name: new RegExp(`^${name}`) }).tap();
    await page.getByRole('heading', { level: 1, name }).waitFor();
  }

  async function fits(): Promise<void> {
    const width = await page.evaluate('document.documentElement.scrollWidth');
    assert.equal(width, PHONE.viewport.width);
  }

  it('shows every digit of a large balance', async () => {
    const account = await harness.newAccount(1_000_000);
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.876544 });
    await window.enter(account);
    const balance = page.getByText('$999,999.123456', { exact: true }).first();
    await balance.waitFor();
    const [end, edge] = await balance.evaluate((amount) => {
      const card = amount.closest('section') ?? amount;
      return [amount, card].map((element) => element.getBoundingClientRect().right);
    });
    assert.ok((end ?? 0) < (edge ?? 0), `it ends at ${end}, and its card at ${edge}`);
  });

  it('shows the beginning of every long tool name in the chart of the revenue', async () => {
    const account = await harness.newAccount(10);
    const names = ['a', 'W', '…', 'x '].map((text) => text.repeat(100).slice(0, 99).trim());
    for (const tool of names) await charge(harness.stack.api, account, { tool, amount: 1 });
    await window.enter(account, '/developer');
    const labels = page
      .locator('section', { has: page.getByRole('heading', { name: 'Revenue by tool' }) })
      .locator('svg text', { hasText: '…' });
    await until(async () => (await labels.count()) === names.length);
    for (const label of await labels.all()) {
      const [start, edge] = await label.evaluate((text) =>
        [text, text.closest('svg') ?? text].map((part) => part.getBoundingClientRect().left),
      );
      assert.ok((start ?? 0) >= (edge ?? 0), `it starts at ${start}, and its chart at ${edge}`);
    }
  });

  it('shows the state of a budget that has ended, and the whole label of each button of a charge', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    const { api } = harness.stack;
    const account = await harness.newAccount(10);
    const { id } = await makeBudget(api, account.consumerKey, { name: 'Old' });
    await makeBudget(api, account.consumerKey, { name: 'New' });
    await closeBudget(api, account.consumerKey, id);
    await window.enter(account, '/budgets');
    const rows = page.getByRole('region', { name: 'Budgets' }).getByRole('row');
    const old = rows.filter({ hasText: 'Old' });
    await old.getByText('Closed').filter({ visible: true }).waitFor();
    assert.match(await old.innerText(), /^Old\s+Closed\s+\$0\.00/);
    assert.match(await rows.filter({ hasText: 'New' }).innerText(), /^New\s+\$0\.00/);

    await charge(api, account, { tool: 'search', amount: 1 });
    await window.go('/developer/charges');
    await button(/^Charge for search/).tap();
    const sheet = await openedDialog(page, 'Charge');
    await sheet.getByRole('button', { name: 'Refund' }).waitFor();
    const cut = await page
      .locator('.mantine-Button-label')
      .evaluateAll((labels) =>
        labels
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
          .map(({ textContent }) => textContent),
      );
    assert.deepEqual(cut, []);
  });

  it('shows all of a failure in a narrow dialog', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await window.enter(await harness.newAccount(0), '/budgets');
    await button('Create budget').tap();
    const form = await openedDialog(page, 'Create budget');
    await form.getByLabel('Name').fill('Agent');
    const requestId = 'req_01a22dc4991b7000b12c7995e55ae3cf';
    const error = { code: 'invalid_request', message: 'The name is taken.', requestId };
    await page.route('**/v1/budgets', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 400, json: { error } })
        : route.continue(),
    );
    await button('Create budget and key').tap();
    const alert = form.getByRole('alert');
    await alert.getByText('Request ID').waitFor();
    const [wide, shown] = await alert.evaluate((box) => [box.scrollWidth, box.clientWidth]);
    assert.ok((wide ?? 0) <= (shown ?? 0), `it is ${wide} wide, and ${shown} of it are seen`);
  });

  it('creates a budget, copies and revokes its key, decides about a call, and tops up', async () => {
    const account = await harness.newAccount(50);
    await window.enter(account);
    await goTo('Budgets');
    await button('Create budget').tap();
    const form = await openedDialog(page, 'Create budget');
    await form.getByLabel('Name').fill('Agent');
    await form.getByLabel('Limit for one call').fill('0.5');
    await button('Create budget and key').tap();
    const shown = await openedDialog(page, 'Your new key');
    const consumerKey = await copiedBy(page, 'Copy key');
    const tops = await shown.getByRole('tab').evaluateAll((tabs) => {
      return tabs.map((tab) => tab.getBoundingClientRect().top);
    });
    assert.equal(new Set(tops).size, 1, 'the tabs wrap');
    await fits();
    await button('Done').tap();

    await charge(harness.stack.api, { ...account, consumerKey }, { tool: 'search', amount: 0.25 });
    await page.reload();
    await page.getByText('$0.25 in 1 charge').waitFor();
    await fits();
    await ask(harness.stack.api, account, consumerKey, 0.75);
    await goTo('Approvals');
    await page.getByRole('heading', { name: 'Allow a call for $0.75?' }).waitFor();
    await fits();
    await button('Allow once').tap();
    await page.getByText('Allowed once').waitFor();

    await goTo('Budgets');
    await page.getByRole('link', { name: 'Agent' }).tap();
    await button(/^Actions for Agent/).tap();
    await page.getByRole('menuitem', { name: 'Revoke key' }).tap();
    const spender = { ...account, consumerKey };
    const hold = await place(harness.stack.api, spender, { amount: 0.5 });
    const revoke = await openedDialog(page, 'Revoke key');
    await revoke.getByLabel('Release what open holds have reserved (not leases)').tap();
    await revoke.getByRole('button', { name: 'Revoke key' }).tap();
    await page.getByText('Revoked', { exact: true }).waitFor();
    assert.equal((await show(harness.stack.api, account, hold.id)).status, 'released');
    await fits();

    await goTo('Balance');
    await fits();
    await button('Pay $25.00').tap();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.locator('button').first().tap();
    await page.getByText('$25.00 was added to your balance.').waitFor();
    await fits();
  });
});
