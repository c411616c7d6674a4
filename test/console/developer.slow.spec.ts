/** What developers do in the console beyond the first visit, in a real browser against a real stack. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { call, charge } from '../support/http.ts';
import { openForEach, openedDialog, type ConsoleHarness, type Window } from '../support/console.ts';
import { balanceOf, openCheckout, pay } from '../support/payments.ts';
import { until } from '../support/stack.ts';

const run = promisify(execFile);
/** Where the client is found by its name. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('the console for developers', () => {
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  // One test has a charge answered with 500.
  const expected = /status of (4\d\d|500)/;
  openForEach(
    (opened) => {
      ({ harness, window, page } = opened);
    },
    { expected },
  );

  const button = (name: string | RegExp) => page.getByRole('button', { name }).first();
  const seeMoney = (text: string) => page.getByText(text, { exact: true }).first().waitFor();

  it('fills test keys and a tool into code that runs in a shell, in Node.js and from the page', async () => {
    const account = await harness.newAccount(1);
    const body = { name: "it's mine", price: 0.25 };
    await call(harness.stack.api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await window.enter(account, '/developer');
    await button('Create test keys').click();
    await button('Run').click();
    await page.getByLabel('Response').getByText('"balance": 19.75').waitFor();

    const code = async (language: string) => {
      await page.getByRole('tab', { name: language }).click();
      return page.getByLabel(`${language} example`).innerText();
    };
    const shell = await run('sh', ['-c', `${await code('curl')} --silent --show-error`]);
    assert.equal((JSON.parse(shell.stdout) as { balance: number }).balance, 19.5);
    const program = `${await code('Node.js')}\nconsole.log(charge.balance);`;
    const node = await run(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT });
    assert.equal(node.stdout, '19.25\n');
    const python = await code('Python');
    assert.match(python, /"Idempotency-Key": str\(uuid\.uuid4\(\)\).*\n.*\n +timeout=10,\n/);
    assert.match(python, /\nresponse\.raise_for_status\(\).*\ncharge = response\.json\(\)/);

    await window.go('/developer/settings');
    await page.getByText('Developer Dashboard', { exact: true }).last().waitFor();
    await window.go('/balance');
    await page.getByText('$1.00', { exact: true }).first().waitFor();
  });

  it('fills units into the code of a tool with a rate card, and charges by the card', async () => {
    const account = await harness.newAccount(1);
    const card = { input: 0.0000025, 'images.large': 0.04 };
    const body = { name: 'llm', card };
    const key = account.developerKey;
    const made = await call(harness.stack.api, 'POST', '/v1/tools', { key, body });
    const { id } = made.body as { id: string };
    const code = async (language: string) => {
      await page.getByRole('tab', { name: language }).click();
      return page.getByLabel(`${language} example`).innerText();
    };
    await window.enter(account, '/developer');
    await page.getByLabel('Node.js example').getByText('tool: "llm"').waitFor();
    await window.go(`/developer/tools/${id}`);
    await page.getByLabel('Consumer key', { exact: true }).fill(account.consumerKey);
    await button('Charge $0.0425').click();
    await page.getByLabel('Response').getByText('"balance": 0.9575').waitFor();
    await button('Create test keys').click();
    await button('Run').click();
    await page.getByLabel('Response').getByText('"cardVersion": 1').waitFor();

    const shell = await run('sh', ['-c', `${await code('curl')} --silent --show-error`]);
    assert.equal((JSON.parse(shell.stdout) as { balance: number }).balance, 19.915);
    const program = `${await code('Node.js')}\nconsole.log(charge.amount, charge.balance);`;
    const node = await run(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT });
    assert.equal(node.stdout, '0.0425 19.8725\n');
    const python = await code('Python');
    assert.match(python, /, "tool": "llm", "units": \{ "images\.large": 1, "input": 1000 \}\},\n/);

    // Test mode keeps its own prices, until the code has a unit that its card does not have.
    for (const [version, changed] of [
      [1, { ...card, input: 0.000005 }],
      [2, { ...card, output: 0.000005 }],
    ] as const) {
      const changes = { card: changed };
      await call(harness.stack.api, 'PATCH', `/v1/tools/${id}`, { key, body: changes });
      await page.reload();
      await button('Create test keys').click();
      await button('Run').click();
      await page.getByLabel('Response').getByText(`"cardVersion": ${version}`).waitFor();
    }

    await window.go('/developer/settings');
    await button('Create key').click();
    const created = await openedDialog(page, 'Create key');
    await created.getByRole('button', { name: 'Create key' }).click();
    await openedDialog(page, 'Your new key');
    assert.match(await code('Node.js'), /tool: "llm",\n +units: \{ /);
  });

  it('stays signed in when a test key that the page runs with was revoked elsewhere', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account, '/developer');
    const made = page.waitForResponse(
      (response) =>
        response.url().endsWith('/v1/keys') &&
        (response.request().postData() ?? '').includes('developer'),
    );
    await button('Create test keys').click();
    const { id } = (await (await made).json()) as { id: string };
    await button('Run').waitFor();
    await page.evaluate(`fetch('/v1/keys/${id}/revoke', { method: 'POST' })`);
    const refused = page.getByRole('alert').getByText('This request needs an active secret key');
    // The key may work for another second.
    await until(async () => {
      const answer = page.waitForResponse('**/v1/charges');
      await button('Run').click();
      return (await answer).status() === 401;
    });
    await refused.waitFor();
    await button('Run').waitFor();
  });

  it('charges once when it is run again after an answer that leaves the outcome open', async () => {
    const account = await harness.newAccount(0);
    await window.enter(account, '/developer');
    await button('Create test keys').click();
    await button('Run').waitFor();
    const answers = [
      { status: 500, code: 'outcome_unknown' },
      { status: 409, code: 'idempotency_key_in_use' },
    ];
    await page.route('**/v1/charges', async (route) => {
      const answer = answers.shift();
      if (!answer) return route.continue();
      await route.fetch();
      const error = { code: answer.code, message: `The first answer was ${answer.status}` };
      await route.fulfill({ status: answer.status, json: { error } });
    });
    await button('Run').click();
    await page.getByText('You can safely try again: it will happen only once.').waitFor();
    await button('Run').click();
    await page.getByText('The first answer was 409.').waitFor();
    await button('Run').click();
    await page.getByLabel('Response').getByText('"balance": 19.98').waitFor();
    await button('Run').click();
    await page.getByLabel('Response').getByText('"balance": 19.96').waitFor();
  });

  it('shows earnings over time of one tool, and keeps the tool and the period in the URL', async () => {
    const account = await harness.newAccount(10);
    await charge(harness.stack.api, account, { tool: 'search', amount: 2 });
    await charge(harness.stack.api, account, { tool: 'translate', amount: 0.5 });
    await window.enter(account, '/developer');
    await page.getByText('Today’s revenue (UTC)').waitFor();
    await page.getByRole('combobox', { name: 'Earnings of' }).click();
    await page.getByRole('option', { name: 'translate' }).click();
    await page.waitForURL('**/developer?tool=translate');
    await page.getByText('7 days').click();
    await page.waitForURL('**/developer?days=7&tool=translate');
    await page.reload();
    const card = page.locator('section', {
      has: page.getByRole('heading', { name: 'Earnings over time' }),
    });
    await card.getByText('Table').click();
    const rows = page.getByRole('region', { name: 'Earned by day' }).getByRole('row');
    await rows.last().getByText('$0.50').waitFor();
    assert.equal(await rows.count(), 8);
  });

  it('keeps to the charges of one consumer when a day or a tool is chosen, until all are asked for', async () => {
    const account = await harness.newAccount(1);
    const payer = await harness.newAccount(1);
    const paid = { ...account, consumerKey: payer.consumerKey };
    await charge(harness.stack.api, account, { tool: 'of-another', amount: 0.2 });
    await charge(harness.stack.api, paid, { tool: 'of-the-payer', amount: 0.1 });
    await window.enter(account, `/developer/charges?consumerId=${payer.consumerId}`);
    await page.getByText('of-the-payer', { exact: true }).waitFor();
    await page.getByLabel('From').fill('2020-01-01');
    await page.waitForURL(/from=2020-01-01/);
    assert.equal(new URL(page.url()).searchParams.get('consumerId'), payer.consumerId);
    await page.getByText('of-the-payer', { exact: true }).waitFor();
    assert.equal(await page.getByText('of-another', { exact: true }).count(), 0);
    await button('Clear').click();
    await button('One consumer only · Show all').click();
    await page.getByText('of-another', { exact: true }).waitFor();
  });

  it('counts the charges that a top-up paid for, and lists all of its consumer', async () => {
    const account = await harness.newAccount(0);
    const payer = await harness.newAccount(5);
    const paid = { ...account, consumerKey: payer.consumerKey };
    await charge(harness.stack.api, paid, { tool: 'search', amount: 5 });
    await pay((await openCheckout(harness.stack.api, payer, 20)).sessionUrl);
    await until(async () => (await balanceOf(harness.stack.api, payer)) === 20);
    await charge(harness.stack.api, paid, { tool: 'fetch', amount: 1 });
    await window.enter(account, '/developer/top-ups');
    const all = page.getByRole('link', { name: 'Charges of this consumer' });
    await all.first().waitFor();
    assert.equal(await all.count(), 2);
    assert.equal(await page.getByRole('link', { name: '1', exact: true }).count(), 0);
    await all.first().click();
    for (const tool of ['search', 'fetch']) {
      await page.getByText(tool, { exact: true }).waitFor();
    }
  });

  it('does not take the price of a tool away when it is archived over a price that is no number', async () => {
    const account = await harness.newAccount(1);
    const body = { name: 'search', price: 0.25 };
    await call(harness.stack.api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await window.enter(account, '/developer/tools');
    await button('Edit search').click();
    const form = await openedDialog(page, 'Edit tool');
    await form.getByLabel('Price per call').fill('0,50');
    await form.getByText('Enter a number with up to six decimals.').waitFor();
    const archive = form.getByRole('button', { name: 'Archive' });
    assert.equal(await archive.isDisabled(), true);
    await form.getByLabel('Price per call').fill('0.50');
    await archive.click();
    await page.getByText('No tools yet').waitFor();
    await page.getByText('Archived', { exact: true }).first().click();
    await seeMoney('$0.50');
  });

  it('sets prices by the unit, and shows the version of the card on a charge', async () => {
    const account = await harness.newAccount(1);
    await window.enter(account, '/developer/tools');
    await button('Register tool').click();
    const form = await openedDialog(page, 'Register tool');
    await form.getByLabel('Name', { exact: true }).fill('llm');
    for (const [index, [unit, price]] of [
      ['input', '.0000025'],
      ['cached', '0.00000000025'],
      ['pages', '0.50'],
    ].entries()) {
      await form.getByRole('button', { name: 'Add unit' }).click();
      await form.getByLabel(`Name of unit ${index + 1}`).fill(unit ?? '');
      await form.getByLabel(`Price of unit ${index + 1}`).fill(price ?? '');
    }
    const register = form.getByRole('button', { name: 'Register tool' });
    for (const [field, wrong, right] of [
      ['Name of unit 3', 'input', 'pages'],
      ['Name of unit 3', '3 pages', 'pages'],
      ['Price of unit 3', '0.0000000000001', '0.50'],
      ['Price of unit 3', '1000.01', '0.50'],
      ['Name of unit 3', '', 'pages'],
      ['Price of unit 3', '', '0.50'],
    ] as const) {
      await form.getByLabel(field).fill(wrong);
      await form
        .getByText(/^Enter /)
        .first()
        .waitFor();
      assert.equal(await register.isDisabled(), true);
      await form.getByLabel(field).fill(right);
    }
    await form.getByRole('button', { name: 'Add unit' }).click();
    await form.getByLabel('Name of unit 4').waitFor();
    assert.equal(await register.isEnabled(), true);
    await register.click();
    await page.getByText('By the unit').first().waitFor();
    await page.getByRole('link', { name: 'llm' }).click();
    const card = page.getByRole('region', { name: 'Rate card' });
    await card.getByText('pages').waitFor();
    assert.deepEqual(await card.getByRole('row').allInnerTexts(), [
      'Unit\tPrice',
      'cached\t$0.00000000025',
      'input\t$0.0000025',
      'pages\t$0.50',
    ]);

    await button('Edit tool').click();
    const edited = await openedDialog(page, 'Edit tool');
    assert.equal(await edited.getByLabel('Price of unit 1').inputValue(), '0.00000000025');
    await edited.getByRole('button', { name: 'Remove unit 3' }).click();
    await edited.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Version 2', { exact: true }).waitFor();
    const body = { apiKey: account.consumerKey, tool: 'llm', units: { input: 1_000 } };
    const key = account.developerKey;
    assert.equal((await call(harness.stack.api, 'POST', '/v1/charges', { key, body })).status, 201);
    await window.enter(account, '/usage');
    await button(/^Charge for llm/).click();
    const sheet = await openedDialog(page, 'Charge');
    await sheet.getByText('Version 2', { exact: true }).waitFor();
  });

  it('shows a developer what callers were refused, with the request id to quote', async () => {
    const account = await harness.newAccount(1);
    await window.enter(account, '/developer/refusals');
    await page.getByText('No refused calls').waitFor();
    const refused = await charge(harness.stack.api, account, { tool: 'search', amount: 5 });
    await page.getByRole('link', { name: 'insufficient_balance' }).waitFor();
    await page.getByText(refused.headers.get('x-request-id') ?? '').waitFor();
    await page.getByText('7 days').click();
    await page.waitForURL('**/developer/refusals?hours=168');
    await page.getByRole('link', { name: 'insufficient_balance' }).waitFor();
  });

  it('shows refused calls of one code and one tool, and keeps both in the URL', async () => {
    const account = await harness.newAccount(1);
    const { api } = harness.stack;
    await window.enter(account, '/developer/refusals');
    await charge(api, account, { tool: 'search', amount: 5 });
    await charge(api, account, { tool: 'translate', amount: 5 });
    await charge(api, account, { tool: 'translate', amount: -1 });
    const rows = page.getByRole('region', { name: 'Refused calls' }).getByRole('row');
    await until(async () => (await rows.count()) === 4);
    await page.getByRole('combobox', { name: 'Tool' }).click();
    await page.getByRole('option', { name: 'translate' }).click();
    await until(async () => (await rows.count()) === 3);
    await page.getByRole('combobox', { name: 'Error' }).click();
    await page.getByRole('option', { name: 'insufficient_balance' }).click();
    await page.waitForURL('**/refusals?code=insufficient_balance&tool=translate');
    await page.reload();
    await until(async () => (await rows.count()) === 2);
    const details = page.getByRole('link', { name: 'insufficient_balance' });
    assert.equal(await details.getAttribute('href'), '/docs/errors/insufficient_balance');
  });

  it('shows a developer earnings as they come in', async () => {
    const account = await harness.newAccount(100);
    const polling = await harness.open();
    await polling.page.route('**/v1/earnings/live', (route) => route.abort());
    await polling.enter(account, '/developer');
    await polling.page.getByText('No charges yet').waitFor();
    // Without timers, only an event of the stream can tell the page.
    await page.addInitScript('window.setInterval = () => 0');
    await window.enter(account, '/developer');
    await page.getByText('No charges yet').waitFor();
    await charge(harness.stack.api, account, { tool: 'search', amount: 0.02 });
    await charge(harness.stack.api, account, { tool: 'translate', amount: 1.000001 });
    await seeMoney('$1.020001');
    await until(async () => (await page.getByText('$1.020001', { exact: true }).count()) === 2);
    await polling.page.getByText('$1.020001', { exact: true }).first().waitFor();
    await polling.close();
    const rows = page.getByRole('region', { name: 'Charges' }).getByRole('row');
    await until(async () => (await rows.count()) === 3);
    await page
      .locator('section', { has: page.getByRole('heading', { name: 'Revenue by tool' }) })
      .getByText('Table')
      .click();
    const byTool = page.getByRole('region', { name: 'Revenue by tool' });
    const sums = /translate\s+\$1\.000001\s+search\s+\$0\.020000/;
    await until(async () => sums.test(await byTool.innerText()));
  });

  it('shows each sum as it comes in, and reads the lists less often while charges keep coming', async () => {
    const account = await harness.newAccount(100);
    await page.addInitScript(`
      const send = window.fetch;
      window.askedAt = [];
      window.fetch = (...request) => {
        if (request[0] === '/v1/charges?limit=10') window.askedAt.push(performance.now());
        return send(...request);
      };
    `);
    await window.enter(account, '/developer');
    await page.getByText('No charges yet').waitFor();
    let total = 0;
    await until(async () => {
      await charge(harness.stack.api, account, { tool: 'search', amount: 0.01 });
      total += 1;
      const [last = 0, before = last] = (
        await page.evaluate<number[]>('window.askedAt')
      ).toReversed();
      return last - before >= 8_000;
    });
    await seeMoney(`$${(total / 100).toFixed(2)}`);
  });
});
