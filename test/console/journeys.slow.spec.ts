/** What users do in the console, from the first visit on, in a real browser against a real stack. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import type { TopUpReply } from '../../src/schemas/top-ups.ts';
import { call, charge } from '../support/http.ts';
import {
  copiedBy,
  mailedLink,
  openForEach,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { farebox, until } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('the console', () => {
  // A stack, a browser and a build, on a busy machine.
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    {
      window: {
        permissions: ['clipboard-read', 'clipboard-write'],
        // As most users have it.
        reducedMotion: 'no-preference',
      },
    },
  );

  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  const button = (name: string | RegExp) => page.getByRole('button', { name }).first();
  const seeMoney = (text: string) => page.getByText(text, { exact: true }).first().waitFor();

  async function signUp(email: string): Promise<void> {
    await window.go('/sign-up');
    await page.getByLabel('Email').fill(email);
    await button('Send link').click();
    await heading('Check your email').waitFor();
    await page.goto(await mailedLink(harness, email));
    await page.getByLabel('New password', { exact: true }).fill(PASSWORD);
    await button('Save password').click();
    await heading('Password set').waitFor();
    await button('Sign in').click();
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await button('Sign in').click();
    await heading('Balance').waitFor();
  }

  async function createKey(name: string, create = 'Create key'): Promise<string> {
    await button(create).click();
    const form = await openedDialog(page, create);
    await form.getByLabel('Name').fill(name);
    await form.getByRole('button', { name: create }).click();
    const key = await copyNewKey();
    await page.getByText(name, { exact: true }).waitFor();
    return key;
  }

  async function copyNewKey(): Promise<string> {
    await page.getByText('It will not be shown again').waitFor();
    const key = await copiedBy(page, 'Copy key');
    await button('Done').click();
    return key;
  }

  /** On its page; returns the key that is made with it. */
  async function createBudget(
    name: string,
    limits: Readonly<Record<string, string>>,
    opener = 'Create budget',
  ): Promise<string> {
    await button(opener).click();
    const form = await openedDialog(page, opener);
    await form.getByLabel('Name').fill(name);
    for (const [label, dollars] of Object.entries(limits)) {
      await form.getByLabel(label, { exact: true }).fill(dollars);
    }
    await form.getByRole('button', { name: 'Create budget and key' }).click();
    const key = await copyNewKey();
    await heading(name).waitFor();
    return key;
  }

  it('leads a user from sign-up to a first charge that appears automatically', async () => {
    await signUp('new@example.com');
    await page.getByText('0 of 3 done').waitFor();

    await button('Pay $25.00').click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.click('button');
    await page.waitForURL('**/console/balance**');
    await page.getByText('$25.00 was added to your balance.').waitFor();

    await page.getByRole('link', { name: 'Create a spend key' }).click();
    const spendKey = await createBudget('Claude Code', { 'Total limit': '5' });
    assert.match(spendKey, /^fare_ck_live_/);
    await window.go('/developer/settings');
    const developerKey = await createKey('production');
    assert.match(developerKey, /^fare_sk_live_/);

    await window.go('/balance');
    await page.getByText('2 of 3 done').waitFor();
    const account = { consumerKey: spendKey, developerKey } as Parameters<typeof charge>[1];
    assert.equal((await charge(harness.stack.api, account, { amount: 5.000001 })).status, 402);
    assert.equal((await charge(harness.stack.api, account, { amount: 0.000125 })).status, 201);
    await seeMoney('$24.999875');
    await page.getByText('3 of 3 done').waitFor();
  });

  it('creates test keys, which charge play money and leave the live account as it is', async () => {
    const account = await harness.newAccount(3);
    await window.enter(account);
    await window.go('/keys');
    const consumerKey = await createKey('CI', 'Create test key');
    assert.match(consumerKey, /^fare_ck_test_/);
    await page.getByText('Test', { exact: true }).waitFor();
    await page.getByText(`fare_ck_test_…${consumerKey.slice(-4)}`).waitFor();
    await window.go('/developer/settings');
    const developerKey = await createKey('staging', 'Create test key');
    assert.match(developerKey, /^fare_sk_test_/);
    const keys = { ...account, consumerKey, developerKey };
    const { api } = harness.stack;
    await call(api, 'POST', '/v1/top-up', { key: consumerKey, body: { amount: 5 } });
    assert.equal((await charge(api, keys, { amount: 2 })).status, 201);
    await window.go('/balance');
    await seeMoney('$3.00');
  });

  it('charges the saved card within the limit that its owner agreed to, and by itself when asked', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account);
    await page.getByText('Set up the saved card first').waitFor();
    await button('Set up').click();
    await page.getByLabel('Monthly limit in dollars').fill('40');
    assert.equal(await button('Allow payments').isDisabled(), true);
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
    await page.getByText('$0.00 of $40.00 used this month').waitFor();

    await page.getByText('Test card', { exact: true }).click();
    await button('Pay $25.00').click();
    await page.getByText('$25.00 was added to your balance.').waitFor();
    await page.getByText('$25.00 of $40.00 used this month').waitFor();
    await page.getByText('Visa •••• 4242').first().waitFor();
    await page.getByText('$25', { exact: true }).click();
    await button('Pay $25.00').click();
    await page.getByText('This would exceed the monthly ceiling').waitFor();

    await page.getByLabel('When the balance falls below').fill('30');
    await page.getByLabel('Add', { exact: true }).fill('10');
    await page.getByLabel('At most per month').fill('20');
    await button('Turn on').click();
    await page.getByText('When a charge leaves less than $30.00, we add $10.00').waitFor();
    await charge(harness.stack.api, account, { amount: 1 });
    await seeMoney('$34.00');
    await page.getByText('Automatic, saved card').waitFor();
    await button('Turn off').click();
    await button('Turn on').waitFor();
    await button('Withdraw consent').click();
    await page.getByText('Set up the saved card first').waitFor();
  });

  it('saves cards, charges the chosen one, and leads to the bank where it asks', async () => {
    await window.enter(await harness.newAccount(0));
    await button('Set up').click();
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
    for (const number of ['4242 4242 4242 4242', '4000 0027 6000 3184']) {
      await button('Save a card').click();
      await page.waitForURL(`${harness.stack.simulator.url}/**`);
      await page.getByLabel('Card number').fill(number);
      await button('Save card').click();
      await page.waitForURL('**/console/balance**');
      await page.getByRole('group', { name: `Visa •••• ${number.slice(-4)}` }).waitFor();
    }

    await page.getByText('Visa •••• 3184').first().click();
    await button('Pay $25.00').click();
    await page.waitForURL('**/top-up/confirm**');
    await page.getByText('a top-up of $25.00').waitFor();
    await button('Confirm at your bank').click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await button('Confirm payment').click();
    await page.getByText('The top-up of $25.00 was paid.').waitFor();

    await window.go('/balance');
    await seeMoney('$25.00');
    const careful = page.getByRole('group', { name: 'Visa •••• 3184' });
    await careful.getByText('In use').waitFor();
    await button('Use this card').click();
    await page.getByRole('group', { name: 'Visa •••• 4242' }).getByText('In use').waitFor();
    await careful.getByRole('button', { name: 'Remove' }).click();
    await careful.waitFor({ state: 'detached' });
    await page.getByText('Visa •••• 4242').first().click();
    await button('Pay $25.00').click();
    await seeMoney('$50.00');
  });

  it('charges from the page what the snippet would charge, and ticks the first steps off', async () => {
    const account = await harness.newAccount(1);
    const body = { name: "it's mine", price: 0.25 };
    await call(harness.stack.api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await window.enter(account, '/developer');
    await page.getByText('2 of 3 done').waitFor();
    await page.getByRole('tab', { name: 'curl' }).click();
    await page.getByText(`it'\\''s mine`).waitFor();
    await page.getByLabel('Consumer key', { exact: true }).fill('fare_ck_live_wrong');
    await button('Charge $0.25').click();
    await page.getByText('apiKey must be an active consumer key').waitFor();
    await page.getByLabel('Consumer key', { exact: true }).fill(account.consumerKey);
    await button('Charge $0.25').click();
    await page.getByLabel('Response').getByText('"balance": 0.75').waitFor();
    await page.getByText('3 of 3 done').waitFor();
    await page.getByText('$0.25', { exact: true }).first().waitFor();
  });

  it('registers, prices and archives a tool, which is then charged at its price', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account, '/developer/tools');
    await button('Register tool').click();
    await openedDialog(page, 'Register tool');
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('summarize');
    await form.getByLabel('Price per call').fill('0.0305');
    await form.getByRole('button', { name: 'Register tool' }).click();
    await page.getByText('$0.0305', { exact: true }).waitFor();
    const made = await charge(harness.stack.api, account, { tool: 'summarize', amount: undefined });
    assert.equal((made.body as { amount: number }).amount, 0.0305);
    await button('Edit summarize').click();
    await openedDialog(page, 'Edit tool');
    await form.getByLabel('Price per call').fill('0.5');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('$0.50', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'summarize' }).click();
    await heading('summarize').waitFor();
    await page.getByRole('region', { name: 'Charges' }).getByText('$0.0305').waitFor();
    await page.getByLabel('Node.js example').getByText('tool: "summarize"').waitFor();
    await button('Edit tool').click();
    await openedDialog(page, 'Edit tool');
    await form.getByLabel('Price per call').fill('0.75');
    await form.getByRole('button', { name: 'Save' }).click();
    await seeMoney('$0.75');
    await page.getByRole('link', { name: 'All tools' }).click();
    await button('Edit summarize').click();
    await form.getByRole('button', { name: 'Archive' }).click();
    await page.getByText('No tools yet').waitFor();
    await page.getByText('Archived', { exact: true }).first().click();
    await page.getByRole('link', { name: 'summarize' }).waitFor();
  });

  it('keeps list filters in the URL, and shows a charge’s receipt and the top-up that paid for it', async () => {
    const account = await harness.newAccount(5);
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.25 });
    await charge(harness.stack.api, account, { tool: 'other', amount: 1 });
    await window.enter(account, '/usage?tool=search');
    await page.getByText('Total, net of refunds: $0.25').waitFor();
    const rows = page.getByRole('region', { name: 'Charges' }).getByRole('row');
    await until(async () => (await rows.count()) === 2);
    await button(/^Charge for search/).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByText(/^hmac_sha256\./).waitFor();
    await sheet.getByRole('button', { name: 'Verify' }).click();
    await sheet.getByText('The signature is valid').waitFor();
    assert.match(page.url(), /tool=search&charge=chg_/);
    await page.reload();
    await page
      .getByRole('dialog')
      .getByText(/^Top-up, /)
      .waitFor();
    await page.getByRole('dialog').getByText('$0.25', { exact: true }).nth(1).waitFor();
    await openedDialog(page, 'Charge');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export CSV' }).click(),
    ]);
    assert.match(download.suggestedFilename(), /\.csv$/);
  });

  it('refunds part of a charge, and the consumer sees it', async () => {
    const account = await harness.newAccount(5);
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    await window.enter(account, '/developer/charges');
    await button(/^Charge for search/).click();
    const amount = (await openedDialog(page, 'Charge')).getByLabel('Amount to refund in dollars');
    await amount.fill('0.5');
    await button('Refund').click();
    await page.getByText('Refunded $0.50.').waitFor();
    await until(async () => (await amount.getAttribute('placeholder')) === 'Up to 1.5');
    assert.equal(await amount.inputValue(), '');
    assert.ok(await button('Refund').isDisabled());
    await window.go('/usage');
    await page.getByText('Total, net of refunds: $1.50').waitFor();
    await page.getByText('$0.50 refunded').waitFor();
  });

  it('splits a balance into budgets, shows what they spent, changes a limit, rolls a key and closes them', async () => {
    const account = await harness.newAccount(20);
    const spend = (consumerKey: string, amount: number, tool = 'search') =>
      charge(harness.stack.api, { ...account, consumerKey }, { amount, tool });
    const status = async (key: string) => (await spend(key, 0.01)).status;
    await window.enter(account, '/budgets');
    await page.getByText('No budgets yet').waitFor();
    await createBudget('Project', { 'Total limit': '10' });
    const key = await createBudget(
      'Agent',
      { 'Limit in each': '2', 'Limit for one call': '1.50' },
      'Add a budget below',
    );
    assert.equal((await spend(key, 1.25)).status, 201);
    assert.equal((await spend(key, 0.5, 'fetch')).status, 201);
    assert.equal((await spend(key, 0.5)).status, 402);
    await page.reload();
    const tree = page.getByRole('region', { name: 'Budgets' });
    await tree.getByText('$0.25', { exact: true }).waitFor();
    await reads(tree, /Project\s+Active\s+\$1\.75\s+\$8\.25\s+Agent\s+Active\s+\$1\.75\s+\$0\.25/);
    await page.getByText('$1.75 in 2 charges, net of refunds').waitFor();
    const spending = page.getByRole('region', { name: 'Spending' });
    await reads(spending, /fetch\s+1\s+\$0\.50\s+search\s+1\s+\$1\.25/);
    await page.getByLabel('Show spending by').getByText('Key', { exact: true }).click();
    await spending.getByText('Agent', { exact: true }).waitFor();

    await button('Edit limits').click();
    const limits = await openedDialog(page, 'Edit limits');
    await limits.getByLabel('Limit in each').fill('5');
    await limits.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The budget was changed.').waitFor();
    assert.equal((await spend(key, 1.5)).status, 201);

    await button(/^Actions for Agent/).click();
    await page.getByRole('menuitem', { name: 'Roll key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll key' }).click();
    const rolled = await copyNewKey();
    await page.getByText('Expiring', { exact: true }).waitFor();
    assert.deepEqual([await status(key), await status(rolled)], [201, 201]);
    // A notification could cover the menu.
    await page.locator('.mantine-Notification-root').first().waitFor({ state: 'detached' });
    await button(`Actions for Agent ending in ${rolled.slice(-4)}`).click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('Revoked', { exact: true }).waitFor();
    await until(async () => (await status(rolled)) === 401);

    await tree.getByText('Project').click();
    await heading('Project').waitFor();
    await button('Close').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Close budget' }).click();
    await page.getByText('The budget was closed.').waitFor();
    await until(async () => (await tree.getByRole('cell', { name: 'Closed' }).count()) === 2);
    assert.equal(await status(key), 401);
  });

  it('closes the consumer keys for charging, and opens them with a limit for each developer', async () => {
    const account = await harness.newAccount(20);
    const status = async (amount: number) =>
      (await charge(harness.stack.api, account, { amount })).status;
    await window.enter(account, '/keys');
    await page.getByRole('switch', { name: 'Tools can charge consumer keys' }).click();
    await button('Save').click();
    await page.getByText('Saved. It applies within a second.').waitFor();
    await until(async () => (await status(0.01)) === 403);
    await page.getByRole('switch', { name: 'Tools can charge consumer keys' }).click();
    await page.getByLabel('Daily limit for each developer (UTC)').fill('2');
    await button('Save').click();
    await until(async () => (await status(2.01)) === 402);
    assert.equal(await status(2), 201);
    await window.go('/budgets');
    await page.getByText(`Account keys: ${account.developerId}`).waitFor();
  });

  it('rolls a key with an overlap and revokes it at once', async () => {
    const account = await harness.newAccount(1);
    await window.enter(account, '/keys');
    await button(/^Actions for/).click();
    await page.getByRole('menuitem', { name: 'Roll key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll key' }).click();
    await page.getByText('It will not be shown again').waitFor();
    await button('Done').click();
    await page.getByText('Expiring', { exact: true }).waitFor();
    const balance = () =>
      call(harness.stack.api, 'GET', '/v1/balance', { key: account.consumerKey });
    assert.equal((await balance()).status, 200);
    await button(`Actions for key ending in ${account.consumerKey.slice(-4)}`).click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('can still be charged, for at most 24 hours.').waitFor();
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('Revoked', { exact: true }).waitFor();
    await until(async () => (await balance()).status === 401);
  });

  it('lets the owner of an address claim the account that an operator created for it', async () => {
    const account = await harness.newAccount(42);
    await signUp(account.email);
    await seeMoney('$42.00');
  });

  it('shows statements that add up, for both roles', async () => {
    const account = await harness.newAccount(3);
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.000001 });
    await window.enter(account, '/statements');
    const lines = page.getByRole('region', { name: 'Statement' });
    await lines.getByText('$2.999999').waitFor();
    await page.getByText('Not final yet').waitFor();
    await page.getByText('Earnings', { exact: true }).click();
    await lines.getByText('Earned in total').waitFor();
    await reads(lines, /Earned in total\s+\$0\.000001/);
    await window.go('/statements?month=2026-01');
    await lines.getByText('Closing balance').waitFor();
    assert.equal(await page.getByText('Not final yet').count(), 0);
  });

  it('lets an operator find out why a balance is what it is, adjust it and refund a top-up', async () => {
    await signUp('ops@example.com');
    await farebox(['account', 'promote', 'ops@example.com'], harness.stack);
    await window.go('/operator');
    await page.getByText('Turn on two-factor authentication first').waitFor();
    await page.getByRole('link', { name: 'Go to Security' }).click();
    await page.getByLabel('Your password').fill(PASSWORD);
    await button('Set up').click();
    const secret = await copiedBy(page, 'Copy secret');
    await page.getByLabel('Code', { exact: true }).fill(totp(secret));
    await button('Turn on').click();
    await page.getByText('Two-factor authentication is on.').waitFor();

    const payer = await harness.newAccount(20);
    const { consumerKey: key, email } = payer;
    const ask = async (method: string, path: string, rest: { body?: object } = {}) =>
      (await call(harness.stack.api, method, path, { key, ...rest })).body as TopUpReply;
    const { topUpId: pendingId } = await ask('POST', '/v1/checkout', { body: { amount: 15 } });
    await farebox(['account', 'consent', payer.consumerId, '--ceiling', '100'], harness.stack);
    const { topUpId } = await ask('POST', '/v1/top-up', { body: { amount: 10 } });
    await until(async () => (await ask('GET', '/v1/balance')).balance === 30);
    await charge(harness.stack.api, payer, { amount: 0.000125 });
    await page.getByRole('link', { name: 'Service' }).click();
    await page.getByText('Nothing is stuck.').waitFor();
    await page.getByText('No differences.').waitFor();
    await button('Pending top-ups').click();
    const pending = await openedDialog(page, 'Pending top-ups');
    const row = pending.getByRole('row').filter({ hasText: pendingId });
    await reads(row, /Checkout[^]*\$15\.00/);
    await row.getByRole('link', { name: 'Account' }).click();
    await heading(email).waitFor();
    await page.getByRole('link', { name: 'Accounts' }).click();
    const wanted = page.getByLabel('Email or id');
    await wanted.fill(email.slice(0, -4));
    await button('Find').click();
    await page.getByRole('link', { name: email }).waitFor();
    await wanted.fill('nobody@example.com');
    await button('Find').click();
    await page.getByText('No account found').waitFor();
    await page.goBack();
    await until(async () => (await wanted.inputValue()) === email.slice(0, -4));
    await page.getByRole('link', { name: email }).click();
    await heading(email).waitFor();
    const books = page.getByRole('region', { name: 'Balance' });
    await reads(
      books,
      /Top-ups \(2\)\s+\$30\.000000\s+Charges\s+−\$0\.000125\s+[^]*Balance\s+\$29\.999875/,
    );

    await button('Adjust balance').click();
    await openedDialog(page, 'Adjust balance');
    const form = page.getByRole('dialog');
    await form.getByLabel('Amount in dollars').fill('-100');
    await form.getByLabel('Reason').fill('Charged twice');
    await form.getByRole('button', { name: 'Adjust by −$100.00' }).click();
    await form.getByText('never goes below zero').waitFor();
    await form.getByLabel('Amount in dollars').fill('-1.5');
    await form.getByRole('button', { name: 'Adjust by −$1.50' }).click();
    await page.getByText('Adjusted by −$1.50.', { exact: true }).waitFor();
    await books.getByText('$28.499875').waitFor();
    await page.getByText(/ops@example.com adjusted by .* Charged twice/).waitFor();

    await page.getByRole('tab', { name: 'Top-ups' }).click();
    await page.getByRole('row').filter({ hasText: topUpId }).getByText('Saved card').waitFor();
    await button('Refund').click();
    await openedDialog(page, 'Refund top-up');
    await form.getByLabel('Amount in dollars').fill('4');
    await form.getByLabel('Reason').fill('Asked for it');
    await form.getByRole('button', { name: 'Refund' }).click();
    await books.getByText('$24.499875').waitFor();
    await page.getByText('$4.00 refunded').waitFor();
  });
});

/** Waits for it: the parts of a page are read by requests of their own. */
async function reads(part: Locator, text: RegExp): Promise<void> {
  await until(async () => text.test(await part.innerText()));
}
