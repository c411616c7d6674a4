/** The page that refusals send a consumer to, in a real browser: from a key to a credited balance. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { createTestAccounts } from '../support/accounts.ts';
import { startBrowser } from '../support/browser.ts';
import { call } from '../support/http.ts';
import { startStack, until, type Stack } from '../support/stack.ts';

describe('the top-up page', () => {
  // Unpacking the browser, its first start and a stack, on a busy machine.
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  let asked: string[];

  before(async () => {
    [stack, browser] = await Promise.all([startStack(), startBrowser()]);
  });

  after(async () => {
    await browser?.close();
    await stack?.stop();
  });

  beforeEach(async () => {
    page = await browser.newPage();
    asked = [];
    page.on('request', (request) => asked.push(new URL(request.url()).origin));
  });

  afterEach(() => page.close());

  it('takes a consumer to checkout and back, and the balance is credited', async () => {
    const [account] = await createTestAccounts(stack.database.url, 1, 0);
    const { consumerKey } = account!;
    await page.goto(`${stack.api.url}/top-up?amount=12.5`);
    await page.fill('#key', consumerKey);
    await page.click('button');
    await page.waitForURL(`${stack.simulator.url}/**`);
    await page.fill('input[name=card]', '4242 4242 4242 4242');
    await page.click('button[type=submit], button:not([type])');
    await page.waitForURL(`${stack.api.url}/**`);
    assert.match((await page.textContent('#outcome')) ?? '', /credited/);
    await until(async () => {
      const { body } = await call(stack.api, 'GET', '/v1/balance', { key: consumerKey });
      return (body as { balance: number }).balance === 12.5;
    });
    const origins = new Set(asked);
    assert.deepEqual([...origins].toSorted(), [stack.api.url, stack.simulator.url].toSorted());
    assert.ok(!page.url().includes(consumerKey), 'the key is in no address');
  });

  it('says what is wrong with a key instead of going anywhere', async () => {
    await page.goto(`${stack.api.url}/top-up`);
    await page.fill('#key', 'fare_ck_live_nobody');
    await page.click('button');
    await page.waitForFunction(`document.getElementById('outcome').textContent !== ''`);
    assert.match((await page.textContent('#outcome')) ?? '', /consumer key/);
    assert.equal(page.url(), `${stack.api.url}/top-up`);
  });
});
