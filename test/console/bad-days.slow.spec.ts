/** Failures while a user is in the console, and hostile data from others. */
import assert from 'node:assert/strict';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { call, charge } from '../support/http.ts';
import { openConsole, type ConsoleHarness, type Window } from '../support/console.ts';
import { startApi, until } from '../support/stack.ts';

const PAGES = [
  '/balance',
  '/usage',
  '/statements',
  '/budgets',
  '/keys',
  '/security',
  '/developer',
  '/developer/charges',
  '/developer/refusals',
  '/developer/tools',
  '/developer/top-ups',
  '/developer/settings',
];
const OUTSIDE = ['/sign-in', '/sign-up', '/set-password?token=x'];

/** Names that break out of markup, lines and layouts that do not contain them. */
const NASTY = [
  '<img src=x onerror="window.broken=1">',
  '</script><script>window.broken=1</script>',
  '🦊'.repeat(100),
  'a'.repeat(100),
  '{{constructor.constructor("window.broken=1")()}}',
  '=HYPERLINK("https://elsewhere.example")',
  '__proto__',
  'اختبار שלום',
];

describe('the console on bad days', function () {
  this.timeout(240_000);
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  before(async () => {
    harness = await openConsole();
  });
  after(() => harness?.close());
  beforeEach(async () => {
    window = await harness.open({ viewport: { width: 360, height: 740 } });
    ({ page } = window);
  });
  afterEach(() => window?.close());

  async function violations(): Promise<string[]> {
    await page.evaluate(axe.source);
    const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
      `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
    );
    return found
      .filter(({ impact }) => ['serious', 'critical', 'moderate'].includes(impact))
      .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
  }

  /** Whether the page is wider than its window, so that it slides sideways on a phone. */
  const overflow = () =>
    page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`is accessible on a phone in ${colorScheme} colors`, async () => {
      await page.emulateMedia({ colorScheme });
      const account = await harness.newAccount(100);
      for (const tool of NASTY)
        await charge(harness.stack.api, account, { tool, amount: 0.000001 });
      const found: string[] = [];
      const look = async (path: string) => {
        for (const violation of await violations()) found.push(`${path}: ${violation}`);
      };
      for (const path of OUTSIDE) {
        await window.go(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await look(path);
      }
      await window.enter(account);
      for (const path of PAGES) {
        await window.go(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
        await look(path);
        if ((await overflow()) > 0) found.push(`${path}: wider than the window`);
      }
      assert.deepEqual(found, []);
      assert.deepEqual(window.problems, []);
      assert.deepEqual([...window.hosts], [harness.stack.api.url]);
    });
  }

  it('shows names as text, with any content', async () => {
    const account = await harness.newAccount(100);
    for (const tool of NASTY) await charge(harness.stack.api, account, { tool, amount: 0.000001 });
    await window.enter(account);
    for (const path of ['/developer', '/usage', '/developer/tools', '/statements']) {
      await window.go(path);
      await page
        .getByText(NASTY[0] ?? '', { exact: false })
        .first()
        .waitFor();
      assert.equal(await page.evaluate('window.broken'), undefined);
    }
    const file = await page.request.get(`${harness.stack.api.url}/v1/usage.csv`);
    assert.ok(!(await file.text()).split('\n').some((line) => /,=|^=/.test(line)));
  });

  it('sends only its own script, and cannot be framed', async () => {
    for (const path of ['/console/', '/top-up', '/docs/errors']) {
      const policy = (await fetch(harness.stack.api.url + path)).headers.get(
        'content-security-policy',
      );
      assert.match(policy ?? '', /default-src 'none'/);
      assert.match(policy ?? '', /frame-ancestors 'none'/);
      assert.ok(!/script-src[^;]*(unsafe|http|\*)/.test(policy ?? ''), path);
    }
    const html = await (await fetch(`${harness.stack.api.url}/console/`)).text();
    assert.ok(!/<script(?![^>]*\bsrc=)/.test(html), 'no inline script');
  });

  it('caches files named by their content forever, and loads within its budget', async () => {
    let bytes = 0;
    page.on('response', (response) => {
      if (!/\.(js|css)$/.test(response.url())) return;
      assert.match(response.headers()['cache-control'] ?? '', /immutable/);
      bytes += Number(response.headers()['content-length']);
    });
    await window.go('/sign-in');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.ok(bytes > 50_000 && bytes < 250_000, `${bytes} bytes, packed`);
    for (const path of [
      '/console/assets/none.js',
      '/console/assets/../index.html',
      '/console/assets/%2e%2e%2findex.html',
    ]) {
      const answer = await fetch(harness.stack.api.url + path);
      assert.ok(
        answer.status === 404 || (answer.headers.get('content-type') ?? '').includes('html'),
      );
    }
  });

  it('is reached from the root, and from the address that a start prints', async () => {
    for (const path of ['', '/', '/console', '/console/']) {
      await page.goto(harness.stack.api.url + path);
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    }
    await window.go('/no/such/page');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  });

  it('says that a key was revoked elsewhere, and creates no second one', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account, '/keys');
    await page.getByRole('button', { name: /^Actions for/ }).click();
    await page.getByRole('menuitem', { name: 'Roll key' }).click();
    const second = await harness.open();
    await second.enter(account, '/keys');
    await second.page.getByRole('button', { name: /^Actions for/ }).click();
    await second.page.getByRole('menuitem', { name: 'Revoke key' }).click();
    await second.page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
    await second.page.getByText('The key was revoked.').waitFor();
    await second.close();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll key' }).click();
    await page.getByText('There is no such key, or it is no longer active.').waitFor();
    const left = await call(harness.stack.api, 'GET', '/v1/balance', { key: account.consumerKey });
    assert.equal(left.status, 401);
  });

  it('keeps the user’s input while the service is down, and continues when it is back', async () => {
    const account = await harness.newAccount(1);
    await window.enter(account, '/developer/tools');
    await page.getByRole('button', { name: 'Register tool' }).first().click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('typed while it was away');
    await harness.stack.api.stop();
    await form.getByRole('button', { name: 'Register tool' }).click();
    await form
      .getByText('Farebox cannot be reached. Your change may not have been saved.')
      .waitFor();
    assert.equal(await form.getByLabel('Name').inputValue(), 'typed while it was away');
    const again = await startApi({ env: harness.stack.env });
    try {
      await page
        .getByText('Farebox cannot be reached', { exact: true })
        .waitFor({ state: 'detached' });
      await form.getByRole('button', { name: 'Register tool' }).click();
      await page.getByRole('link', { name: 'typed while it was away' }).waitFor();
    } finally {
      await again.stop();
      await until(async () => (await fetch(again.url).catch(() => undefined)) === undefined);
    }
  });
});
