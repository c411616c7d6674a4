/** Nothing that can be clicked moves while a page loads, or when it is updated: a click would miss it, or hit another. */
import assert from 'node:assert/strict';
import type { Page, Route } from 'playwright-core';
import { openForEach, type ConsoleHarness, type Window } from '../support/console.ts';
import { makeBudget } from '../support/budget-requests.ts';
import { charge } from '../support/http.ts';
import { until } from '../support/stack.ts';

/** The browser reports what moves. What moves after a click or a key is not counted. */
const WATCH = `
  window.moved = [];
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, sources } of list.getEntries()) {
      for (const { node, previousRect, currentRect } of hadRecentInput ? [] : sources) {
        const part = node instanceof Element ? node : node?.parentElement;
        const target = part?.closest('button, a, label, input') ?? part?.querySelector('button, a, label, input');
        if (!target || !part.closest('main')) continue;
        window.moved.push(target.textContent + ' with ' + part.textContent.slice(0, 30) + ': ' + (currentRect.y - previousRect.y));
      }
    }
  }).observe({ type: 'layout-shift', buffered: true });
`;
const PAGES = [
  '/developer',
  '/developer/settings',
  '/developer/tools',
  '/developer/webhooks',
  '/approvals',
  '/budgets',
  '/keys',
  '/security',
  '/statements',
  '/usage',
];
/** Only what can be seen is watched. */
const TALL = { viewport: { width: 1280, height: 2400 } };

describe('the console', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { window: TALL, stack: { env: { SAVE_TEST_CARD: 'false' } } },
  );

  beforeEach(() => page.addInitScript(WATCH));

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const moved = () => page.evaluate<string[]>('moved');
  /** The browser reports after it has drawn. */
  const drawn = () =>
    page.evaluate(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
    );

  async function saveCard(number: string): Promise<void> {
    await button('Save a card').click();
    await page.waitForURL(`${harness.stack.simulator.url}/**`);
    await page.getByLabel('Card number').fill(number);
    await button('Save card').click();
    await page.waitForURL('**/console/balance**');
    await page.getByRole('group', { name: `Visa •••• ${number.slice(-4)}` }).waitFor();
  }

  async function allowPayments(): Promise<void> {
    await button('Set up').click();
    await page.getByLabel('I agree').check();
    await button('Allow payments').click();
  }

  /** Opens the page while each read waits until all reads that were asked for after it are answered. */
  async function openSlowly(path: string): Promise<void> {
    const held: Route[] = [];
    await page.goto('about:blank');
    await page.route(
      ({ pathname }) => pathname.startsWith('/v1/') && !pathname.endsWith('/live'),
      (route) => void held.push(route),
    );
    await window.go(path);
    await until(async () => {
      const route = held.pop();
      if (route) {
        const answered = page.waitForResponse(route.request().url());
        await route.continue();
        await (await answered).finished();
      }
      await drawn();
      const isLoading = (await page.getByLabel('Loading').count()) > 0;
      return !isLoading && !route;
    });
    await page.unrouteAll();
  }

  it('leaves in place what can be clicked while the balance, the first steps and the saved cards arrive', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    await openSlowly('/balance');
    await page.getByText('1 of 3 done').waitFor();
    assert.deepEqual(await moved(), []);

    await allowPayments();
    await saveCard('4242 4242 4242 4242');
    await openSlowly('/balance');
    await button('Save a card').waitFor();
    assert.deepEqual(await moved(), []);
  });

  it('leaves in place what can be clicked when the last of the first steps is done', async () => {
    const account = await harness.newAccount(5);
    await makeBudget(harness.stack.api, account.consumerKey);
    await window.enter(account);
    await page.getByText('2 of 3 done').waitFor();
    await charge(harness.stack.api, account, { amount: 0.5 });
    await page.getByText('3 of 3 done').waitFor();
    await drawn();
    assert.deepEqual(await moved(), []);
    await page.reload();
    await button('Pay $25.00').waitFor();
    assert.equal(await page.getByText('Get started').count(), 0);
  });

  it('leaves in place what can be clicked while other pages load', async () => {
    const account = await harness.newAccount(5);
    await makeBudget(harness.stack.api, account.consumerKey, { name: 'Agent' });
    await charge(harness.stack.api, account, { amount: 0.5 });
    await window.enter(account);
    for (const path of PAGES) {
      await openSlowly(path);
      assert.deepEqual(await moved(), [], path);
    }
  });

  it('leaves in place what can be tapped on a phone while the balance loads', async () => {
    const account = await harness.newAccount(5);
    await charge(harness.stack.api, account, { amount: 0.5 });
    await page.setViewportSize({ width: 390, height: 4000 });
    await window.enter(account);
    await openSlowly('/balance');
    assert.deepEqual(await moved(), []);
  });

  it('leaves a button in place when the saved cards arrive late', async () => {
    const account = await harness.newAccount(5);
    await window.enter(account);
    await allowPayments();
    await saveCard('4242 4242 4242 4242');
    const { promise: isWanted, resolve: answer } = Promise.withResolvers<void>();
    await page.route('**/v1/cards', async (route) => {
      await isWanted;
      await route.continue();
    });
    await page.reload();
    const places = () =>
      Promise.all(['Withdraw consent', 'Turn on'].map((name) => button(name).boundingBox()));
    await button('Withdraw consent').waitFor();
    const before = await places();
    answer();
    await page.getByRole('group', { name: 'Visa •••• 4242' }).waitFor();
    assert.deepEqual(await places(), before);
  });
});
