/** What consumers do in the console beyond the first visit, in a real browser against a real stack. */
import type { Page } from 'playwright-core';
import {
  closeUnblemished,
  openConsole,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';

describe('the console for consumers', function () {
  this.timeout(180_000);
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;

  before(async () => {
    harness = await openConsole();
  });
  after(() => harness?.close());
  const open = async (options?: Parameters<ConsoleHarness['open']>[0]) => {
    window = await harness.open(options);
    ({ page } = window);
  };
  afterEach(function () {
    return closeUnblemished(window, harness.stack, this.currentTest);
  });

  it('says that there is no such charge when a link leads to none', async () => {
    await open();
    const account = await harness.newAccount(1);
    await window.enter(account, `/usage?charge=chg_${'0'.repeat(32)}`);
    await page.getByRole('alert').getByText('There is no such charge.').waitFor();
    await window.go(`/developer/charges?charge=chg_${'0'.repeat(32)}`);
    await page.getByRole('alert').getByText('There is no such charge.').waitFor();
  });
});
