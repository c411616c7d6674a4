/**
 * The console without a mouse: dialogs keep the focus and give it back, and the main tasks can be done with keys alone.
 * pictures.slow.spec.ts presses Tab on every page.
 */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { ask } from '../support/approval-requests.ts';
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

describe('the console by keyboard', function () {
  this.timeout(300_000);
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
    const actions = page.getByRole('button', { name: /^Actions for laptop/ });
    await choose(actions);
    await takesFocus(page.getByRole('menu'));
    await press('Escape');
    await until(() => isFocused(actions));
    await press('Enter');
    await takesFocus(page.getByRole('menu'));
    await until(async () => {
      await press('ArrowDown');
      return isFocused(page.getByRole('menuitem', { name: 'Revoke key' }));
    });
    await press('Enter');
    await openedDialog(page, 'Revoke key');
    await choose(dialog().getByRole('button', { name: 'Revoke key' }));
    await page.getByText('Revoked', { exact: true }).waitFor();
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
