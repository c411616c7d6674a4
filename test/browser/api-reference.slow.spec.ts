/**
 * The API reference in a real browser: it shows the document, calls the service, and loads nothing from other
 * hosts.
 */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startBrowser } from '../support/browser.ts';
import { until } from '../support/stack.ts';

describe('the API reference at /docs', () => {
  let api: TestApi;
  let browser: Browser;
  let page: Page;
  let account: TestAccount;
  let origins: Set<string>;
  let complaints: string[];

  before(async () => {
    [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
    account = await api.createAccount(10);
  });

  after(async () => {
    await browser?.close();
    await api?.stop();
  });

  beforeEach(async () => {
    origins = new Set();
    complaints = [];
    page = await browser.newPage();
    page.setDefaultTimeout(300_000);
    page.on('request', (request) => {
      if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin);
    });
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${api.url}/docs`);
    await page.waitForSelector('.opblock');
  });

  afterEach(() => page.close());

  it('lists the operations without an error, and asks no other host', async () => {
    for (const path of ['/v1/charges', '/v1/balance', '/v1/checkout', '/resolve']) {
      await page.locator(`.opblock-summary-path[data-path="${path}"]`).first().waitFor();
    }
    assert.deepEqual([...origins], [api.url]);
    assert.deepEqual(complaints, []);
  });

  it('calls the service with the key that the reader enters', async () => {
    await page.click('button.authorize');
    const consumer = page.locator('.auth-container', { hasText: 'consumerKey' });
    await consumer.getByRole('textbox').fill(account.consumerKey);
    await consumer.getByRole('button', { name: /apply|authorize/i }).click();
    await page.click('button.close-modal');
    const balance = page.locator('.opblock', {
      has: page.locator('[data-path="/v1/balance"]'),
    });
    await balance.locator('.opblock-summary-control').click();
    await balance.getByRole('button', { name: 'Try it out' }).click();
    await balance.getByRole('button', { name: 'Execute' }).click();
    const reply = balance.locator('.live-responses-table .response').first();
    // The page draws the answer in steps.
    await until(async () => /200.*"balance": 10/s.test((await reply.textContent()) ?? ''));
    assert.deepEqual([...origins], [api.url]);
  });
});
