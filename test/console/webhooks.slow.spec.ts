/** What an owner does with webhook endpoints in the console, in a real browser. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import {
  copiedBy,
  openConsole,
  openedDialog,
  type ConsoleHarness,
  type Window,
} from '../support/console.ts';
import { startReceiver, verify, type Receiver } from '../support/receiver.ts';
import { until } from '../support/stack.ts';

describe('the webhooks page', () => {
  // A stack, a browser and a build, on a busy machine.
  let harness: ConsoleHarness;
  let window: Window;
  let page: Page;
  let receiver: Receiver;

  before(async () => {
    receiver = await startReceiver();
    harness = await openConsole({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    window = await harness.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    ({ page } = window);
  });
  after(async () => {
    await window?.close();
    await harness?.close();
    await receiver?.stop();
  });

  const button = (name: string) => page.getByRole('button', { name }).first();
  const choose = async (item: string) => {
    await page.getByRole('button', { name: /^Actions for/ }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  const answer = async (question: string, name: string) => {
    const dialog = await openedDialog(page, question);
    await dialog.getByRole('button', { name, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const copiedSecret = async () => {
    await page.getByText('Copy this secret now').waitFor();
    const secret = await copiedBy(page, 'Copy secret');
    await button('Done').click();
    return secret;
  };

  it('adds an endpoint, tests it, sends an event again, rolls the secret, disables and deletes it', async () => {
    await window.enter(await harness.newAccount(0), '/developer/webhooks');
    await page.getByText('No endpoints yet').waitFor();
    await button('Add endpoint').click();
    const dialog = await openedDialog(page, 'Add endpoint');
    await dialog.getByLabel('URL').fill('http://10.0.0.1');
    await dialog.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByText('url must be an https URL.').waitFor();
    await dialog.getByLabel('URL').fill(receiver.url);
    await dialog.getByRole('button', { name: 'Add endpoint' }).click();
    const secret = await copiedSecret();
    await page.getByText('Active', { exact: true }).waitFor();

    await choose('Send test event');
    await page.getByText('Delivered', { exact: true }).waitFor();
    const [first] = receiver.events;
    assert.ok(first);
    verify(secret, first);
    await button('Details').click();
    await page.getByText(first.id).waitFor();
    await page.getByText('received', { exact: true }).waitFor();
    await button('Send again').click();
    await page.getByText('The event will be sent again.').waitFor();
    await until(() => receiver.events.length === 2);
    assert.equal(receiver.events[1]?.id, first.id);

    await choose('Roll secret');
    await answer('Roll secret', 'Cancel');
    await choose('Roll secret');
    await answer('Roll secret', 'Roll secret');
    const rolled = await copiedSecret();
    await choose('Send test event');
    const signedTwice = await until(() => receiver.events[2]);
    for (const each of [secret, rolled]) verify(each, signedTwice);

    await page.getByLabel('Send balance.low when the balance falls below').fill('5.50');
    await button('Save').click();
    await page.getByText('Saved.').waitFor();

    await choose('Disable');
    await page.getByText('Disabled', { exact: true }).waitFor();
    await choose('Show deliveries');
    await choose('Enable');
    await page.getByText('Active', { exact: true }).waitFor();
    await button('Details').click();
    await button('Send again').click();
    await until(() => receiver.events.length === 4);
    await choose('Delete');
    await answer('Delete endpoint', 'Cancel');
    await choose('Delete');
    await answer('Delete endpoint', 'Delete endpoint');
    await page.getByText('No endpoints yet').waitFor();
    assert.deepEqual(
      window.problems.filter((text) => !/status of 4\d\d/.test(text)),
      [],
      'the browser complained',
    );
  });
});
