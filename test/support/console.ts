/** The shared parts of console tests: the console in a real browser, over its own stack. */
import assert from 'node:assert/strict';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { buildConsole } from '../../src/embedded/console-build.ts';
import { createTestAccount, type TestAccount } from './accounts.ts';
import { startBrowser } from './browser.ts';
import { describePage, followRequests, reportFailure } from './failure-report.ts';
import { onceARun } from './once-a-run.ts';
import { createSignInLinkToken, forgetSignIns } from './sessions.ts';
import {
  startStack,
  until,
  type Server,
  type Stack,
  type StackOptions,
  type TestDatabase,
} from './stack.ts';

export interface ConsoleHarness {
  readonly stack: Stack;
  readonly browser: Browser;
  newAccount(balanceDollars: number): Promise<TestAccount>;
  /** A separate window; it records the browser's complaints and the hosts that its pages contact. */
  open(options?: Parameters<Browser['newContext']>[0]): Promise<Window>;
  close(): Promise<void>;
}

export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Signs in and goes to the path below /console. */
  enter(account: Pick<TestAccount, 'email'>, path?: string): Promise<void>;
  go(path: string): Promise<void>;
  readonly problems: readonly string[];
  readonly hosts: ReadonlySet<string>;
  /** What the page shows and waits for, for the report of a failed test. */
  describe(): Promise<string>;
  close(): Promise<void>;
}

/** Pages render slowly on a busy machine. */
const PAGE_TIMEOUT_MS = 300_000;
/**
 * For races that machines of another speed show: how many times slower pages compute, and how much later
 * answers come.
 */
const SLOWDOWN = Number(process.env['CONSOLE_CPU_SLOWDOWN'] ?? 1);
const LATENCY_MS = Number(process.env['CONSOLE_LATENCY_MS'] ?? 0);

export async function openConsole(options: StackOptions = {}): Promise<ConsoleHarness> {
  const [stack, browser] = await Promise.all([
    startStack({ ...options, env: { DEV_MAIL: 'true', ...options.env } }),
    startBrowser(),
    // In a clean clone, each mocha process would build it otherwise.
    onceARun('console', buildConsole),
  ]);
  return {
    stack,
    browser,
    newAccount: async (balance) => {
      return createTestAccount(stack.database.url, balance);
    },
    open: (contextOptions) => openWindow(stack, browser, contextOptions),
    close: async () => {
      await browser.close();
      await stack.stop();
    },
  };
}

/** Without animations: the CPU draws every frame, and half of the frames would belong to animations. */
const WINDOW = { locale: 'en-US', timezoneId: 'UTC', reducedMotion: 'reduce' } as const;

interface Opened {
  readonly harness: ConsoleHarness;
  readonly window: Window;
  readonly page: Page;
}

/** What differs between suites. */
interface SuiteOptions {
  readonly stack?: StackOptions;
  readonly window?: Parameters<Browser['newContext']>[0];
  /** What the browser may complain about. With `any`, it may ask other hosts too. */
  readonly expected?: RegExp | 'any';
}

/** A console for the suite that calls this, and a window for each of its tests, which `take` gets before it. */
export function openForEach(
  take: (opened: Opened) => void,
  { stack, window: windowOptions, expected }: SuiteOptions = {},
): void {
  let harness: ConsoleHarness;
  let window: Window | undefined;
  before(async () => {
    harness = await openConsole(stack);
  });
  after(() => harness?.close());
  beforeEach(async () => {
    window = undefined;
    window = await harness.open(windowOptions);
    take({ harness, window, page: window.page });
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed' && window) {
      reportFailure(this.currentTest, await window.describe());
    }
    if (expected === 'any') await window?.close();
    else if (window) await closeUnblemished(window, harness.stack, this.currentTest, expected);
  });
}

