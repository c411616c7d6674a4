/** How people prove who they are in the console, in a real browser: passkeys, and sessions that are ended. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { wireId } from '../../src/domain/ids.ts';
import { buildConsole } from '../../src/embedded/console-build.ts';
import type { ErrorReply } from '../../src/schemas/errors.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startBrowser } from '../support/browser.ts';
import { openPage, openedDialog, openWindow, type Window } from '../support/console.ts';
import { call } from '../support/http.ts';
import { onceARun } from '../support/once-a-run.ts';
import { mailedToken, makeOperator, signInLink } from '../support/sessions.ts';
import { until } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

describe('security in the console', () => {
  let api: TestApi;
  let browser: Browser;
  let window: Window;
  let page: Page;

  before(async () => {
    [api, browser] = await Promise.all([
      startTestApi({ env: { DEV_MAIL: 'true', TOP_UP_ANSWER_MS: '100' } }),
      startBrowser(),
      onceARun('console', buildConsole),
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
    // Every test signs in from the same address, and the library counts that over minutes.
    await api.sql.query('delete from console.rate_limits');
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

  const passkeyMails = async (change = 'added to') => {
    const { rows } = await api.sql.query<{ recipient: string; body: string }>(
      'select recipient, body from console.mails where subject = $1',
      [`A passkey was ${change} your Farebox account`],
    );
    return rows;
  };

  it('signs in with a passkey, which is mailed to its owner, without a password, until it is removed', async () => {
    const account = await api.createAccount(3);
    await plugInDevice();
    await window.enter(account, '/security');
    await page.getByText('No passkeys yet').waitFor();
    await page.getByLabel('Name of the new passkey').fill('Laptop');
    await button('Add passkey').click();
    const listed = page.getByRole('region', { name: 'Passkeys' });
    await listed.getByText('Laptop').waitFor();
    const { recipient, body } = await until(async () => (await passkeyMails())[0]);
    assert.equal(recipient, account.email);
    assert.match(body, /\/console\/security/);
    await page.getByLabel('Name of the new passkey').fill('Again');
    await button('Add passkey').click();
    await page.getByText('This device already has a passkey for your account.').waitFor();

    await signOut();
    await button('Sign in with a passkey').click();
    await page.getByText('$3.00', { exact: true }).first().waitFor();

    await window.go('/security');
    await button('Remove Laptop').click();
    await button('Cancel').click();
    await button('Remove Laptop').click();
    assert.equal((await passkeyMails('removed from')).length, 0);
    await button('Remove passkey').click();
    await page.getByText('No passkeys yet').waitFor();
    const removed = await until(async () => (await passkeyMails('removed from'))[0]);
    assert.equal(removed.recipient, account.email);
    assert.doesNotMatch(removed.body, /Laptop/);
    await window.go('/audit-log');
    const log = page.getByRole('region', { name: 'Audit log' });
    await log.getByText('Passkey removed').waitFor();
    await log.getByText('name: Laptop').first().waitFor();
    await signOut();
    await button('Sign in with a passkey').click();
    const unknown = page.getByText(
      'Sign in with your email and password, or with another passkey.',
    );
    await unknown.waitFor();
    await page.getByLabel('Email').fill(account.email);
    await page.getByLabel('Password', { exact: true }).fill('not the password');
    await button('Sign in').click();
    await page.getByRole('alert').filter({ hasText: 'Invalid email or password' }).waitFor();
    assert.equal(await unknown.count(), 0, 'the failure of the passkey stays');
    const { rows } = await api.sql.query<{ action: string }>(
      `select action from farebox.audit_entries where action like 'passkey.%' order by number`,
    );
    assert.deepEqual(rows, [{ action: 'passkey.added' }, { action: 'passkey.removed' }]);
    assert.deepEqual(
      window.problems.filter((text) => !/status of 4\d\d/.test(text)),
      [],
    );
    assert.equal((await passkeyMails()).length, 1, 'a refused passkey is not mailed');
  });

  it('accepts no passkey of a device that does not verify who uses it', async () => {
    const account = await api.createAccount(0);
    await plugInDevice(false);
    await window.enter(account, '/security');
    await page.getByLabel('Name of the new passkey').fill('Found on the street');
    await button('Add passkey').click();
    await page.getByText('No passkey was used').waitFor();
    // Nor from a page that asks the device for less.
    const { error } = await page.evaluate<ErrorReply>(`(async () => {
      const post = (path, body) => fetch('/console/auth/passkey/' + path, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
      });
      const options = await (await fetch('/console/auth/passkey/generate-register-options')).json();
      options.authenticatorSelection.userVerification = 'discouraged';
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
      const response = (await navigator.credentials.create({ publicKey })).toJSON();
      return (await post('verify-registration', { response, name: 'x' })).json();
    })()`);
    assert.match(error.message, /did not verify who used it/);
    assert.equal((await api.sql.query('select from console.passkeys')).rowCount, 0);
  });

  const ENDED = 'Your session has ended';
  const dialog = (tab = page) => tab.getByRole('dialog', { name: ENDED });

  /** On the page Security. */
  async function turnOnTwoFactor() {
    await page.getByLabel('Your password').fill(PASSWORD);
    await button('Set up').click();
    const secret = await page.locator('code').first().innerText();
    const note = await page.getByText('each of these signs you in once').innerText();
    assert.match(note, /^Store these codes now: they are not shown again\./);
    const [backupCode = ''] = /\w{5}-\w{5}/.exec(note) ?? [];
    await page.getByLabel('Code', { exact: true }).fill(totp(secret));
    await button('Turn on').click();
    await page.getByText('Two-factor authentication is on.').waitFor();
    await page.getByText('to get new backup codes, turn it off and set it up again').waitFor();
    return { secret, backupCode };
  }

  async function setPassword(email: string): Promise<void> {
    const headers = { origin: site().api.url };
    await call(api, 'POST', '/console/auth/sign-up', { headers, body: { email } });
    const token = await mailedToken(api.sql, email);
    const set = { headers, body: { token, newPassword: PASSWORD } };
    assert.equal((await call(api, 'POST', '/console/auth/reset-password', set)).status, 200);
  }

  /** In the dialog over the page; `code` as the authenticator app shows it. */
  async function signInAgain(code?: () => string, tab = page): Promise<void> {
    const over = dialog(tab);
    // It has the focus in this field.
    await over.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await over.getByRole('button', { name: 'Sign in', exact: true }).click();
    if (code) {
      await over.getByLabel('Code from your authenticator app').fill(code());
      await over.getByRole('button', { name: 'Sign in', exact: true }).click();
    }
    await over.waitFor({ state: 'detached' });
  }

  const expireSessions = () =>
    api.sql.query(`update console.sessions set expires_at = now() - interval '1 second'`);

  /**
   * Lets the session expire when the page sends its POST to `path`. Before the click, a page that reads in the
   * background could ask to sign in again and cover the button.
   */
  const expireAtPost = (path: string) => atPost(path, expireSessions);
  async function atPost(path: string, act: () => Promise<unknown>): Promise<void> {
    let hasActed = false;
    await page.route(
      (url) => url.pathname === path,
      async (route) => {
        if (route.request().method() === 'POST' && !hasActed) {
          hasActed = true;
          await act();
        }
        await route.fallback();
      },
    );
  }

  it('keeps what was typed when the session ends, and sends it after signing in again', async () => {
    const account = await api.createAccount(3);
    const { email } = account;
    await setPassword(email);
    await window.enter(account, '/developer/tools');
    await button('Register tool').first().click();
    const form = await openedDialog(page, 'Register tool');
    await form.getByLabel('Name').fill('search');
    await form.getByLabel('Description').fill('Typed for an hour.');
    await expireAtPost('/v1/tools');
    await form.getByRole('button', { name: 'Register tool' }).click();
    await openedDialog(page, ENDED);
    assert.equal(await dialog().getByLabel('Email').inputValue(), email);
    // It hides the page with a color that is not transparent, and no frame of the page is drawn through a filter.
    const [filter, color] = await page.evaluate<string[]>(`(() => {
      const over = [...document.querySelectorAll('.mantine-Modal-overlay')].at(-1);
      const { backdropFilter, backgroundColor } = getComputedStyle(over);
      return [backdropFilter, backgroundColor];
    })()`);
    assert.equal(filter, 'none');
    assert.doesNotMatch(color ?? 'transparent', /transparent|rgba|\//);
    await dialog().getByLabel('Password', { exact: true }).fill('not the password');
    await dialog().getByRole('button', { name: 'Sign in', exact: true }).click();
    await dialog().getByText('Invalid email or password.').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await form.getByLabel('Description').inputValue(), 'Typed for an hour.');
    await signInAgain();
    await page.getByRole('link', { name: 'search' }).waitFor();
    await page.getByText('Typed for an hour.').waitFor();
    await window.go('/developer/webhooks');
    await button('Add endpoint').first().click();
    await openedDialog(page, 'Add endpoint');
    await page.getByLabel('URL').fill('https://example.com/typed');
    // As after signing out elsewhere: the browser has no cookie either.
    await atPost('/v1/webhook-endpoints', () => window.context.clearCookies());
    await page.getByRole('dialog').getByRole('button', { name: 'Add endpoint' }).click();
    await signInAgain();
    await page.getByText('https://example.com/typed').first().waitFor();
    await window.go('/balance');
    await page.getByLabel('Amount in dollars').fill('37.50');
    await button('Pay $37.50').waitFor();
    await expireAtPost('/v1/checkout');
    const sent: string[] = [];
    page.on('request', (request) => {
      const key = request.headers()['idempotency-key'];
      if (request.url().endsWith('/v1/checkout')) sent.push(`${key} ${request.postData()}`);
    });
    await button('Pay $37.50').click();
    await signInAgain();
    await until(() => sent.length === 2);
    assert.equal(sent[1], sent[0]);
    assert.match(sent[0] ?? '', /^\w+-\w+-\w+-\w+ .*\b37\.50?\b/);
    assert.equal(await page.getByLabel('Amount in dollars').inputValue(), '37.50');
  });

  it('asks an operator for the code as well, and then makes the adjustment once', async () => {
    const account = await api.createAccount(3);
    await setPassword(account.email);
    await window.enter(account, '/security');
    const { secret, backupCode } = await turnOnTwoFactor();
    await makeOperator(api.sql, account.email);
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.accounts where email = $1',
      [account.email],
    );
    const accountPath = `/operator/accounts/${wireId('account', rows[0]?.id ?? assert.fail())}`;
    await window.go(accountPath);
    await button('Adjust balance').click();
    const form = await openedDialog(page, 'Adjust balance');
    await form.getByLabel('Amount in dollars').fill('-1.25');
    await form.getByLabel('Reason').fill('Charged twice');
    await expireAtPost(`/v1${accountPath}/adjustments`);
    await form.getByRole('button', { name: 'Adjust by −$1.25' }).click();
    await signInAgain(() => totp(secret, 1));
    await page.getByText('Adjusted by −$1.25.', { exact: true }).waitFor();
    await page.getByText('$1.75', { exact: true }).first().waitFor();
    // The authenticator app may be lost.
    await button('Adjust balance').click();
    await openedDialog(page, 'Adjust balance');
    await form.getByLabel('Amount in dollars').fill('0.25');
    await form.getByLabel('Reason').fill('Charged twice');
    await expireAtPost(`/v1${accountPath}/adjustments`);
    await form.getByRole('button', { name: 'Adjust by $0.25' }).click();
    await signInAgain(() => backupCode);
    await page.getByText('Adjusted by $0.25.', { exact: true }).waitFor();
  });

  it('says why the code of an older secret is refused after another tab set up two-factor authentication', async () => {
    const { email } = await api.createAccount(0);
    await setPassword(email);
    await window.enter({ email }, '/security');
    await page.getByLabel('Your password').fill(PASSWORD);
    await button('Set up').click();
    const stale = await page.locator('code').first().innerText();
    const second = await openPage(window.context);
    await second.goto(page.url());
    await second.getByLabel('Your password').fill(PASSWORD);
    await second.getByRole('button', { name: 'Set up' }).click();
    await second.locator('code').first().waitFor();
    await page.getByLabel('Code', { exact: true }).fill(totp(stale));
    await button('Turn on').click();
    await page.getByText('only the newest secret works').waitFor();
    await button('Start again').click();
    await turnOnTwoFactor();
    // Until somebody switches to the other tab, it shows a secret and backup codes that no longer work.
    // The page does not read again what it read within the last two seconds.
    await until(async () => {
      await second.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
      return second.getByRole('button', { name: 'Turn off' }).isVisible();
    });
    assert.equal(await second.getByText('each of these signs you in once').count(), 0);
  });

  it('stops asking to sign in when the answer to turning on two-factor authentication brings a new session', async () => {
    const account = await api.createAccount(3);
    await setPassword(account.email);
    await window.enter(account, '/security');
    const [replaced, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route('**/two-factor/verify-totp', async (route) => {
      const response = await route.fetch();
      replaced.resolve();
      await answered.promise;
      await route.fulfill({ response });
    });
    const turnedOn = Promise.allSettled([turnOnTwoFactor()]);
    await Promise.race([replaced.promise, turnedOn]);
    // As with the earlier session, until the answer brings the new one.
    const refusal = { status: 401, json: { error: { code: 'session_required' } } };
    await page.route('**/v1/**', (route) => route.fulfill(refusal));
    await until(async () => {
      await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
      return page.getByRole('dialog').isVisible();
    });
    await page.unroute('**/v1/**');
    answered.resolve();
    assert.equal((await turnedOn)[0].status, 'fulfilled');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('asks for the password again when no more codes are accepted after it', async () => {
    const account = await api.createAccount(3);
    await setPassword(account.email);
    await window.enter(account, '/security');
    const { secret } = await turnOnTwoFactor();
    await window.go('/developer/tools');
    await button('Register tool').first().click();
    const form = await openedDialog(page, 'Register tool');
    await form.getByLabel('Name').fill('search');
    await expireAtPost('/v1/tools');
    await form.getByRole('button', { name: 'Register tool' }).click();
    await openedDialog(page, ENDED);
    const enter = dialog().getByRole('button', { name: 'Sign in', exact: true });
    await dialog().getByLabel('Password', { exact: true }).fill(PASSWORD);
    await enter.click();
    await dialog().getByText('ask the operator of this Farebox').waitFor();
    for (let n = 1; n <= 6; n += 1) {
      await dialog().getByLabel('Code from your authenticator app').fill('x');
      const answer = page.waitForResponse('**/verify-totp');
      await enter.click();
      await (await answer).finished();
      if (n < 6) await dialog().getByText('Invalid code.').waitFor();
    }
    await dialog().getByText('Type your password again.').waitFor();
    await signInAgain(() => totp(secret, 1));
    await page.getByRole('link', { name: 'search' }).waitFor();
  });

  it('offers no second factor and ends no session before it knows what there is', async () => {
    const account = await api.createAccount(0);
    await window.enter(account);
    await api.sql.query('update console.users set two_factor_enabled = true where email = $1', [
      account.email,
    ]);
    const answer = Promise.withResolvers<void>();
    await page.route('**/console/auth/get-session', async (route) => {
      await answer.promise;
      await route.continue();
    });
    await window.go('/security');
    const card = page.locator('section', {
      has: page.getByRole('heading', { name: 'Two-factor authentication' }),
    });
    await card.getByLabel('Loading').waitFor();
    assert.equal(await card.getByRole('button').count(), 0);
    // Nor to end a session that may be this one. The list is not shown until the card above it has its size.
    await page.getByText('Chrome on Linux').waitFor({ state: 'attached' });
    assert.equal(await page.locator('td button').count(), 0);
    answer.resolve();
    await card.getByRole('button', { name: 'Turn off' }).waitFor();
    await card.getByText('On', { exact: true }).waitFor();
  });

  it('leaves the page when another account signs in over it, and sends nothing', async () => {
    const [account, other] = [await api.createAccount(3), await api.createAccount(4)];
    await setPassword(other.email);
    await window.enter(account, '/developer/tools');
    await button('Register tool').first().click();
    const form = await openedDialog(page, 'Register tool');
    await form.getByLabel('Name').fill('private');
    await expireAtPost('/v1/tools');
    await form.getByRole('button', { name: 'Register tool' }).click();
    const over = await openedDialog(page, ENDED);
    await over.getByLabel('Email').fill(other.email);
    await over.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await over.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('$4.00', { exact: true }).first().waitFor();
    await page.waitForURL('**/console/balance');
    await window.go('/developer/tools');
    await page.getByText('No tools yet').waitFor();
    const { rowCount } = await api.sql.query(`select from farebox.tools where name = 'private'`);
    assert.equal(rowCount, 0);
  });

  it('continues in every tab after signing in in one, and leaves the tabs of another account', async () => {
    const [account, other] = [await api.createAccount(3), await api.createAccount(4)];
    await setPassword(account.email);
    await window.enter(account, '/developer/tools');
    const second = await openPage(window.context);
    await second.goto(`${site().api.url}/console/usage`);
    await second.getByRole('heading', { name: 'Usage' }).waitFor();
    // Once both tabs have asked, so that neither covers its link before the click.
    let asking = 0;
    const expired = Promise.withResolvers<void>();
    await window.context.route('**/v1/statements/*', async (route) => {
      asking += 1;
      if (asking === 2) {
        await expireSessions();
        expired.resolve();
      }
      await expired.promise;
      await route.fallback();
    });
    for (const tab of [page, second]) await tab.getByRole('link', { name: 'Statements' }).click();
    for (const tab of [page, second]) await dialog(tab).waitFor();
    await window.context.unroute('**/v1/statements/*');
    await signInAgain(undefined, second);
    await dialog().waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Statements' }).waitFor();

    await second.goto(await signInLink(site().api, api.databaseUrl, other.email));
    await second.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/console/balance');
    await page.getByText('$4.00', { exact: true }).first().waitFor();
  });

  it('leads back to where the user was when a page is opened without a session', async () => {
    const { email } = await api.createAccount(3);
    await setPassword(email);
    await window.go('/statements?as=developer');
    await page.getByLabel('Email').fill(email);
    assert.equal(await page.getByText(ENDED).count(), 0);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await button('Sign in').click();
    await page.getByRole('heading', { name: 'Statements' }).waitFor();
    assert.match(page.url(), /statements\?as=developer$/);
  });

  it('does not cut a password that is too long, so that it is not another one', async () => {
    await window.go('/set-password?token=x');
    await page.getByLabel('New password').focus();
    await page.keyboard.insertText('long enough '.repeat(12));
    await button('Save password').click();
    await page.getByText('Password too long').waitFor();
  });

  it('ends another session, which then has to sign in again', async () => {
    const account = await api.createAccount(0);
    await window.enter(account);
    const other = await openWindow(site(), browser);
    await other.enter(account, '/security');
    await other.page.getByText('This session').waitFor();
    await other.page.getByRole('button', { name: 'Sign out everywhere else' }).click();
    await other.page
      .getByRole('button', { name: /^Sign out (?!everywhere)/ })
      .waitFor({ state: 'detached' });
    await other.close();
    await window.go('/usage?tool=search');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.match(page.url(), /sign-in\?next=/);
  });
});
