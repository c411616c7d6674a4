/** What owners see of payments that go wrong, and how they continue: automatic top-ups that fail, and disputes. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { ask } from '../support/approval-requests.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { openForEach, type ConsoleHarness, type Window } from '../support/console.ts';
import { charge } from '../support/http.ts';
import { askForTopUp, balanceOf, loseDispute, openDispute, topUpsOf } from '../support/payments.ts';
import { until } from '../support/stack.ts';

const DECLINED = '4000 0000 0000 0341';

describe('the console', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { stack: { env: { SAVE_TEST_CARD: 'false' } } },
  );

  const button = (name: string) => page.getByRole('button', { name, exact: true });

  async function allowPayments(limit?: string): Promise<void> {
    await button('Set up').click();
    if (limit !== undefined) await page.getByLabel('Monthly limit in dollars').fill(limit);
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
  }

  async function saveCard(number: string, brand = 'Visa'): Promise<void> {
    await button('Save a card').click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.getByLabel('Card number').fill(number);
    await button('Save card').click();
    await page.waitForURL('**/console/balance**');
    await page.getByRole('group', { name: `${brand} •••• ${number.slice(-4)}` }).waitFor();
  }

  /** Saves the settings of automatic top-ups. */
  async function saveSettings(name: string): Promise<void> {
    await button(name).click();
    await page.getByText('When a charge leaves less than $5.00').waitFor();
  }

  it('says what follows a declined automatic top-up, and how to continue', async () => {
    const { api, database } = harness.stack;
    const account = await harness.newAccount(5);
    const state = page.getByRole('status').filter({ hasText: 'The card was declined.' });
    const chargeAndFail = async (failed: number) => {
      await charge(api, account, { amount: 0.5 });
      await until(async () => {
        const found = await topUpsOf(api, account);
        return found.filter(({ status }) => status === 'failed').length === failed;
      });
      await page.reload();
      await state.waitFor();
    };
    await window.enter(account);
    await allowPayments();
    await saveCard(DECLINED);
    await saveSettings('Turn on');
    await chargeAndFail(1);
    assert.match(
      await state.innerText(),
      /^Waiting: .+ the next charge that leaves too little triggers another attempt; .+ save these/,
    );
    assert.equal(await page.getByText('/v1/').count(), 0, 'the console shows requests of the API');
    await button('Change').click();
    await saveSettings('Save');
    assert.equal(await state.count(), 0);
    // The pause is over. This is the last failure of three, as if two had come before.
    const sql = new Client({ connectionString: database.url });
    await sql.connect();
    await sql.query(`update farebox.auto_top_ups set declines = 2 where status = 'on'`);
    await sql.end();
    await chargeAndFail(2);
    assert.equal(
      await state.innerText(),
      'Turned off: The card was declined. Use or save another card.',
    );

    await saveCard('4242 4242 4242 4242');
    await button('Turn on again').click();
    await saveSettings('Turn on');
    await charge(api, account, { amount: 0.5 });
    await until(async () => (await topUpsOf(api, account))[0]?.status === 'completed');
    assert.equal(await balanceOf(api, account), 28.5);
  });

  it('ends the pause after a decline when another card is used', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(5);
    await window.enter(account);
    await allowPayments();
    await saveCard('5555 5555 5555 4444', 'Mastercard');
    await saveCard(DECLINED);
    await saveSettings('Turn on');
    await charge(api, account, { amount: 0.5 });
    const state = page.getByRole('status').filter({ hasText: 'Waiting: The card was declined.' });
    await state.waitFor();
    // No balance arrives, so only the answer to the button can update the page.
    await page.route('**/v1/balance', () => undefined);
    await button('Use this card').click();
    await state.waitFor({ state: 'detached' });
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await charge(api, account, { amount: 0.5 });
    await until(async () => (await balanceOf(api, account)) === 29);
  });

  it('says what a dispute holds and turns off, and what is owed, which an automatic top-up repays first', async () => {
    const { api, simulator } = harness.stack;
    const account = await harness.newAccount(0);
    const key = account.consumerKey;
    await window.enter(account);
    await allowPayments();
    await saveCard('4242 4242 4242 4242');
    await page.getByLabel('Add', { exact: true }).fill('5');
    await saveSettings('Turn on');
    const paid = await askForTopUp(api, '/v1/top-up', { key, body: { amount: 20 } });
    assert.equal(paid.status, 201);
    await charge(api, account, { amount: 4 });
    await openDispute(simulator);
    await page.getByText('You owe $4.00').waitFor();
    await page.getByText('The amount in question cannot be spent').waitFor();
    assert.equal((await charge(api, account, { amount: 0.5 })).status, 402);

    await page
      .getByRole('status')
      .filter({ hasText: 'Turned off: A payment was disputed. Ask the cardholder' })
      .waitFor();
    await button('Turn on again').click();
    await saveSettings('Turn on');
    assert.equal((await charge(api, account, { amount: 0.5 })).status, 402);
    await page.getByText('You owe $4.00').waitFor({ state: 'detached' });
    await until(async () => (await balanceOf(api, account)) === 1);
  });

  it('turns on no automatic top-up that the saved card can never pay, and says when one waits for that', async () => {
    await window.enter(await harness.newAccount(0));
    await allowPayments('30');
    await page.getByLabel('Add', { exact: true }).fill('50');
    await page.getByLabel('At most per month').fill('1000');
    await page.getByText('The saved card may be charged at most $30.00 a month.').waitFor();
    assert.ok(await button('Turn on').isDisabled());
    await page.getByLabel('Add', { exact: true }).fill('20');
    await saveSettings('Turn on');
    await page.getByText('we add $20.00, up to $30.00 a month').waitFor();

    const state = page.getByRole('status').filter({ hasText: 'Waiting: ' });
    await button('Change limit').click();
    await page.getByLabel('Monthly limit in dollars').fill('10');
    await page.getByLabel('I agree').check();
    await button('Save limit').click();
    await state
      .getByText('The payment would exceed the monthly limit of the saved card.')
      .waitFor();
    await button('Withdraw consent').click();
    await state.getByText('You have withdrawn your consent to payments from').waitFor();
  });

  it('says what was paid, and what is still owed, of a top-up that repays a lost dispute', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    await loseDispute(harness.stack, account, { paid: 25, spent: 25 });
    await window.enter(account);
    await page.getByText('You owe $25.00').waitFor();
    const result = page.getByRole('status').filter({ hasText: 'The top-up of' });
    const payAtCheckout = async (dollars: number) => {
      await page.getByLabel('Amount in dollars').fill(String(dollars));
      await button(`Pay $${dollars}.00`).click();
      await page.waitForURL(`${harness.stack.simulator.url}/**`);
      await page.locator('button').click();
      await page.waitForURL('**/console/balance**');
      await page.getByText('Top-up completed').waitFor();
    };
    await payAtCheckout(10);
    await result.getByText('The top-up of $10.00 was paid. You owe $15.00.').waitFor();
    await allowPayments();
    await saveCard('4242 4242 4242 4242');
    await page.getByText('Visa •••• 4242', { exact: true }).first().click();
    await page.getByLabel('Amount in dollars').fill('5');
    await button('Pay $5.00').click();
    await result.getByText('The top-up of $5.00 was paid. You owe $10.00.').waitFor();
    await page.getByLabel('Amount in dollars').fill('12');
    await button('Pay $12.00').click();
    await result.getByText('The top-up of $12.00 was paid.', { exact: true }).waitFor();
    assert.equal(await page.getByText('was added to your balance').count(), 0);
    assert.equal(await balanceOf(api, account), 2);
    // The result is not about later charges.
    await page.getByLabel('Amount in dollars').fill('5');
    await button('Pay $5.00').click();
    const added = page.getByRole('status').filter({ hasText: 'was added to your balance' });
    await added.getByText('$5.00 was added to your balance.').waitFor();
    await charge(api, account, { tool: 'search', amount: 4 });
    await page.getByText('$3.00', { exact: true }).first().waitFor();
    await added.getByText('$5.00 was added to your balance.').waitFor();
    assert.equal(await result.count(), 0);
    await window.go('/balance');
    await payAtCheckout(6);
    await page.getByText('$6.00 was added to your balance.').waitFor();
  });

  it('says under a call to allow that its top-up pays what is owed first', async () => {
    const { api } = harness.stack;
    const account = await harness.newAccount(0);
    await loseDispute(harness.stack, account, { paid: 25, spent: 25 });
    const budget = await makeBudget(api, account.consumerKey, { limit: 10 });
    const { key } = await makeKey(api, account.consumerKey, budget.id);
    await ask(api, account, key, 7.5);
    await window.enter(account);
    await allowPayments();
    await saveCard('4242 4242 4242 4242');
    await window.go('/approvals');
    await page
      .getByText('You owe $25.00 for refunded or disputed payments. The top-up pays this first,')
      .waitFor();
    await button('Top up $32.50 from the saved card').click();
    await until(async () => (await balanceOf(api, account)) === 7.5);
    await ask(api, account, key, 9);
    await button('Top up $1.50 from the saved card').waitFor();
    assert.equal(await page.getByText('You owe').count(), 0);
  });

  it('does not announce a top-up again that was charged back since', async () => {
    const account = await harness.newAccount(0);
    const topUpId = await loseDispute(harness.stack, account, { paid: 25, spent: 0 });
    await window.enter(account, `/balance?topUp=${topUpId}&result=paid`);
    await page.getByText('See the top-up of $25.00 under Top-ups: Charged back.').waitFor();
    assert.equal(await page.getByText('Top-up completed').count(), 0);
  });
});
