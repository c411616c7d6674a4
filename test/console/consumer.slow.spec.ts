/** What consumers do in the console beyond the first visit, in a real browser against a real stack. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { uuidOf } from '../../src/domain/ids.ts';
import { closeBudget, makeBudget, makeKey, spend } from '../support/budget-requests.ts';
import { place } from '../support/hold-requests.ts';
import { call, charge } from '../support/http.ts';
import { openCheckout } from '../support/payments.ts';
import {
  closeUnblemished,
  copiedBy,
  openConsole,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { until } from '../support/stack.ts';

const TOP_UPS_ON_A_PAGE = 20;
/** The header stays at the top of the window. */
const HEADER_PX = 56;
/** One more than a page of the API. */
const MANY = 101;
/** Where the noon of a UTC day is in the next day. */
const AHEAD_OF_UTC = 'Pacific/Auckland';
const APPROVAL = 'A developer needs your approval before its first charge';

describe('the console for consumers', function () {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  let sql: Client;

  before(async () => {
    harness = await openConsole();
    sql = new Client({ connectionString: harness.stack.database.url });
    await sql.connect();
  });
  after(async () => {
    await sql?.end();
    await harness?.close();
  });
  const open = async (options?: Parameters<ConsoleHarness['open']>[0]) => {
    window = await harness.open(options);
    ({ page } = window);
  };
  /** The parts of the code that is shown with a new key. */
  const tabsOfNewKey = async () => {
    await page.getByRole('button', { name: 'Create key', exact: true }).click();
    const create = await openedDialog(page, 'Create key');
    await create.getByRole('button', { name: 'Create key' }).click();
    const made = await openedDialog(page, 'Your new key');
    return made.getByRole('tab').allInnerTexts();
  };
  afterEach(function () {
    return closeUnblemished(window, harness.stack, this.currentTest);
  });

  it('shows every spend key of a budget, and everything that it was spent on', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { id } = await makeBudget(api, account.consumerKey);
    const first = await makeKey(api, account.consumerKey, id, { name: 'the first key' });
    for (let n = 1; n < MANY; n += 1) await makeKey(api, account.consumerKey, id, { name: `${n}` });
    for (let n = 1; n <= MANY; n += 1) {
      await spend(api, account, first.key, 0.01, { tool: `tool-${String(n).padStart(3, '0')}` });
    }
    await window.enter(account, `/budgets?budget=${id}`);
    const keys = page.locator('section', {
      has: page.getByRole('heading', { name: 'Spend keys' }),
    });
    await keys.getByRole('button', { name: 'Load more' }).click();
    await keys.getByText('the first key').waitFor();
    await page.getByText(`$1.01 in ${MANY} charges`).waitFor();
    const spending = page.locator('section', {
      has: page.getByRole('heading', { name: 'Spending' }),
    });
    await spending.getByRole('button', { name: 'Load more' }).click();
    await spending.getByText(`tool-${MANY}`).waitFor();
  });

  it('shows what the keys of a budget have spent or hold, and that they were used', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { id } = await makeBudget(api, account.consumerKey, { limit: 5 });
    const { key } = await makeKey(api, account.consumerKey, id, { name: 'the agent' });
    await spend(api, account, key, 1);
    await place(api, { ...account, consumerKey: key }, { amount: 2 });
    await window.enter(account, `/budgets?budget=${id}`);
    await page.getByText('$3.00 spent or held of $5.00, $2.00 left').waitFor();
    await page.getByText('$1.00 in 1 charge, net of refunds').waitFor();
    await page.getByText('the agent').waitFor();
    assert.equal(await page.getByText(/Never|No use recorded/).count(), 0);
  });

  it('says by which limit little is left of a budget, and of a closed one nothing', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { consumerKey: key } = account;
    const above = await makeBudget(api, key, { window: { per: 'day', limit: 2 }, limit: 90 });
    const below = await makeBudget(api, key, { limit: 100, parentId: above.id, name: 'below' });
    const { key: spendKey } = await makeKey(api, key, below.id);
    await spend(api, account, spendKey, 1.5);
    await window.enter(account, `/budgets?budget=${below.id}`);
    await page
      .getByText('$1.50 spent or held of $100.00, $0.50 left by the limit of a budget above it')
      .waitFor();
    await window.go(`/budgets?budget=${above.id}`);
    await page.getByText('$1.50 spent or held of $90.00, $0.50 left in this day').waitFor();

    const closed = await makeBudget(api, key, { limit: 130, name: 'closed' });
    await closeBudget(api, key, closed.id);
    await window.go(`/budgets?budget=${closed.id}`);
    await page.getByText('$0.00 spent or held of $130.00', { exact: true }).waitFor();
    await page.getByText('The budget is closed, so it gets no keys.').waitFor();
    assert.equal(await page.getByText('Create a key').count(), 0);
    const row = page.getByRole('region', { name: 'Budgets' }).getByRole('row', { name: 'closed' });
    assert.match(await row.innerText(), /\$0\.00\s+–$/);
  });

  it('shows each rule of a budget, and says that its leases outlive a revoked key', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const rules = {
      allowLeases: true,
      tools: ['search', 'fetch'],
      developers: [account.developerId],
      mayDelegate: true,
    };
    const { id } = await makeBudget(api, account.consumerKey, rules);
    await makeKey(api, account.consumerKey, id, { name: 'the agent' });
    await window.enter(account, `/budgets?budget=${id}`);
    await page.getByText('Developers may take leases with its keys').waitFor();
    await page.getByText('Only these tools: search, fetch').waitFor();
    await page.getByText(`Only these developers: ${account.developerId}`).waitFor();
    await page.getByText('Its keys may create budgets and keys below it').waitFor();

    const lease = 'A lease that a developer has taken can still be spent until it ends';
    await page.getByRole('button', { name: 'Actions for the agent' }).click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    const revoke = await openedDialog(page, 'Revoke key');
    await revoke.getByText(lease).waitFor();
    await revoke.getByRole('button', { name: 'Cancel' }).click();
    await revoke.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    const close = await openedDialog(page, 'Close budget');
    await close.getByText(lease).waitFor();
    await close.getByLabel('(not leases)').waitFor();
  });

  it('lets the owner require an approval of each developer, and end that', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    await window.enter(account, '/budgets');
    await page.getByRole('button', { name: 'Create budget' }).click();
    const create = await openedDialog(page, 'Create budget');
    await create.getByLabel('Name').fill('guarded');
    await create.getByLabel(APPROVAL).check();
    await create.getByRole('button', { name: 'Create budget and key' }).click();
    const made = await openedDialog(page, 'Your new key');
    const key = await copiedBy(page, 'Copy key');
    await made.getByRole('button', { name: 'Done' }).click();
    await page.getByText(APPROVAL).waitFor();
    const { body } = await spend(api, account, key, 1);
    assert.equal((body as { error?: { code: string } }).error?.code, 'approval_required');

    await page.getByRole('button', { name: 'Edit limits' }).click();
    const edit = await openedDialog(page, 'Edit limits');
    await edit.getByLabel(APPROVAL).uncheck();
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await until(async () => (await spend(api, account, key, 1)).status === 201);
  });

  it('leads to no MCP server with a consumer key, only with a spend key', async () => {
    await open();
    const account = await harness.newAccount(1);
    await window.enter(account, '/keys');
    assert.deepEqual(await tabsOfNewKey(), ['curl']);
    const { id } = await makeBudget(harness.stack.api, account.consumerKey);
    await window.go(`/budgets?budget=${id}`);
    assert.deepEqual(await tabsOfNewKey(), ['Claude Code', 'Cursor', 'VS Code', 'curl']);
  });

  it('shows what the keys of a budget were refused', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { id } = await makeBudget(api, account.consumerKey, { maxPerCall: 1 });
    const { key } = await makeKey(api, account.consumerKey, id, { name: 'the agent' });
    await window.enter(account, `/budgets?budget=${id}`);
    const refused = page.locator('section', {
      has: page.getByRole('heading', { name: 'Refused calls' }),
    });
    await refused.getByText('No calls with spend keys of this budget were refused').waitFor();
    await spend(api, account, key, 2);
    await spend(api, account, key, 3);
    const row = refused.getByRole('row', { name: 'spend_limit_reached the agent 2' });
    await row.waitFor();
    await refused.getByText('7 days').click();
    await row.waitFor();
    assert.equal(
      await row.getByRole('link').getAttribute('href'),
      '/docs/errors/spend_limit_reached',
    );
  });

  it('dates a statement by UTC days, as its months are, wherever it is read', async () => {
    await open({ timezoneId: AHEAD_OF_UTC });
    const account = await harness.newAccount(3);
    await charge(harness.stack.api, account, { tool: 'search', amount: 1 });
    const month = new Date().toISOString().slice(0, 7);
    const { body } = await call(harness.stack.api, 'GET', `/v1/statements/${month}`, {
      key: account.developerKey,
    });
    const [earned] = (body as { earned: readonly { day: string }[] }).earned;
    const day = new Date(earned?.day ?? '').toLocaleDateString('en-US', {
      month: 'short',
      day: 'numeric',
      year: 'numeric',
      timeZone: 'UTC',
    });
    await window.enter(account, '/statements?as=developer');
    await page.getByText(`search, ${day}, 1 charge`).waitFor();
    await page.getByText('Balance', { exact: true }).last().click();
    await page
      .getByText(`Adjustment, ${day}`)
      .or(page.getByText(`Top-up, ${day}`))
      .waitFor();
  });

  it('says that the charge of a link does not exist', async () => {
    await open();
    const account = await harness.newAccount(1);
    await window.enter(account, `/usage?charge=chg_${'0'.repeat(32)}`);
    await page.getByRole('alert').getByText('There is no such charge.').waitFor();
    await window.go(`/developer/charges?charge=chg_${'0'.repeat(32)}`);
    await page.getByRole('alert').getByText('There is no such charge.').waitFor();
  });

  it('keeps the amount for somebody who comes back from the payment page', async () => {
    await open();
    await window.enter(await harness.newAccount(0));
    const amount = page.getByLabel('Amount in dollars');
    await amount.fill('60.5');
    await page.getByRole('button', { name: 'Pay $60.50' }).click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.goBack();
    await page.getByRole('button', { name: 'Pay $60.50' }).waitFor();
    assert.equal(await amount.inputValue(), '60.5');
    for (const name of ['Usage', 'Balance']) {
      await page.getByRole('navigation').getByRole('link', { name }).click();
    }
    await page.getByRole('button', { name: 'Pay $25.00' }).waitFor();
  });

  it('says that the days of the spending are UTC days', async () => {
    await open({ timezoneId: AHEAD_OF_UTC });
    await window.enter(await harness.newAccount(0));
    await page.getByRole('heading', { name: 'Spending, last 30 days (UTC)' }).waitFor();
  });

  it('knows that money was added before the newest top-ups', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(5);
    const opened = await openCheckout(api, account, 5);
    // More of the same, without a workflow and a payment page for each.
    const copies = await sql.query(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, opened_at)
       select uuidv7(), ledger, consumer_id, account_id, method, amount_micros, opened_at
       from farebox.top_ups, generate_series(1, $2) where id = $1`,
      [uuidOf('topUp', opened.topUpId), TOP_UPS_ON_A_PAGE],
    );
    assert.equal(copies.rowCount, TOP_UPS_ON_A_PAGE);
    await window.enter(account);
    await page.getByText('2 of 3 done').waitFor();
  });

  it('leads to the budget that was chosen in a long list', async () => {
    const viewport = { width: 390, height: 844 };
    await open({ viewport });
    const account = await harness.newAccount(20);
    for (let n = 1; n <= 20; n += 1) {
      await makeBudget(harness.stack.api, account.consumerKey, { name: `agent ${n}` });
    }
    await window.enter(account, '/budgets');
    for (const name of ['agent 19', 'agent 3']) {
      await page.getByRole('link', { name, exact: true }).click();
      const heading = page.getByRole('heading', { name, exact: true });
      await heading.waitFor();
      await until(async () => {
        const { y = -1 } = (await heading.boundingBox()) ?? {};
        return y > HEADER_PX && y < viewport.height - HEADER_PX;
      });
      // The Tab key continues from there.
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate('document.activeElement.innerText'), 'Add a budget below');
    }
  });
});
