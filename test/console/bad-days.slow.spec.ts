/** Failures while a user is in the console, and hostile data from others. */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { Client } from 'pg';
import type { Page, Response } from 'playwright-core';
import { CONSENT_TERMS } from '../../src/domain/consent-terms.ts';
import { wireId } from '../../src/domain/ids.ts';
import type { ConsentReply } from '../../src/schemas/consent.ts';
import type { AccountKeysReply } from '../../src/schemas/keys.ts';
import type { ToolsReply } from '../../src/schemas/tools.ts';
import { call, charge } from '../support/http.ts';
import {
  openConsole,
  openPage,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { startApi, until } from '../support/stack.ts';
import { NASTY } from './hard-data.ts';

/** The pages that show names. */
const NAMING = ['/usage', '/statements', '/developer', '/developer/charges', '/developer/tools'];
const OUTSIDE = ['/sign-in', '/sign-up', '/set-password?token=x'];

/** The browser itself reports every refused request. */
const isNoRefusal = (text: string) => !/status of 4\d\d/.test(text);

describe('the console on bad days', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  let sql: Client;

  before(async () => {
    harness = await openConsole();
    sql = new Client({ connectionString: harness.stack.database.url });
    await sql.connect();
  });
  after(async () => {
    await sql?.end();
    await harness?.close();
  });
  beforeEach(async () => {
    window = await harness.open({ viewport: { width: 360, height: 740 } });
    ({ page } = window);
  });
  afterEach(() => window?.close());

  /** Whether the page is wider than its window, so that it slides sideways on a phone. */
  const overflow = () =>
    page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');

  /** A request of the same session, as another tab would send it. */
  const elsewhere = async (method: string, path: string, body: object) => {
    const options = { method, headers: { 'Content-Type': 'application/json' } };
    const init = JSON.stringify({ ...options, body: JSON.stringify(body) });
    const status = await page.evaluate<number>(`fetch('${path}', ${init}).then((r) => r.status)`);
    assert.equal(status, 200);
  };

  it('shows names as text, with any content', async () => {
    const account = await harness.newAccount(100);
    for (const tool of NASTY) await charge(harness.stack.api, account, { tool, amount: 0.000001 });
    await window.enter(account);
    for (const path of NAMING) {
      await window.go(path);
      await page
        .getByText(NASTY[0] ?? '', { exact: false })
        .first()
        .waitFor();
      assert.equal(await page.evaluate('window.broken'), undefined);
      assert.ok((await overflow()) <= 0, `${path} is wider than the window`);
    }
    const { body } = await call(harness.stack.api, 'GET', '/v1/tools', {
      key: account.developerKey,
    });
    for (const { id, name } of (body as ToolsReply).tools) {
      await window.go(`/developer/tools/${id}`);
      await page.getByRole('heading', { name, exact: true }).waitFor();
      await page.getByRole('region', { name: 'Charges' }).waitFor();
      assert.equal(await page.evaluate('window.broken'), undefined);
      assert.ok((await overflow()) <= 0, `the page of ${name} is wider than the window`);
    }
    assert.deepEqual(window.problems, []);
    assert.deepEqual([...window.hosts], [harness.stack.api.url]);
    const file = await page.request.get(`${harness.stack.api.url}/v1/usage.csv`);
    assert.ok(!(await file.text()).split('\n').some((line) => /,=|^=/.test(line)));
  });

  it('shows the page and no charge when a link names something else than a charge', async () => {
    const account = await harness.newAccount(1);
    await charge(harness.stack.api, account, { tool: 'paid-before', amount: 0.5 });
    await window.enter(account);
    for (const id of ['daily', '../balance', 'chg_1?limit=1', 'chg_/x', '%E0%A4']) {
      await window.go(`/usage?charge=${encodeURIComponent(id)}`);
      await page.getByText('paid-before').first().waitFor();
      assert.equal(await page.getByRole('dialog').count(), 0, id);
    }
    assert.deepEqual(window.problems, []);
  });

  it('shows the whole page when a parameter of its link is empty or no id', async () => {
    await window.enter(await harness.newAccount(0));
    for (const [heading, ...links] of [
      ['Budgets', '/budgets?budget=', '/budgets?budget=.', '/budgets?budget=..'],
      ['Charges', '/developer/charges?charge=.', '/developer/charges?charge=../balance'],
      ['Balance', '/balance?topUp=.', '/balance?result=paid&topUp=../balance'],
      ['Approvals', '/approvals?budget=&scope=total', '/approvals?budget=.&scope=total'],
      ['Approvals', '/approvals?approval=..', '/approvals?budget=.&developer=.'],
      ['Usage', '/usage?from=&to=', '/usage?charge=..'],
    ] as const) {
      for (const link of links) {
        await window.go(link);
        await page.getByRole('heading', { level: 1, name: heading }).waitFor();
        await page.waitForLoadState('networkidle');
        assert.equal(await page.getByRole('alert').count(), 0, link);
      }
    }
    assert.deepEqual(window.problems, []);
  });

  it('refuses amounts that the API refuses, says why, and keeps the input', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account, '/developer/tools');
    await page.getByRole('button', { name: 'Register tool' }).first().click();
    const form = await openedDialog(page, 'Register tool');
    const register = form.getByRole('button', { name: 'Register tool' });
    await form.getByLabel('Name').fill('priced');
    const price = form.getByLabel('Price per call in dollars');
    for (const amount of ['-1', '0.0000001', '1e3', '1,000', '٣', '0x10', 'NaN', '$5', '1 2']) {
      await price.fill(amount);
      await form.getByText('Enter a number with up to six decimals.').waitFor();
      assert.equal(await register.isDisabled(), true, amount);
    }
    await price.fill('1000000.000001');
    await register.click();
    await form.getByText(/^price is 1000000.000001. It must be/).waitFor();
    assert.equal(await price.inputValue(), '1000000.000001');
    await form.getByRole('button', { name: 'Close' }).click();
    await page.getByText('No tools yet').waitFor();

    await window.go('/balance');
    const topUp = page.getByLabel('Amount in dollars');
    for (const amount of ['4.99', '-25', '25.001', '1e3', '٣٠', '1000000', ' ']) {
      await topUp.fill(amount);
      await page.getByText('Enter $5.00 to $999,999.99, in whole cents.').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Pay', exact: true }).isDisabled(), true);
    }
    const { rows } = await sql.query('select from farebox.top_ups where status = $1', ['pending']);
    assert.equal(rows.length, 0);
  });

  it('says that a top-up was credited when somebody left its payment page, and that it is disputed', async () => {
    const account = await harness.newAccount(25);
    const { rows } = await sql.query<{ id: string }>(
      'select t.id from farebox.top_ups t join farebox.accounts a on a.id = t.account_id where a.email = $1',
      [account.email],
    );
    const topUpId = rows[0]?.id ?? '';
    await window.enter(account);
    const returned = (result: string) =>
      window.go(`/balance?topUp=${wireId('topUp', topUpId)}&result=${result}`);
    await returned('canceled');
    await page.getByText('$25.00 was added to your balance.').waitFor();
    await sql.query(`update farebox.top_ups set status = 'disputed' where id = $1`, [topUpId]);
    await returned('paid');
    await page.getByText('See the top-up of $25.00 under Top-ups: Disputed.').waitFor();
    await sql.query(`update farebox.top_ups set status = 'completed' where id = $1`, [topUpId]);
  });

  it('refuses names that would reorder the text beside them, and keeps what was typed', async () => {
    await window.enter(await harness.newAccount(0), '/developer/tools');
    await page.getByRole('button', { name: 'Register tool' }).first().click();
    const form = await openedDialog(page, 'Register tool');
    const name = form.getByLabel('Name');
    for (const bad of ['\u202Egpj.exe', 'two\u2067words', '\u200B']) {
      await name.fill(bad);
      await form.getByRole('button', { name: 'Register tool' }).click();
      await form
        .getByText('name must be printable text of 1 to 100 characters, not all blank.')
        .waitFor();
      assert.equal(await name.inputValue(), bad);
      await name.fill('');
      await form.getByLabel('Description').click();
    }
    assert.deepEqual(window.problems.filter(isNoRefusal), []);
  });

  it('takes 100,000 pasted characters in every field without breaking', async () => {
    const text = 'W'.repeat(100_000);
    const fillAll = async (path: string, opener?: string) => {
      await window.go(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      if (opener !== undefined) await page.getByRole('button', { name: opener }).first().click();
      const scope = opener === undefined ? page.locator('main') : await openedDialog(page, opener);
      const fields = scope.locator(
        'input:not([type]), input[type=text], input[type=email], input[type=password], textarea',
      );
      await fields.first().waitFor();
      for (const field of await fields.all()) {
        await field.focus();
        await page.keyboard.press('ControlOrMeta+a');
        await page.keyboard.insertText(text);
      }
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.ok((await overflow()) <= 0, `${path} is wider than the window`);
    };
    for (const path of OUTSIDE) await fillAll(path);
    await window.enter(await harness.newAccount(0));
    for (const [path, opener] of [
      ['/balance'],
      ['/usage'],
      ['/budgets', 'Create budget'],
      ['/keys', 'Create key'],
      ['/security'],
      ['/developer/charges'],
      ['/developer/tools', 'Register tool'],
      ['/developer/settings'],
      ['/developer/webhooks', 'Add endpoint'],
    ] as const) {
      await fillAll(path, opener);
    }
    assert.deepEqual(window.problems.filter(isNoRefusal), []);
  });

  it('lets two tabs change different things, and neither undoes the other’s change', async () => {
    const account = await harness.newAccount(0);
    const body = { name: 'shared', price: 0.02 };
    await call(harness.stack.api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await window.enter(account, '/developer/tools');
    const second = await openPage(window.context);
    await second.goto(`${harness.stack.api.url}/console/developer/tools`);
    for (const tab of [page, second]) {
      await tab.getByRole('button', { name: 'Edit shared' }).click();
    }
    await save(second, 'Price per call in dollars', '0.5');
    await save(page, 'Description', 'Words of the first tab.');
    await page.getByText('Words of the first tab.').waitFor();
    await page.getByText('$0.50', { exact: true }).waitFor();

    await second.getByRole('button', { name: 'Account', exact: true }).click();
    await second.getByRole('menuitem', { name: 'Sign out' }).click();
    await second.getByRole('heading', { name: 'Sign in' }).waitFor();
    // A page that reads in the background may have noticed already, and its dialog covers the link.
    await page.locator('a', { hasText: 'shared' }).first().dispatchEvent('click');
    await page.getByText('Your session has ended').waitFor();
  });

  it('keeps consumer keys closed that another tab closed, when an older tab saves a limit twice', async () => {
    await window.enter(await harness.newAccount(0), '/keys');
    const mayCharge = page.getByRole('switch', { name: 'Tools can charge consumer keys' });
    await mayCharge.waitFor({ state: 'attached' });
    await elsewhere('PATCH', '/v1/account-keys', { charge: 'closed' });
    await page.getByLabel('Daily limit for each developer (UTC)').fill('7');
    const saves = page.getByRole('button', { name: 'Save' });
    await saves.click();
    await page.getByText('Saved. It applies within a second.').waitFor();
    assert.equal(await mayCharge.isChecked(), false);
    const saved = page.waitForResponse((answer) => answer.request().method() === 'PATCH');
    await saves.click();
    const { charge: now, developerDayLimit } = (await (await saved).json()) as AccountKeysReply;
    assert.deepEqual({ now, developerDayLimit }, { now: 'closed', developerDayLimit: 7 });
  });

  it('changes only what was changed in the form of automatic top-ups, and turns none on that are off by now', async () => {
    await window.enter(await harness.newAccount(0));
    const termsVersion = CONSENT_TERMS.version;
    await elsewhere('POST', '/v1/consent', { ceiling: 100, termsVersion });
    await elsewhere('POST', '/v1/auto-top-up', { threshold: 5, amount: 25, ceiling: 100 });
    await window.go('/balance');
    const card = page.locator('section', {
      has: page.getByRole('heading', { name: 'Automatic top-up' }),
    });
    const open = card.getByRole('button', { name: 'Change' });
    const settings = () => page.evaluate(`fetch('/v1/consent').then((r) => r.json())`);
    const set = async () => ((await settings()) as ConsentReply).autoTopUp;

    await open.click();
    await elsewhere('POST', '/v1/auto-top-up', { threshold: 5, amount: 25, ceiling: 30 });
    await card.getByLabel('When the balance falls below').fill('7');
    await card.getByRole('button', { name: 'Save' }).click();
    await open.waitFor();
    const saved = { status: 'on', reason: null, threshold: 7, amount: 25, ceiling: 30 };
    assert.deepEqual(await set(), saved);

    await open.click();
    await elsewhere('POST', '/v1/auto-top-up/off', {});
    await card.getByLabel('When the balance falls below').fill('8');
    await card.getByRole('button', { name: 'Save' }).click();
    await card.getByText('Automatic top-ups were turned off elsewhere.').waitFor();
    assert.equal(await set(), null);
    await card.getByRole('button', { name: 'Turn on' }).click();
    await open.waitFor();
    assert.deepEqual(await set(), { ...saved, threshold: 8 });
  });

  it('changes no monthly limit that was changed elsewhere before it has said so', async () => {
    await window.enter(await harness.newAccount(0));
    const termsVersion = CONSENT_TERMS.version;
    await elsewhere('POST', '/v1/consent', { ceiling: 100, termsVersion });
    await window.go('/balance');
    await page.getByRole('button', { name: 'Change limit' }).click();
    await elsewhere('POST', '/v1/consent', { ceiling: 40, termsVersion });
    await page.getByLabel('I agree').check();
    await page.getByRole('button', { name: 'Save limit' }).click();
    await page.getByText('The monthly limit was changed elsewhere, to $40.00.').waitFor();
    await elsewhere('POST', '/v1/consent/withdraw', {});
    await page.getByRole('button', { name: 'Save limit' }).click();
    await page.getByText('The consent was withdrawn elsewhere.').waitFor();
    await page.getByRole('button', { name: 'Allow payments' }).click();
    await page.getByText('of $100.00 used this month').waitFor();
  });

  it('can be neither framed nor made to act by another site', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account);
    const { url } = harness.stack.api;
    await page.route('http://elsewhere.example/', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body:
          `<iframe src="${url}/console/balance"></iframe><form method="post" enctype="text/plain" ` +
          `action="${url}/v1/keys"><input name='{"kind":"consumer","name":"' value='"}'></form>`,
      }),
    );
    await page.goto('http://elsewhere.example/');
    const framed = await until(() => page.frames().find((frame) => frame !== page.mainFrame()));
    await until(() => framed.url().startsWith('chrome-error:'));
    const answer = page.waitForResponse(`${url}/v1/keys`);
    await page.evaluate('document.forms[0].submit()');
    assert.ok([401, 403, 415].includes((await answer).status()));
    const keys = await sql.query(
      'select from farebox.api_keys k join farebox.accounts a on a.id = k.account_id where a.email = $1',
      [account.email],
    );
    assert.equal(keys.rowCount, 3);
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
    const files: Response[] = [];
    page.on('response', (response) => {
      if (/\.(js|css)$/.test(response.url())) files.push(response);
    });
    await window.go('/sign-in');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    let bytes = 0;
    for (const file of files) {
      assert.match(file.headers()['cache-control'] ?? '', /immutable/);
      bytes += gzipSync(await file.body()).length;
    }
    assert.ok(bytes > 50_000 && bytes < 250_000, `${bytes} bytes with gzip`);
    for (const path of [
      '/console/assets/none.js',
      '/console/assets/none.js?tries=-Infinity',
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
    const form = await openedDialog(page, 'Register tool');
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

/** In the dialog that is open in the tab. */
async function save(tab: Page, label: string, text: string): Promise<void> {
  const form = await openedDialog(tab);
  await form.getByLabel(label).fill(text);
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
}
