/** How people prove who they are in the console, in a real browser: passkeys, and sessions that are ended. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { buildConsole } from '../../src/embedded/console-build.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startBrowser } from '../support/browser.ts';
import { openWindow, type Window } from '../support/console.ts';
import { call } from '../support/http.ts';
import { until } from '../support/stack.ts';

describe('security in the console', function () {
  this.timeout(120_000);
  let api: TestApi;
  let browser: Browser;
  let window: Window;
  let page: Page;

  before(async () => {
    [api, browser] = await Promise.all([
      startTestApi({ env: { DEV_MAIL: 'true' } }),
      startBrowser(),
      buildConsole(),
    ]);
  });
  after(async () => {
    await browser?.close();
    await api?.stop();
  });

  /** Passkeys belong to a host name, which 127.0.0.1 is not. */
  const site = () => ({
    api: { url: api.url.replace('127.0.0.1', 'localhost') },
    database: { url: api.databaseUrl },
  });
  beforeEach(async () => {
    window = await openWindow(site(), browser);
    ({ page } = window);
  });
  afterEach(() => window?.close());

  const button = (name: string) => page.getByRole('button', { name, exact: true });

  /** A device that holds passkeys. Without a PIN, it signs for anybody who holds it. */
  async function plugInDevice(hasPin = true): Promise<void> {
    const devTools = await window.context.newCDPSession(page);
    await devTools.send('WebAuthn.enable');
    await devTools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: hasPin,
        isUserVerified: hasPin,
        automaticPresenceSimulation: true,
      },
    });
  }

  async function signOut(): Promise<void> {
    await button('Account').click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await button('Sign in with a passkey').waitFor();
  }

  it('signs in with a passkey, without a password, until the passkey is removed', async () => {
    const account = await api.createAccount(3);
    await plugInDevice();
    await window.enter(account, '/security');
    await page.getByText('No passkeys yet').waitFor();
    await page.getByLabel('Name of the new passkey').fill('Laptop');
    await button('Add passkey').click();
    const listed = page.getByRole('region', { name: 'Passkeys' });
    await listed.getByText('Laptop').waitFor();
    await page.getByLabel('Name of the new passkey').fill('Again');
    await button('Add passkey').click();
    await page.getByText('This device already has a passkey for your account.').waitFor();

    await signOut();
    await button('Sign in with a passkey').click();
    await page.getByText('$3.00', { exact: true }).first().waitFor();

    await window.go('/security');
    await button('Remove Laptop').click();
    await page.getByText('No passkeys yet').waitFor();
    await window.go('/audit-log');
    const log = page.getByRole('region', { name: 'Audit log' });
    await log.getByText('Passkey removed').waitFor();
    await log.getByText('name: Laptop').first().waitFor();
    await signOut();
    await button('Sign in with a passkey').click();
    await page.getByText('Passkey not found').waitFor();
    const { rows } = await api.sql.query<{ action: string }>(
      `select action from farebox.audit_entries where action like 'passkey.%' order by number`,
    );
    assert.deepEqual(rows, [{ action: 'passkey.added' }, { action: 'passkey.removed' }]);
    assert.deepEqual(
      window.problems.filter((text) => !/status of 4\d\d/.test(text)),
      [],
    );
  });

  it('accepts no passkey of a device that does not verify who uses it', async () => {
    const account = await api.createAccount(0);
    await plugInDevice(false);
    await window.enter(account, '/security');
    await page.getByLabel('Name of the new passkey').fill('Found on the street');
    await button('Add passkey').click();
    await page.getByText('No passkey was used').waitFor();
    // Nor from a page that asks the device for less.
    const refusal = await page.evaluate<{ message: string }>(`(async () => {
      const post = (path, body) => fetch('/console/auth/passkey/' + path, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
      });
      const options = await (await fetch('/console/auth/passkey/generate-register-options')).json();
      options.authenticatorSelection.userVerification = 'discouraged';
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
      const response = (await navigator.credentials.create({ publicKey })).toJSON();
      return (await post('verify-registration', { response, name: 'x' })).json();
    })()`);
    assert.match(refusal.message, /did not verify who used it/);
    assert.equal((await api.sql.query('select from console.passkeys')).rowCount, 0);
  });

  it('leads back to where the user was, once a session has expired and the user signed in again', async () => {
    const { email } = await api.createAccount(3);
    const headers = { origin: site().api.url };
    await call(api, 'POST', '/console/auth/sign-up', { headers, body: { email } });
    const token = await until(async () => {
      const { rows } = await api.sql.query<{ token: string }>(
        `select substring(body from 'token=([[:alnum:]_-]+)') as token from console.mails`,
      );
      return rows[0]?.token;
    });
    const newPassword = 'correct horse battery';
    const set = { headers, body: { token, newPassword } };
    assert.equal((await call(api, 'POST', '/console/auth/reset-password', set)).status, 200);
    await window.enter({ email }, '/statements?as=developer');
    await api.sql.query(`update console.sessions set expires_at = now() - interval '1 second'`);
    await page.getByText('Balance', { exact: true }).last().click();
    await page.getByText('Your session has ended').waitFor();
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(newPassword);
    await button('Sign in').click();
    await page.getByRole('heading', { name: 'Statements' }).waitFor();
  });

  it('ends another session, which then has to sign in again', async () => {
    const account = await api.createAccount(0);
    await window.enter(account);
    const other = await openWindow(site(), browser);
    await other.enter(account, '/security');
    await other.page.getByText('This session').waitFor();
    await other.page.getByRole('button', { name: 'Sign out everywhere else' }).click();
    await other.page
      .getByRole('button', { name: 'Sign out', exact: true })
      .waitFor({ state: 'detached' });
    await other.close();
    await window.go('/usage?tool=search');
    await page.getByText('Your session has ended').waitFor();
    assert.match(page.url(), /sign-in\?next=/);
  });
});
