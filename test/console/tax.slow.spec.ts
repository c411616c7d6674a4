/** What a taxed top-up costs, in a real browser: every amount is on a page before anything is paid. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createAccount } from '../support/accounts.ts';
import { call } from '../support/http.ts';
import { openForEach, type ConsoleHarness, type Window } from '../support/console.ts';
import { until } from '../support/stack.ts';

describe('the price of a taxed top-up', () => {
  // A stack, a browser and a build, on a busy machine.
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { stack: { env: { STRIPE_TAX: 'automatic' } } },
  );

  const see = (text: string | RegExp) => page.getByText(text).first().waitFor();
  /** Waits for it: the browser draws a page while it still arrives. */
  const seeLines = (text: string) =>
    until(async () => (await page.locator('dd').allInnerTexts()).join(' ') === text);

  it('is shown by the console, the checkout and the saved card before it is paid', async () => {
    const account = await createAccount(harness.stack.env, 0);
    await window.enter(account);
    await page.getByText('Test card').click();
    await see('The tax is not known. Pay at checkout, which asks for your address.');
    assert.ok(await page.getByRole('button', { name: 'Pay $25.00' }).isDisabled());
    await page.getByText('Checkout', { exact: true }).click();
    await see('Tax is added at checkout, based on your address.');
    await page.getByRole('button', { name: 'Pay $25.00' }).click();

    // $25.00 in New York, then in California: 8.875 % and 7.25 %.
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await seeLines('$25.00 $2.22 $27.22');
    await page.getByLabel('State').fill('CA');
    await page.getByRole('button', { name: 'Pay $27.22' }).click();
    await see('The tax at this address changes the total.');
    await seeLines('$25.00 $1.81 $26.81');
    await page.getByRole('button', { name: 'Pay $26.81' }).click();
    await see('$25.00 was added to your balance.');
    await see('and $1.81 tax');

    // Now that Stripe knows the address, the console shows the tax on what the saved card pays.
    await page.getByText('$100', { exact: true }).click();
    await see('Tax is added at checkout, based on your address.');
    await page.getByText('Test card').click();
    await see('$100.00 is added to your balance. You pay $7.25 tax on top of it.');
    await page.getByRole('button', { name: 'Pay $107.25' }).waitFor();
    const { body } = await call(harness.stack.api, 'GET', '/v1/balance', {
      key: account.consumerKey,
    });
    assert.equal((body as { balance: number }).balance, 25);
  });

  it('has a maximum, which the form tells before it is sent', async () => {
    await window.enter(await harness.newAccount(0));
    await page.getByLabel('Amount in dollars').fill('750000.01');
    await see('Enter $5.00 to $750,000.00, in whole cents.');
    assert.ok(await page.getByRole('button', { name: /^Pay/ }).isDisabled());
    await page.getByLabel('Amount in dollars').fill('750000');
    const pay = page.getByRole('button', { name: 'Pay $750,000.00' });
    await until(async () => pay.isEnabled());
  });

  it('is what the payer then paid', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account);
    await page.getByRole('button', { name: 'Pay $25.00' }).click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.getByRole('button', { name: 'Pay $27.22' }).click();
    await see('$25.00 was added to your balance.');
    const topUp = await until(async () => {
      const { body } = await call(harness.stack.api, 'GET', '/v1/top-up', {
        key: account.consumerKey,
      });
      const [first] = (body as { topUps: { status: string; amount: number; tax?: number }[] })
        .topUps;
      return first?.status === 'completed' && first;
    });
    assert.deepEqual([topUp.amount, topUp.tax], [25, 2.22]);
  });
});
