/** From a refused charge to a successful one in a real browser, with nothing but the link in the refusal. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { startBrowser } from '../support/browser.ts';
import { call, charge } from '../support/http.ts';
import { loseDispute } from '../support/payments.ts';
import { startStack, until, type Stack } from '../support/stack.ts';

describe('a top-up link', () => {
  // Unpacking the browser, its first start and a stack, on a busy machine.
  let stack: Stack;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let account: TestAccount;
  let site: Server;
  let hosts: Set<string>;
  let problems: string[];

  before(async () => {
    [stack, browser] = await Promise.all([startStack(), startBrowser()]);
    site = createServer((_, response) => void response.end('the chat')).listen(0, '127.0.0.1');
  });
  after(async () => {
    site?.close();
    await browser?.close();
    await stack?.stop();
  });
  beforeEach(async () => {
    account = await createTestAccount(stack.database.url, 0.5);
    context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(300_000);
    hosts = new Set();
    problems = [];
    page.on('request', (request) => hosts.add(new URL(request.url()).origin));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  });
  afterEach(() => context.close());

  async function refusedLink(amount: number): Promise<string> {
    const refused = await charge(stack.api, account, { amount });
    assert.equal(refused.status, 402);
    return (refused.body as { error: { topUpUrl: string } }).error.topUpUrl;
  }

  async function pay(): Promise<void> {
    await page.waitForURL(`${stack.simulator.url}/**`);
    await page.click('button');
    await page.waitForURL(`${stack.api.url}/top-up**`);
    await page.getByRole('heading', { name: 'Payment received' }).waitFor();
  }

  async function balance(): Promise<number> {
    const { body } = await call(stack.api, 'GET', '/v1/balance', { key: account.consumerKey });
    return (body as { balance: number }).balance;
  }

  it('leads to a charge that succeeds, without a key, an account or a script', async () => {
    await page.goto(await refusedLink(13.2));
    // Nothing that would not be enough.
    const offers = await page.locator('.amounts button').allInnerTexts();
    assert.deepEqual(offers, ['$25', '$50', '$100']);
    await page.getByRole('button', { name: 'Pay $13.00' }).click();
    await pay();
    await page.getByText('The top-up of $13.00 was paid.').waitFor();
    assert.equal(await balance(), 13.5);
    assert.equal((await charge(stack.api, account, { amount: 13.2 })).status, 201);
    assert.deepEqual([...hosts].toSorted(), [stack.api.url, stack.simulator.url].toSorted());
    assert.deepEqual(
      problems.filter((text) => !text.includes('favicon')),
      [],
    );
  });

  it('signs nobody in: its cookie gives access to its own page only', async () => {
    await page.goto(await refusedLink(1));
    await page.getByRole('button', { name: '$25' }).click();
    await pay();
    for (const cookie of await context.cookies()) {
      if (!stack.api.url.includes(cookie.domain)) continue;
      assert.deepEqual([cookie.path, cookie.httpOnly, cookie.sameSite], ['/top-up', true, 'Lax']);
    }
    const answer = await page.request.get(`${stack.api.url}/v1/balance`);
    assert.equal(answer.status(), 401);
    assert.equal(await balance(), 25.5);
  });

  it('accepts another amount, and links back to the page that the developer registered', async () => {
    const home = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    const key = account.developerKey;
    await call(stack.api, 'PATCH', '/v1/developer', { key, body: { returnUrl: `${home}/home` } });
    const link = await refusedLink(1);
    await page.goto(`${link}&returnUrl=${encodeURIComponent(`${home}/chat/42`)}`);
    await page.getByLabel('Other amount').fill('7.25');
    await page.getByRole('button', { name: 'Continue' }).click();
    await pay();
    assert.equal(await balance(), 7.75);
    await page.getByRole('link', { name: 'Return to 127.0.0.1' }).click();
    await page.waitForURL(`${home}/chat/42`);

    await page.goto(`${link}&returnUrl=${encodeURIComponent('https://elsewhere.example/')}`);
    await page.getByRole('button', { name: 'Pay $5.00' }).click();
    await pay();
    const back = page.getByRole('link', { name: 'Return to' });
    assert.equal(await back.getAttribute('href'), `${home}/home`);
  });

  it('opens at most ten checkouts, and the same one for a repeated form', async () => {
    const link = new URL(await refusedLink(1)).searchParams.get('link') ?? '';
    const open = (attempt: string) =>
      fetch(`${stack.api.url}/top-up`, {
        method: 'POST',
        body: new URLSearchParams({ link, amount: '5', attempt }),
      });
    const attempts = Array.from({ length: 11 }, () => randomUUID());
    const statuses: number[] = [];
    // On a busy machine the page may not be ready (503): the same form finds it later.
    for (const attempt of attempts) {
      await until(async () => (await open(attempt)).status !== 503);
      statuses.push((await open(attempt)).status);
    }
    assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 200), 429]);
    assert.equal((await open(attempts[0] ?? '')).status, 200);
    const other = new URL(await refusedLink(2)).searchParams.get('link');
    assert.notEqual(other, link);
  });

  it('says the same of a payment whether the account owes money or not', async () => {
    await page.goto(await refusedLink(2));
    await page.getByRole('button', { name: 'Pay $5.00' }).click();
    await pay();
    const before = await page.innerText('body');
    assert.match(
      before,
      /The top-up of \$5\.00 was paid\. Run the tool again\. If it still refuses, sign in/,
    );
    await loseDispute(stack, account, { paid: 25, spent: 30.5 });
    await page.reload();
    assert.equal(await page.innerText('body'), before);
    await page.goto(await refusedLink(2));
    await page.getByRole('button', { name: 'Pay $5.00' }).click();
    await pay();
    assert.equal(await page.innerText('body'), before);
    assert.equal((await charge(stack.api, account, { amount: 2 })).status, 402);
  });

  it('says that no payment has arrived when the payment is canceled, and can be used again', async () => {
    await page.goto(await refusedLink(1));
    await page.getByRole('button', { name: 'Pay $5.00' }).click();
    await page.waitForURL(`${stack.simulator.url}/**`);
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'You left the payment page' }).waitFor();
    await page.getByRole('link', { name: 'Choose an amount' }).click();
    await page.getByRole('button', { name: '$10', exact: true }).click();
    await pay();
    await until(async () => (await balance()) === 10.5);
  });
});
