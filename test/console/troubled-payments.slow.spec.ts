/** What owners see of payments that go wrong, and how they continue: automatic top-ups that fail, and disputes. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { openForEach, type ConsoleHarness, type Window } from '../support/console.ts';
import { charge } from '../support/http.ts';
import { askForTopUp, balanceOf, control, topUpsOf } from '../support/payments.ts';
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

  async function allowPayments(): Promise<void> {
    await button('Set up').click();
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
    const { payments } = (await control(simulator, 'payments')) as {
      payments: readonly { payment_intent: string }[];
    };
    await control(simulator, 'disputes', { payment_intent: payments.at(-1)?.payment_intent });
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
});
