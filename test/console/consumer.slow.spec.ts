/** What consumers do in the console beyond the first visit, in a real browser against a real stack. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Locator, Page } from 'playwright-core';
import { uuidOf } from '../../src/domain/ids.ts';
import { closeBudget, makeBudget, makeKey, showBudget, spend } from '../support/budget-requests.ts';
import { askCapture, place } from '../support/hold-requests.ts';
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
const ALLOW = 'Allow developer again';
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
  /** The clock of the page must be installed. */
  const untilAfterAWhile = (part: Locator) =>
    until(async () => {
      await page.clock.fastForward('00:30');
      return part.isVisible();
    });
  afterEach(function () {
    return closeUnblemished(window, harness.stack, this.currentTest);
  });

  it('says how much is on hold, beside the balance and under the statement of the month', async () => {
    await open();
    const account = await harness.newAccount(20);
    await place(harness.stack.api, account, { amount: 4 });
    await window.enter(account, '/balance');
    await page
      .getByText('Another $4.00 is on hold for running calls or disputed payments.')
      .waitFor();
    await page.getByRole('link', { name: 'Statements' }).click();
    await page.getByText('The closing balance includes $4.00 on hold').waitFor();
  });

  it('shows every spend key of a budget, and everything that it was spent on, also what is spent meanwhile', async () => {
    await open();
    await page.clock.install();
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
    await spend(api, account, first.key, 0.01, { tool: 'tool-001' });
    await untilAfterAWhile(spending.getByText(`$1.02 in ${MANY + 1} charges`));
  });

  it('shows in the whole list of budgets what is spent meanwhile', async () => {
    await open();
    await page.clock.install();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const oldest = await makeBudget(api, account.consumerKey, { name: 'the oldest', limit: 10 });
    const { key } = await makeKey(api, account.consumerKey, oldest.id);
    for (let n = 1; n < MANY; n += 1) await makeBudget(api, account.consumerKey);
    await window.enter(account, '/budgets');
    await page.getByRole('button', { name: 'Load more' }).click();
    const row = page.getByRole('row', { name: 'the oldest' });
    await row.getByText('$10.00').waitFor();
    await spend(api, account, key, 7);
    await untilAfterAWhile(row.getByText('$3.00'));
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

  it('releases what the consumer keys have reserved when one is revoked, and again later', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const hold = await place(api, account, { amount: 2 });
    const { request } = window.context;
    await window.enter(account, '/keys');
    const body = { kind: 'consumer', name: 'other' };
    const made = await request.post(`${api.url}/v1/keys`, {
      headers: { origin: api.url },
      data: body,
      failOnStatusCode: true,
    });
    const { key: consumerKey } = await made.json();
    await page.reload();
    const actions = page.getByRole('button', { name: /^Actions for key/ });
    await actions.click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    const revoke = await openedDialog(page, 'Revoke key');
    await revoke.getByLabel('Release what open holds by all your consumer keys').check();
    assert.equal(await revoke.getByText('A lease').count(), 0);
    await revoke.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('Revoked', { exact: true }).waitFor();
    assert.equal((await askCapture(api, account, hold.id)).status, 409);

    const later = await place(api, { ...account, consumerKey }, { amount: 2 });
    await actions.click();
    await page.getByRole('menuitem', { name: 'Release open holds' }).click();
    const release = await openedDialog(page, 'Release open holds');
    await release.getByText('of all your consumer keys').waitFor();
    await release.getByRole('button', { name: 'Release open holds' }).click();
    await release.waitFor({ state: 'detached' });
    assert.equal((await askCapture(api, account, later.id)).status, 409);
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

  it('says that the keys of a closed budget have ended, and releases later what their holds reserve', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { consumerKey: key } = account;
    const { id } = await makeBudget(api, key, { limit: 10 });
    const names = ['revoked', 'closed'] as const;
    const [revoked, closed] = await Promise.all(
      names.map((name) => makeKey(api, key, id, { name: `to be ${name}` })),
    );
    await place(api, { ...account, consumerKey: revoked?.key ?? '' }, { amount: 2 });
    await place(api, { ...account, consumerKey: closed?.key ?? '' }, { amount: 3 });
    await call(api, 'POST', `/v1/keys/${revoked?.id}/revoke`, { key });
    await window.enter(account, `/budgets?budget=${id}`);
    const release = async () => {
      const dialog = await openedDialog(page, 'Release open holds');
      await dialog.getByRole('button', { name: 'Release open holds' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await page.getByText('$5.00 spent or held').waitFor();
    await page.getByRole('button', { name: 'Actions for to be revoked' }).click();
    await page.getByRole('menuitem', { name: 'Release open holds' }).click();
    await release();
    await page.getByText('$3.00 spent or held').waitFor();

    await closeBudget(api, key, id);
    await page.reload();
    const row = page.getByRole('row', { name: 'to be closed' });
    await row.getByText('Budget closed').waitFor();
    await row.getByRole('button', { name: 'Actions for' }).click();
    assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), ['Release open holds']);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Release open holds' }).click();
    await release();
    await page.getByText('$0.00 spent or held').waitFor();
  });

  it('blocks a developer by closing its budget, allows it again, and offers that for no other budget', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(1_000);
    const status = async (amount: number) => (await charge(api, account, { amount })).status;
    await window.enter(account, '/keys');
    await page.getByLabel('Daily limit for each developer (UTC)').fill('2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. It applies within a second.').waitFor();
    await until(async () => (await status(2.01)) === 402);
    await window.go('/budgets');
    await page.getByRole('link', { name: `Account keys: ${account.developerId}` }).click();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    const close = await openedDialog(page, 'Close budget');
    await close.getByText('until you allow it again on this page').waitFor();
    assert.equal(await close.getByText('cannot be undone').count(), 0);
    await close.getByRole('button', { name: 'Close budget' }).click();
    await page.getByText('The budget was closed.').waitFor();
    await until(async () => (await status(2.01)) === 403);
    await page.getByRole('button', { name: ALLOW }).click();
    const allow = await openedDialog(page, ALLOW);
    await allow.getByRole('button', { name: 'Cancel' }).click();
    await allow.waitFor({ state: 'detached' });
    assert.equal(await status(2.01), 403);
    await page.getByRole('button', { name: ALLOW }).click();
    await (await openedDialog(page, ALLOW)).getByRole('button', { name: ALLOW }).click();
    await page.getByText('The developer is no longer blocked.').waitFor();
    await page.getByRole('button', { name: 'Edit limits' }).waitFor();
    await until(async () => (await status(0.5)) === 201);

    const developers = [account.developerId];
    const { id } = await makeBudget(api, account.consumerKey, { developers });
    await closeBudget(api, account.consumerKey, id);
    await window.go(`/budgets?budget=${id}`);
    await page.getByRole('button', { name: 'Release open holds' }).waitFor();
    assert.equal(await page.getByRole('button', { name: ALLOW }).count(), 0);
    await window.go('/audit-log');
    await page.getByText('Budget reopened').waitFor();
  });

  it('shows the keys of an expired budget as ended, and lets its owner prolong it', async () => {
    await open({ timezoneId: AHEAD_OF_UTC });
    const { api } = harness.stack;
    const account = await harness.newAccount(20);
    const { id } = await makeBudget(api, account.consumerKey);
    const { key } = await makeKey(api, account.consumerKey, id, { name: 'the agent' });
    await sql.query('update farebox.budget_details set expires_at = now() where id = $1', [
      uuidOf('budget', id),
    ]);
    await window.enter(account, `/budgets?budget=${id}`);
    const row = page.getByRole('row', { name: 'the agent' });
    await row.getByText('Budget expired').waitFor();
    await row.getByRole('button', { name: 'Actions for' }).click();
    assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), ['Revoke key']);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Edit limits' }).click();
    const edit = await openedDialog(page, 'Edit limits');
    await edit.getByLabel('Works until').fill('2100-01-01T12:30');
    await edit.getByRole('button', { name: 'Save' }).click();
    await row.getByText('Active').waitFor();
    const { expiresAt } = await showBudget(api, account.consumerKey, id);
    assert.equal(expiresAt, '2099-12-31T23:30:00.000Z');
    await until(async () => (await spend(api, account, key, 1)).status === 201);
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
    await page.getByText('1 of 3 done').waitFor();
  });

  it('ticks off no first step for a consumer key, which is not to be handed out, nor for a revoked key', async () => {
    await open();
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    await window.enter(account);
    await page.getByText('0 of 3 done').waitFor();
    await window.go('/developer');
    await page.getByText('1 of 3 done').waitFor();
    const { request } = window.context;
    const { keys } = await (await request.get(`${api.url}/v1/keys`)).json();
    for (const { id } of keys) {
      const headers = { origin: api.url };
      await request.post(`${api.url}/v1/keys/${id}/revoke`, { headers, failOnStatusCode: true });
    }
    await page.reload();
    await page.getByText('0 of 3 done').waitFor();
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
