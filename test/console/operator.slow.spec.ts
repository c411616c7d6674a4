/** The pages of operators, and the budget of many keys, when there is much of everything, on a phone. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { openForEach, openedDialog, type ConsoleHarness, type Window } from '../support/console.ts';
import { bodyOf, charge } from '../support/http.ts';
import { control, loseDispute, openCheckout, pay, topUpsOf } from '../support/payments.ts';
import { makeOperator } from '../support/sessions.ts';
import { until } from '../support/stack.ts';

describe('the console with much to show', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { window: { viewport: { width: 390, height: 844 } } },
  );

  it('says that it lists only a part of 2,000 stuck top-ups, and shows what is below them', async () => {
    const payer = await enterAsOperator('/balance');
    await runSql(
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, created_at, opened_at)
       select uuidv7(), ledger, consumer_id, account_id, 'checkout', 15000000, past.at, past.at
       from farebox.top_ups t, (select now() - interval '2 days' as at) past, generate_series(1, 2000)
       where account_id = (select id from farebox.accounts where email = $1)`,
      payer.email,
    );
    await window.go('/operator');
    await page.getByText('50+').waitFor();
    await page.getByText('At most 50 of each kind are listed, the oldest first.').waitFor();
    const list = page.getByRole('region', { name: 'Stuck' });
    assert.equal(await list.locator('tbody tr').count(), 50);
    assert.ok(((await list.boundingBox())?.height ?? Number.NaN) < 844);
  });

  it('shows the pages of operators to nobody else', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account, '/operator');
    await page.getByText('Your account is not an operator.').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Service' }).count(), 0);
  });

  it('shows the charge that a customer quotes, and what its payer and its developer have of it', async () => {
    const { api } = harness.stack;
    await enterAsOperator('/balance');
    const payer = await harness.newAccount(20);
    const developer = await harness.newAccount(0);
    const paid = { ...developer, consumerKey: payer.consumerKey };
    const { id } = bodyOf(
      await charge(api, paid, { tool: 'quoted', amount: 1.25 }),
      201,
      ChargeReply,
    );
    await charge(api, paid, { tool: 'quoted', amount: 1.25 });
    await window.go(`/operator/accounts?query=${id}`);
    await page.getByText(`Paid by ${payer.email}`).waitFor();
    await page.getByText(`Earned by ${developer.email}`).waitFor();
    await page.getByText('$1.25', { exact: true }).waitFor();
    await page.getByRole('link', { name: payer.email }).click();
    await page.getByRole('tab', { name: 'Charges' }).click();
    await page.getByRole('region', { name: 'Charges' }).getByText(id).waitFor();
    await window.go(`/operator/accounts?query=${id}`);
    await page.getByRole('link', { name: developer.email }).click();
    await page.getByRole('tab', { name: 'Charges' }).click();
    await page.getByText('This account has paid for no charges yet.').waitFor();
  });

  it('says in each field of a correction what to enter', async () => {
    const { email } = await enterAsOperator('/balance');
    await window.go(`/operator/accounts?query=${email}`);
    await page.getByRole('link', { name: email }).click();
    await page.getByRole('button', { name: 'Adjust balance' }).click();
    const form = await openedDialog(page, 'Adjust balance');
    const amount = form.getByLabel('Amount in dollars');
    const hint = form.getByText('Enter an amount other than zero, with at most six decimals.');
    await amount.fill('-1.5');
    assert.equal(await hint.count(), 0);
    await amount.fill('2.1234567');
    await hint.waitFor();
  });

  it('names the account of each entry of the audit log by its id', async () => {
    await createTestAccounts(harness.stack.database.url, 60, 1);
    await enterAsOperator('/operator/audit-log');
    const link = page.getByRole('region', { name: 'Audit log' }).getByRole('link').first();
    const id = (await link.textContent()) ?? '';
    assert.match(id, /^acct_/);
    await link.click();
    // The log, which has the id on many lines, stays until the account's page is loaded.
    await page.getByRole('button', { name: 'Adjust balance' }).waitFor();
    await page.getByRole('main').getByText(id, { exact: true }).waitFor();
    assert.ok(page.url().endsWith(id));
  });

  it('offers to refund a top-up that the bank suspects of fraud, and says how to keep it instead', async () => {
    const { api, simulator } = harness.stack;
    const account = await enterAsOperator('/balance');
    const { email } = account;
    await pay((await openCheckout(api, account, 20)).sessionUrl);
    await until(async () => (await topUpsOf(api, account))[0]?.status === 'completed');
    const { payments } = (await control(simulator, 'payments')) as {
      payments: readonly { payment_intent: string }[];
    };
    const intent = { payment_intent: payments.at(-1)?.payment_intent };
    await control(simulator, 'fraud-warnings', intent);
    await window.go(`/operator/accounts?query=${email}`);
    await page.getByRole('link', { name: email }).click();
    await page.getByText('Open disputes and fraud warnings').waitFor();
    await page.getByRole('tab', { name: 'Top-ups' }).click();
    const list = page.getByRole('region', { name: 'Top-ups' });
    await list.getByText('dismiss-warning tu_').waitFor();
    await list.getByRole('button', { name: 'Refund' }).click();
    const form = await openedDialog(page, 'Refund top-up');
    await form.getByLabel('Reason').fill('Not the owner of the card');
    await form.getByRole('button', { name: 'Refund' }).click();
    await list.getByText('$20.00 refunded').waitFor();
  });

  it('says how much a refund sends, and offers none once nothing is left', async () => {
    const { api } = harness.stack;
    const account = await enterAsOperator('/balance');
    await pay((await openCheckout(api, account, 25)).sessionUrl);
    await until(async () => (await topUpsOf(api, account))[0]?.status === 'completed');
    assert.equal((await charge(api, account, { amount: 32.5 })).status, 201);
    await window.go(`/operator/accounts?query=${account.email}`);
    await page.getByRole('link', { name: account.email }).click();
    await page.getByRole('tab', { name: 'Top-ups' }).click();
    const button = page.getByRole('region', { name: 'Top-ups' }).getByRole('button', {
      name: /^Refund tu_/,
    });
    await button.click();
    const form = await openedDialog(page, 'Refund top-up');
    await form.getByText('Of this, $2.50 is unspent.').waitFor();
    await form.getByLabel('Reason').fill('Asked for it');
    await form.getByLabel('Amount in dollars').fill('2.51');
    await form.getByText('Enter an amount in whole cents, at most $2.50.').waitFor();
    await form.getByLabel('Amount in dollars').fill('2.5');
    await form.getByRole('button', { name: 'Refund $2.50', exact: true }).click();
    await page.getByText('Requested a refund of $2.50 to the card.').waitFor();
    await button.waitFor({ state: 'detached' });
  });

  it('lists what was taken for one lost dispute in two parts, and what is still owed of it', async () => {
    const { api } = harness.stack;
    const account = await enterAsOperator('/balance');
    await loseDispute(harness.stack, account, { paid: 25, spent: 35 });
    for (const dollars of [10, 5]) {
      await pay((await openCheckout(api, account, dollars)).sessionUrl);
      await until(async () => (await topUpsOf(api, account))[0]?.status === 'completed');
    }
    await window.go(`/operator/accounts?query=${account.email}`);
    await page.getByRole('link', { name: account.email }).click();
    const sums = page.getByRole('region', { name: 'Balance' });
    const taken = sums.getByRole('row', { name: 'Taken for lost disputes −$15.00', exact: true });
    await taken.waitFor();
    await window.go('/statements');
    await page.getByText('You owe $10.00 for refunded or disputed payments.').waitFor();
    assert.equal(await page.getByText('Taken for a lost dispute').count(), 2);
  });

  it('says on the account that a refund failed, and why', async () => {
    const { api, simulator } = harness.stack;
    const account = await enterAsOperator('/balance');
    await pay((await openCheckout(api, account, 20)).sessionUrl);
    await until(async () => (await topUpsOf(api, account))[0]?.status === 'completed');
    const refused = { method: 'POST', path: '/v1/refunds', kind: 'error', status: 400 };
    await control(simulator, 'faults', refused);
    await window.go(`/operator/accounts?query=${account.email}`);
    await page.getByRole('link', { name: account.email }).click();
    await page.getByRole('tab', { name: 'Top-ups' }).click();
    const list = page.getByRole('region', { name: 'Top-ups' });
    await list.getByRole('button', { name: 'Refund' }).click();
    const form = await openedDialog(page, 'Refund top-up');
    await form.getByLabel('Amount in dollars').fill('4');
    await form.getByLabel('Reason').fill('Asked for it');
    await form.getByRole('button', { name: 'Refund' }).click();
    await page.getByText('Requested a refund of $4.00 to the card.').waitFor();
    await until(async () => (await topUpsOf(api, account))[0]?.refunded === 0);
    await page.reload();
    await page.getByText(/Asked for it The refund failed: An unknown error occurred\./).waitFor();
    await page.getByRole('tab', { name: 'Top-ups' }).click();
    await list.getByText('A refund of $4.00 failed: An unknown error occurred.').waitFor();
  });

  it('keeps what a budget was spent on below its 300 keys', async () => {
    const account = await harness.newAccount(10);
    const { api } = harness.stack;
    const { id } = await makeBudget(api, account.consumerKey, { limit: 5 });
    for (let n = 0; n < 300; n += 1) await makeKey(api, account.consumerKey, id, { name: `${n}` });
    await window.enter(account, `/budgets?budget=${id}`);
    const list = page.getByRole('region', { name: 'Spend keys' });
    await list.getByText('299', { exact: true }).waitFor();
    assert.ok(((await list.boundingBox())?.height ?? Number.NaN) < 844);
    await list.focus();
    await page.keyboard.press('End');
    await page.getByRole('button', { name: 'Load more' }).click();
    await list.getByText('199', { exact: true }).waitFor();
  });

  async function enterAsOperator(path: string): Promise<TestAccount> {
    const account = await harness.newAccount(10);
    await window.enter(account);
    const sql = await connect();
    try {
      await makeOperator(sql, account.email);
    } finally {
      await sql.end();
    }
    if (path !== '/balance') await window.go(path);
    return account;
  }

  async function runSql(text: string, ...values: readonly string[]): Promise<void> {
    const sql = await connect();
    try {
      await sql.query(text, [...values]);
    } finally {
      await sql.end();
    }
  }

  async function connect(): Promise<Client> {
    const { url } = harness.stack.database;
    const sql = new Client({ connectionString: url, application_name: 'psql' });
    await sql.connect();
    return sql;
  }
});
