/**
 * Approvals in a real browser: the owner sees what is asked, answers, and raises a limit from the link of a
 * refusal.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Page, Request } from 'playwright-core';
import { uuidOf } from '../../src/domain/ids.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { ask, decide, showApproval, untilDecided } from '../support/approval-requests.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../support/budget-requests.ts';
import { openConsole, type ConsoleHarness, type Window } from '../support/console.ts';
import { call } from '../support/http.ts';
import { until } from '../support/stack.ts';

describe('approvals in the console', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  let account: TestAccount;
  let sql: Client;

  before(async () => {
    harness = await openConsole();
    sql = new Client({ connectionString: harness.stack.database.url });
    await sql.connect();
    account = await harness.newAccount(100);
    window = await harness.open();
    ({ page } = window);
  });
  after(async () => {
    await window?.close();
    await sql?.end();
    await harness?.close();
  });

  it('shows what is asked, as text, and tells the agent the answer', async () => {
    const { api } = harness.stack;
    const key = account.consumerKey;
    const budget = await makeBudget(api, key, { name: 'Research', limit: 1 });
    const { key: spendKey } = await makeKey(api, key, budget.id, { name: 'agent 7' });
    await makeKey(api, key, budget.id, { name: 'agent 8' });
    const reason = '<img src=x onerror=alert(1)> & more';
    const asked = await ask(api, account, spendKey, 2, { reason });
    const waiting = untilDecided(api, spendKey, asked.id);
    await window.enter(account, '/approvals');
    await page.getByText('Allow a call for $2.00?').waitFor();
    await page
      .getByText("The call costs more than what is left of the budget's total limit of $1.00.")
      .waitFor();
    await page.getByText('budget Research, by the key agent 7.').waitFor();
    await page.getByText(reason).waitFor();
    await page.getByText('No request has ended yet.').waitFor();
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    await page.getByLabel('1 waiting').waitFor();
    await page.getByRole('button', { name: 'Allow once' }).click();
    assert.equal((await waiting).decision, 'once');
    await page.getByText('Allowed once').waitFor();
    await page.getByLabel('1 waiting').waitFor({ state: 'detached' });
    assert.equal((await spend(api, account, spendKey, 2)).status, 201);
  });

  it('shows a waiting question that is older than 50 answered ones', async () => {
    const { api } = harness.stack;
    const { consumerKey: key } = account;
    const budget = await makeBudget(api, key, { limit: 1 });
    const { key: first } = await makeKey(api, key, budget.id);
    const { key: second } = await makeKey(api, key, budget.id);
    const waiting = await ask(api, account, first, 77);
    const answered = await ask(api, account, second, 2);
    await decide(api, key, answered.id, 'deny');
    const copies = await sql.query(
      `insert into farebox.approvals
       select (jsonb_populate_record(answered, jsonb_build_object('id', uuidv7()))).*
       from farebox.approvals answered, generate_series(1, 50) where id = $1`,
      [uuidOf('approval', answered.id)],
    );
    assert.equal(copies.rowCount, 50);
    await window.enter(account, '/approvals');
    await page.getByLabel('1 waiting').waitFor();
    await page.getByText('Allow a call for $77.00?').waitFor();
    await page.getByRole('button', { name: 'Deny' }).click();
    await until(async () => (await showApproval(api, first, waiting.id)).decision === 'deny');
  });

  it('does not read the answered questions again while more than one page of them is loaded', async () => {
    const row = page.getByRole('region', { name: 'Past approvals' }).locator('tbody tr');
    const reads: string[] = [];
    const note = (request: Request) => reads.push(new URL(request.url()).search);
    await window.go('/approvals');
    await page.getByRole('button', { name: 'Load more' }).click();
    await until(async () => (await row.count()) > 50);
    page.on('request', note);
    await until(() => reads.filter((search) => search.includes('status=pending')).length >= 3);
    page.off('request', note);
    assert.deepEqual(
      reads.filter((search) => search.includes('limit=50')),
      [],
    );
  });

  it('names the limit that an answer raises', async () => {
    const { api } = harness.stack;
    const { consumerKey: key } = account;
    const limits = [
      [{ limit: 1 }, 'New total limit, in dollars', '3'],
      [{ window: { per: 'day', limit: 1 } }, 'New limit for each window, in dollars', '4'],
      [{ maxPerCall: 1 }, 'New limit for one call, in dollars', '5'],
    ] as const;
    await window.enter(account, '/approvals');
    for (const [limited, label, raised] of limits) {
      const budget = await makeBudget(api, key, limited);
      const { key: spendKey } = await makeKey(api, key, budget.id);
      const { id } = await ask(api, account, spendKey, 2);
      await page.getByLabel(label).fill(raised);
      await page.getByRole('button', { name: 'Raise', exact: true }).click();
      await until(async () => (await showApproval(api, spendKey, id)).raisedTo === Number(raised));
    }
  });

  it('calls a limit that was raised just enough a raised limit', async () => {
    const { api } = harness.stack;
    const budget = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key: spendKey } = await makeKey(api, account.consumerKey, budget.id);
    await ask(api, account, spendKey, 2.25);
    await window.enter(account, '/approvals');
    await page.getByRole('button', { name: 'Raise the limit just enough' }).click();
    await page.getByText('Limit raised to $2.25', { exact: true }).waitFor();
  });

  it('raises the limit, or allows the developer, that a refusal links to', async () => {
    const { api } = harness.stack;
    const key = account.consumerKey;
    const budget = await makeBudget(api, key, { limit: 1, approveDevelopers: true });
    const { key: spendKey } = await makeKey(api, key, budget.id);
    const urlIn = async (name: string) => {
      const { body } = await spend(api, account, spendKey, 2);
      return (body as { error: Record<string, string> }).error[name] ?? '';
    };
    await page.goto(await urlIn('approvalUrl'));
    await page.getByRole('button', { name: 'Allow this developer' }).click();
    await page.getByText('may charge the budget').waitFor();
    assert.deepEqual((await showBudget(api, key, budget.id)).approvedDevelopers, [
      account.developerId,
    ]);

    const asked = await ask(api, account, spendKey, 2);
    const waiting = untilDecided(api, spendKey, asked.id);
    await page.goto(await urlIn('raiseUrl'));
    await page.getByLabel('Raise it to, in dollars').fill('7.5');
    await page.getByRole('button', { name: 'Raise limit' }).click();
    await page.getByText('$7.50 in total').waitFor();
    assert.equal((await waiting).decision, 'resolved');
    assert.equal((await spend(api, account, spendKey, 2)).status, 201);
    assert.deepEqual(
      window.problems.filter((text) => !/status of 4\d\d/.test(text)),
      [],
    );
  });

  it('says so when a link is about a closed budget, or a developer that the budget leaves out', async () => {
    const { api } = harness.stack;
    const { consumerKey: key, developerId } = account;
    await window.enter(account);
    const others = [(await harness.newAccount(0)).developerId];
    const strict = await makeBudget(api, key, { name: 'Strict', developers: others });
    await window.go(`/approvals?budget=${strict.id}&developer=${developerId}`);
    const text = `${developerId} is not among the developers that the budget Strict allows.`;
    await page.getByText(text).waitFor();
    const ended = await makeBudget(api, key, { name: 'Ended', limit: 1 });
    await closeBudget(api, key, ended.id);
    for (const link of ['scope=total', `developer=${developerId}`]) {
      await window.go(`/approvals?budget=${ended.id}&${link}`);
      await page.getByText('The budget Ended is closed, so its keys cannot be charged.').waitFor();
      assert.equal(await page.getByText('may charge the budget').count(), 0);
    }
  });

  it('says so when a link belongs to another account, such as one of test mode', async () => {
    const other = await harness.newAccount(5);
    await window.enter(other);
    const budget = await makeBudget(harness.stack.api, account.consumerKey, { limit: 1 });
    const { key: spendKey } = await makeKey(harness.stack.api, account.consumerKey, budget.id);
    const { id } = await ask(harness.stack.api, account, spendKey, 2);
    const links = [`approval=${id}`, `budget=${budget.id}&scope=total`];
    for (const link of [...links, `budget=${budget.id}&developer=${account.developerId}`]) {
      await window.go(`/approvals?${link}`);
      await page.getByText('Not in this account').waitFor();
    }
    await decide(harness.stack.api, account.consumerKey, id, 'deny');
  });

  it('leads to the bank that wants a top-up confirmed', async () => {
    const { api, simulator } = harness.stack;
    const payer = await harness.newAccount(0);
    const { consumerKey: key } = payer;
    const budget = await makeBudget(api, key, { limit: 10 });
    const { key: spendKey } = await makeKey(api, key, budget.id);
    await window.enter(payer);
    await page.getByRole('button', { name: 'Set up' }).first().click();
    await page.getByLabel('I agree').check();
    await page.getByRole('button', { name: 'Allow payments' }).click();
    await page.getByRole('button', { name: 'Save a card' }).click();
    await page.waitForURL(`${simulator.url}/**`);
    await page.getByLabel('Card number').fill('4000 0027 6000 3184');
    await page.getByRole('button', { name: 'Save card' }).click();
    await page.waitForURL('**/console/balance**');
    await page.getByRole('group', { name: 'Visa •••• 3184' }).waitFor();

    await ask(api, payer, spendKey, 2);
    await window.go('/approvals');
    await page.route('**/decide', async (route) => {
      const answer = await route.fetch();
      // At the same moment, an agent tops up from the same card.
      const other = await call(api, 'POST', '/v1/top-up', { key, body: { amount: 7 } });
      assert.equal(other.status, 202);
      await route.fulfill({ response: answer });
    });
    await page.getByRole('button', { name: 'Top up $2.00 from the saved card' }).click();
    await page.waitForURL('**/top-up/confirm**');
    await page.getByText('a top-up of $2.00').waitFor();
    await page.getByRole('button', { name: 'Confirm at your bank' }).click();
    await page.waitForURL(`${simulator.url}/**`);
    await page.getByRole('button', { name: 'Confirm payment' }).click();
    await page.getByText('The top-up of $2.00 was paid.').waitFor();
    await window.go('/approvals');
    await page.getByText('Topped up').waitFor();
  });

  it('leads to a checkout where the saved card cannot be charged', async () => {
    const { api, simulator } = harness.stack;
    const payer = await harness.newAccount(0);
    const budget = await makeBudget(api, payer.consumerKey, { limit: 10 });
    const { key: spendKey } = await makeKey(api, payer.consumerKey, budget.id);
    const link = page.getByRole('link', { name: 'Top up $7.50' });
    const byCard = page.getByRole('button', { name: 'Top up $7.50 from the saved card' });
    await ask(api, payer, spendKey, 7.5);
    await window.enter(payer, '/approvals');
    await link.waitFor();
    assert.equal(await byCard.count(), 0);

    await window.go('/balance');
    await page.getByRole('button', { name: 'Set up' }).click();
    await page.getByLabel('Monthly limit in dollars').fill('1');
    await page.getByLabel('I agree').check();
    await page.getByRole('button', { name: 'Allow payments' }).click();
    await page.getByText('used this month').waitFor();
    await window.go('/approvals');
    await byCard.click();
    await link.click();
    await page.getByRole('button', { name: 'Pay $7.50' }).click();
    await page.waitForURL(`${simulator.url}/**`);
    await page.locator('button').click();
    await page.getByText('$7.50 was added to your balance.').waitFor();
    await window.go('/approvals');
    await page.getByText('Topped up').waitFor();
  });

  it('lists the developers that are always allowed, and takes that back', async () => {
    const { api } = harness.stack;
    const key = account.consumerKey;
    const budget = await makeBudget(api, key, { limit: 10, approveDevelopers: true });
    const { key: spendKey } = await makeKey(api, key, budget.id);
    const { id } = await ask(api, account, spendKey, 1);
    await decide(api, key, id, 'always');
    assert.equal((await spend(api, account, spendKey, 1)).status, 201);
    await window.enter(account, `/budgets?budget=${budget.id}`);
    const approved = page.getByRole('region', { name: 'Approved developers' });
    await approved.getByText(account.developerId).waitFor();
    await changeBudget(api, key, budget.id, { approveDevelopers: false });
    await page.reload();
    await page.getByText('If you require it again, these developers still need none.').waitFor();
    await changeBudget(api, key, budget.id, { approveDevelopers: true });
    await approved.getByRole('button', { name: `Remove ${account.developerId}` }).click();
    await approved.waitFor({ state: 'detached' });
    await until(async () => (await spend(api, account, spendKey, 1)).status === 403);
  });

  it('keeps developers that another window allowed meanwhile', async () => {
    const { api } = harness.stack;
    const key = account.consumerKey;
    const [other] = (await createTestAccounts(harness.stack.database.url, 1, 0)) as [TestAccount];
    const budget = await makeBudget(api, key, { limit: 1, approveDevelopers: true });
    await window.enter(account, `/approvals?budget=${budget.id}&developer=${account.developerId}`);
    const allow = page.getByRole('button', { name: 'Allow this developer' });
    await allow.waitFor();
    // As the other window does.
    await call(api, 'PATCH', `/v1/budgets/${budget.id}`, {
      key,
      body: { approvedDevelopers: [other.developerId] },
    });
    await allow.click();
    await page.getByText('may charge the budget').waitFor();
    assert.deepEqual((await showBudget(api, key, budget.id)).approvedDevelopers, [
      other.developerId,
      account.developerId,
    ]);
  });

  it('does not lower a limit that another window has raised further', async () => {
    const { api } = harness.stack;
    const key = account.consumerKey;
    const budget = await makeBudget(api, key, { limit: 1 });
    await window.enter(account, `/approvals?budget=${budget.id}&scope=total`);
    await page.getByLabel('Raise it to, in dollars').fill('2');
    await call(api, 'PATCH', `/v1/budgets/${budget.id}`, { key, body: { limit: 50 } });
    await page.getByRole('button', { name: 'Raise limit' }).click();
    await page.getByText('The limit is already $50.00.').waitFor();
    await page.getByText('$50.00 in total').waitFor();
    assert.equal((await showBudget(api, key, budget.id)).limit, 50);
  });
});
