/**
 * The console without a mouse: dialogs keep the focus and give it back, and the main tasks can be done with keys alone.
 * pictures.slow.spec.ts presses Tab on every page.
 */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { CONSENT_TERMS } from '../../src/domain/consent-terms.ts';
import { ask } from '../support/approval-requests.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import {
  closeUnblemished,
  openConsole,
  openedDialog,
  takesFocus,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { call, charge } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { NAME_OF, TABS_MAX } from './tab-order.ts';

const CHARGES_ON_A_PAGE = 50;

describe('the console by keyboard', function () {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  before(async () => {
    harness = await openConsole();
  });
  after(() => harness?.close());
  beforeEach(async () => {
    window = await harness.open();
    ({ page } = window);
  });
  afterEach(function () {
    return closeUnblemished(window, harness.stack, this.currentTest);
  });

  const press = (...keys: readonly string[]) =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const dialog = () => page.getByRole('dialog');
  const section = (title: string) =>
    page.locator('section', { has: page.getByRole('heading', { name: title, exact: true }) });
  const noDialog = () => until(async () => (await dialog().count()) === 0);

  /** Presses Tab until the control is reached. */
  async function tabTo(control: Locator): Promise<void> {
    // A radio button is drawn by its label.
    await control.waitFor({ state: 'attached' });
    for (let n = 0; n < TABS_MAX; n += 1) {
      if (await isFocused(control)) return;
      await press('Tab');
    }
    assert.fail(`Tab does not reach ${String(control)}`);
  }

  async function choose(control: Locator, key = 'Enter'): Promise<void> {
    await tabTo(control);
    await press(key);
  }

  it('skips the navigation, and opens a charge and gives the focus back', async () => {
    const account = await harness.newAccount(5);
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.25 });
    await window.enter(account, '/usage');
    await page.getByRole('button', { name: /^Charge for search/ }).waitFor();
    await press('Tab', 'Enter');
    // The browser follows a link within the page after the key.
    await until(() => isFocused(page.locator('#content')));
    await press('Tab');
    await until(() => isFocused(page.getByRole('link', { name: 'Export CSV' })));
    const row = page.getByRole('button', { name: /^Charge for search/ });
    await choose(row);
    await openedDialog(page, 'Charge');
    await dialog()
      .getByText(/^Top-up, /)
      .waitFor();
    await keepsFocus();
    await choose(dialog().getByRole('button', { name: 'Verify' }));
    await dialog().getByText('The signature is valid').waitFor();
    await press('Escape');
    await noDialog();
    await until(() => isFocused(row));
  });

  it('creates, rolls and revokes a key', async () => {
    await window.enter(await harness.newAccount(5), '/keys');
    const create = page.getByRole('button', { name: 'Create key' });
    await choose(create);
    await openedDialog(page, 'Create key');
    await until(() => isFocused(dialog().getByLabel('Name')));
    await page.keyboard.type('laptop');
    await keepsFocus();
    await tabTo(dialog().getByLabel('Name'));
    await press('Enter');
    await openedDialog(page, 'Your new key');
    await page.getByText('It will not be shown again').waitFor();
    await keepsFocus();
    // The key would be lost: nothing but the button closes the dialog.
    await press('Escape');
    await page.mouse.click(2, 2);
    await choose(dialog().getByRole('button', { name: 'Done' }));
    await noDialog();
    await until(() => isFocused(create));
    const actions = page.getByRole('button', { name: /^Actions for laptop/ });
    await choose(actions);
    await takesFocus(page.getByRole('menu'));
    await press('Escape');
    await until(() => isFocused(actions));
    const revoke = async () => {
      await press('Enter');
      await takesFocus(page.getByRole('menu'));
      await until(async () => {
        await press('ArrowDown');
        return isFocused(page.getByRole('menuitem', { name: 'Revoke key' }));
      });
      await press('Enter');
      await openedDialog(page, 'Revoke key');
    };
    await revoke();
    await press('Escape');
    await noDialog();
    await until(() => isFocused(actions));
    await revoke();
    await choose(dialog().getByRole('button', { name: 'Revoke key' }));
    await page.getByText('Revoked', { exact: true }).waitFor();
    await until(() => isFocused(actions));
  });

  it('keeps the focus at a button that waits for its answer', async () => {
    const account = await harness.newAccount(5);
    for (let n = 0; n <= CHARGES_ON_A_PAGE * 2; n += 1) {
      await charge(harness.stack.api, account, { tool: 'search', amount: 0.01 });
    }
    await window.enter(account, '/usage');
    const more = page.getByRole('button', { name: 'Load more' });
    const rows = page.getByRole('button', { name: /^Charge for search/ });
    await more.focus();
    await press('Enter');
    await until(async () => (await rows.count()) === CHARGES_ON_A_PAGE * 2);
    await until(() => isFocused(more));
    await press('Enter');
    await until(async () => (await rows.count()) > CHARGES_ON_A_PAGE * 2);
    await until(() => isFocused(section('Charges')));

    await window.go('/developer/webhooks');
    const save = page.getByRole('button', { name: 'Save' });
    await choose(save);
    await page.getByText('Saved.').waitFor();
    await until(() => isFocused(save));
  });

  it('moves the focus to what is around a button that is gone', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    const terms = { ceiling: 100, termsVersion: CONSENT_TERMS.version };
    await page.evaluate(`fetch('/v1/consent', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '${JSON.stringify(terms)}',
    })`);
    await window.go('/balance');
    const card = section('Saved card');
    await choose(page.getByRole('button', { name: 'Change limit' }));
    await until(() => isFocused(card));
    await press('Tab');
    await until(() => isFocused(page.getByLabel('Monthly limit in dollars')));
    await choose(card.getByRole('button', { name: 'Cancel' }));
    await page.getByRole('button', { name: 'Change limit' }).waitFor();
    await until(() => isFocused(card));

    const budget = await makeBudget(harness.stack.api, account.consumerKey, { maxPerCall: 0.5 });
    const { key } = await makeKey(harness.stack.api, account.consumerKey, budget.id);
    await ask(harness.stack.api, account, key, 0.75);
    await window.go('/approvals');
    await choose(page.getByRole('button', { name: 'Deny' }));
    await page.getByText('Denied', { exact: true }).waitFor();
    await until(() => isFocused(page.locator('#content')));
  });

  it('copies the key of a budget, shows what it spent, and decides about a call', async () => {
    const account = await harness.newAccount(5);
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await window.enter(account, '/budgets');
    await choose(page.getByRole('button', { name: 'Create budget' }).first());
    await openedDialog(page, 'Create budget');
    await until(() => isFocused(dialog().getByLabel('Name')));
    await page.keyboard.type('Agent');
    await tabTo(dialog().getByLabel('Limit for one call'));
    await page.keyboard.type('0.5');
    await press('Enter');
    await openedDialog(page, 'Your new key');
    await choose(dialog().getByRole('button', { name: 'Copy key' }));
    const consumerKey = await until(() => page.evaluate<string>('navigator.clipboard.readText()'));
    await choose(dialog().getByRole('button', { name: 'Done' }));
    await noDialog();
    await charge(harness.stack.api, { ...account, consumerKey }, { tool: 'search', amount: 0.25 });
    await ask(harness.stack.api, account, consumerKey, 0.75);
    await page.reload();
    await page.getByText('$0.25 in 1 charge').waitFor();
    await tabTo(page.getByRole('radio', { name: 'Tool' }));
    await press('ArrowRight');
    await page.getByRole('region', { name: 'Spending' }).getByText('Agent').waitFor();
    await choose(page.getByRole('link', { name: /^Approvals/ }));
    await choose(page.getByRole('button', { name: 'Allow once' }));
    await page.getByText('Allowed once').waitFor();
  });

  it('registers a tool, refunds a charge for it, and switches views by arrow keys', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account, '/developer/tools');
    await choose(page.getByRole('button', { name: 'Register tool' }).first());
    await openedDialog(page, 'Register tool');
    await until(() => isFocused(dialog().getByLabel('Name')));
    await page.keyboard.type('search');
    await tabTo(dialog().getByLabel('Price per call'));
    await page.keyboard.type('0.25');
    await press('Enter');
    await page.getByRole('link', { name: 'search' }).waitFor();
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.25 });
    await window.go('/developer/charges');
    await choose(page.getByRole('button', { name: /^Charge for search/ }));
    await openedDialog(page, 'Charge');
    await choose(dialog().getByRole('button', { name: 'Refund' }));
    await page.getByText('Refunded $0.25.').waitFor();
    await window.go('/statements');
    await tabTo(page.getByRole('radio', { name: 'Balance' }));
    await press('ArrowRight');
    await page.getByText('Earned in total').waitFor();
  });

  it('tops up on the payment page and creates a budget', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account);
    await choose(page.getByRole('button', { name: 'Pay $25.00' }));
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await choose(page.getByRole('button').first());
    await page.getByText('$25.00 was added to your balance.').waitFor();
    await choose(page.getByRole('link', { name: 'Budgets' }));
    await choose(page.getByRole('button', { name: 'Create budget' }).first());
    await openedDialog(page, 'Create budget');
    await tabTo(dialog().getByLabel('Name'));
    await page.keyboard.type('Agent');
    await press('Enter');
    await openedDialog(page, 'Your new key');
    await page.getByText('It will not be shown again').waitFor();
    await choose(dialog().getByRole('button', { name: 'Done' }));
    await page.getByRole('heading', { name: 'Agent' }).waitFor();
    const { body } = await call(harness.stack.api, 'GET', '/v1/budgets', {
      key: account.consumerKey,
    });
    assert.equal((body as { budgets: readonly { name: string }[] }).budgets[0]?.name, 'Agent');
  });

  it('reaches only what is visible in a narrow window or at 200% zoom', async () => {
    await page.setViewportSize({ width: 640, height: 480 });
    await window.enter(await harness.newAccount(5));
    await page.getByText('Spending, last 30 days').waitFor();
    const tabThrough = async (last: Locator) => {
      for (let n = 0; n < TABS_MAX && !(await isFocused(last)); n += 1) {
        await press('Tab');
        assert.equal(await page.evaluate(UNSEEN), '');
      }
      assert.ok(await isFocused(last), String(last));
    };
    await tabThrough(page.getByRole('region', { name: 'Top-ups' }));
    await choose(page.getByRole('button', { name: 'Open navigation' }));
    const entry = page.getByRole('link', { name: 'Balance' });
    await tabThrough(entry);
    await tabThrough(page.getByRole('link', { name: 'Developer Settings' }));
    assert.equal(await page.getByRole('button', { name: 'Pay $25.00' }).count(), 0);
    // This page is already shown.
    await choose(entry);
    await page.getByRole('button', { name: 'Open navigation' }).waitFor();
    await page.getByRole('button', { name: 'Pay $25.00' }).waitFor();
    // The navigation covers the content that the link skips to.
    await choose(page.getByRole('button', { name: 'Open navigation' }));
    await page.getByRole('button', { name: 'Close navigation' }).waitFor();
    await press('Shift+Tab');
    await choose(page.getByRole('link', { name: 'Skip to content' }));
    await page.getByRole('button', { name: 'Open navigation' }).waitFor();
    await until(() => isFocused(page.locator('#content')));
  });

  /** Tab goes around within the dialog. */
  async function keepsFocus(): Promise<void> {
    for (let n = 0; n < 12; n += 1) {
      await press('Tab');
      assert.equal(await dialog().locator(':focus').count(), 1, 'the focus left the dialog');
    }
  }
});

const isFocused = (of: Locator) => of.evaluate((element) => element.matches(':focus'));

/** The focused control, if it is outside the window or under the header. */
const UNSEEN = `(() => {
  const nameOf = ${NAME_OF};
  const element = document.activeElement;
  if (element === document.body) return '';
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const header = document.querySelector('header').getBoundingClientRect().bottom;
  const isUnder = element.closest('main') !== null && bottom <= header;
  const isOutside = right <= 0 || left >= innerWidth || bottom <= 0 || top >= innerHeight;
  return isUnder || isOutside ? nameOf(element) : '';
})()`;