/** The console of an API process; `openConsole` has one with everything behind it. */
export async function openWindow(
  stack: { readonly api: Pick<Server, 'url'>; readonly database: Pick<TestDatabase, 'url'> },
  browser: Browser,
  options?: Parameters<Browser['newContext']>[0],
): Promise<Window> {
  const context = await browser.newContext({ ...WINDOW, ...options });
  context.setDefaultTimeout(PAGE_TIMEOUT_MS);
  const page = await openPage(context);
  const waiting = followRequests(page);
  const problems: string[] = [];
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).origin));
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  });
  const go = async (path: string) => {
    await page.goto(`${stack.api.url}/console${path}`);
  };
  return {
    context,
    page,
    problems,
    hosts,
    describe: () => describePage(page, waiting),
    go,
    enter: async ({ email }, path = '/balance') => {
      await forgetSignIns(stack.database.url);
      const token = await createSignInLinkToken(stack.database.url, email);
      // The window takes only the cookie, as from the page of a sign-in link: each page costs CPU time.
      await context.request.post(`${stack.api.url}/console/auth/sign-in-link`, {
        form: { token },
        headers: { origin: stack.api.url },
        maxRedirects: 0,
      });
      await go(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
    },
    close: async () => {
      // Otherwise a route that still waits for its response throws where nobody can catch it.
      for (const open of context.pages()) await open.unrouteAll({ behavior: 'ignoreErrors' });
      await context.close();
    },
  };
}

/** Another tab of the window, at the speed that the environment asks for. */
export async function openPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  if (SLOWDOWN === 1 && LATENCY_MS === 0) return page;
  const devTools = await context.newCDPSession(page);
  await devTools.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN });
  await devTools.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: LATENCY_MS,
    downloadThroughput: -1,
    uploadThroughput: -1,
  });
  return page;
}

/** Closes the window after a test. But for these complaints the browser had none, and no other host was asked. */
export async function closeUnblemished(
  window: Window,
  { api, simulator }: Stack,
  test: Pick<Mocha.Test, 'state'> | undefined,
  expected = /status of 4\d\d/,
): Promise<void> {
  const problems = window.problems.filter((text) => !expected.test(text));
  const foreign = [...window.hosts].filter((host) => host !== api.url && host !== simulator.url);
  await window.close();
  if (test?.state !== 'passed') return;
  assert.deepEqual(problems, [], 'the browser complained');
  assert.deepEqual(foreign, [], 'another host was asked');
}

/**
 * The dialog that is being opened, once it takes keys: it is drawn before it listens to them, and then moves
 * the focus into itself. Text that is typed or filled in until then may go to another field.
 */
export async function openedDialog(page: Page, name?: string): Promise<Locator> {
  // The effects that listen to keys have run when the one that names the dialog by its title has.
  const dialog = page.getByRole('dialog', { name: name ?? /./ });
  await dialog.waitFor();
  await takesFocus(dialog);
  return dialog;
}

/** Waits until the dialog or menu has the focus, and no timer is left that would move it. */
export async function takesFocus(part: Locator): Promise<void> {
  await part.locator(':focus').waitFor({ state: 'attached' });
  // Mantine moves it by a timer when the part is drawn, and by another one in the effects that follow.
  await part
    .page()
    .evaluate(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
    );
}

/** What a button of the page copies. The browser writes the clipboard after the click. */
export async function copiedBy(page: Page, name: string): Promise<string> {
  await page.evaluate(`navigator.clipboard.writeText('')`);
  await page.getByRole('button', { name }).first().click();
  return until(() => page.evaluate<string>('navigator.clipboard.readText()'));
}

/** The link of the newest email to the address that sets its password. */
export function mailedLink({ stack }: ConsoleHarness, email: string): Promise<string> {
  return until(async () => {
    const text = await (await fetch(`${stack.api.url}/dev/mail`)).text();
    const mail = text
      .split('<article')
      .find((each) => each.includes(email) && each.includes('set-password'));
    return /href="([^"]+set-password[^"]+)"/.exec(mail ?? '')?.[1];
  });
}
