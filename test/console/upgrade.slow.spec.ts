/**
 * The console during a rolling upgrade: two API processes behind one address, each with its own build of the
 * console, and a proxy that gives each request to the next process. A page of either build works while a
 * process that has its files runs.
 */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { Browser, Page } from 'playwright-core';
import { startChild, type Child } from '../../src/embedded/child.ts';
import { buildConsole } from '../../src/embedded/console-build.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startBrowser } from '../support/browser.ts';
import { openWindow, type Window } from '../support/console.ts';
import { charge } from '../support/http.ts';
import { closeNow, listenOnLoopback } from '../support/loopback.ts';
import { onceARun } from '../support/once-a-run.ts';
import { choosePort } from '../support/ports.ts';
import { PATIENTLY } from '../support/stack.ts';
import { ROOT } from '../tree/sources.ts';

/** What an API process runs from, but for the console. */
const PROGRAM = ['package.json', 'node_modules', 'src', 'migrations', 'docs', 'workflows'];
/** A file behind a link belongs to the folder of the link. */
const KEEPING_LINKS = { NODE_PRESERVE_SYMLINKS: '1', NODE_PRESERVE_SYMLINKS_MAIN: '1' };

describe('the console while one release replaces another', () => {
  let folder: string;
  let proxy: Alternator;
  let older: Child & { readonly port: number };
  let newer: TestApi;
  let newerPort: number;
  let browser: Browser;
  let window: Window;
  let page: Page;

  before(async () => {
    await onceARun('console', buildConsole);
    folder = await linkWithOtherNames();
    proxy = await startAlternator();
    newer = await startTestApi({ env: { BASE_URL: proxy.url } });
    newerPort = Number(new URL(newer.url).port);
    browser = await startBrowser();
    const port = await choosePort();
    const { PATH, HOME } = process.env;
    const child = await startChild({
      name: 'API with the older build',
      command: [process.execPath, join(folder, 'src/cli.ts'), 'api'],
      env: { PATH, HOME, ...KEEPING_LINKS, ...newer.env, PORT: String(port) },
      logFile: join(folder, 'api.log'),
      ready: 'message',
      ...PATIENTLY,
    });
    older = { ...child, port };
  });
  after(async () => {
    await browser?.close();
    await older?.stop();
    await newer?.stop();
    await proxy?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    const served = { api: { url: proxy.url }, database: { url: newer.databaseUrl } };
    window = await openWindow(served, browser);
    ({ page } = window);
  });
  afterEach(() => window?.close());

  const link = (name: string) => page.getByRole('navigation').getByRole('link', { name });
  const heading = (name: string) => page.getByRole('heading', { level: 1, name });
  const entry = () => page.evaluate<string>(`document.querySelector('script[type=module]').src`);

  it('shows every page, whichever process gets the request for a file', async () => {
    const account = await newer.createAccount(10);
    // The first request decides about the build of the page.
    for (const ports of [
      [older.port, newerPort],
      [newerPort, older.port],
    ]) {
      proxy.send(ports);
      await window.enter(account);
      for (const name of ['Usage', 'Budgets', 'Approvals', 'Keys', 'Balance']) {
        await link(name).click();
        await heading(name).waitFor();
      }
    }
    assert.deepEqual(window.problems, []);
  });

  it('loads the new build when a page asks for a file that no process has anymore', async () => {
    const account = await newer.createAccount(10);
    proxy.send([older.port]);
    await window.enter(account);
    const before = await entry();
    proxy.send([newerPort]);
    await link('Budgets').click();
    await heading('Budgets').waitFor();
    assert.notEqual(await entry(), before);
    assert.equal(new URL(page.url()).pathname, '/console/budgets');
  });

  it('shows every page when responses have members that its build does not know', async () => {
    const account = await newer.createAccount(10);
    await charge(newer, account, { tool: 'search', amount: 0.25 });
    proxy.send([older.port]);
    let extended = 0;
    await page.route('**/v1/**', async (route) => {
      const response = await route.fetch();
      extended += 1;
      await route.fulfill({ response, json: extend(await response.json()) });
    });
    await window.enter(account);
    const links = page.getByRole('navigation').getByRole('link');
    await links.last().waitFor();
    for (const path of await links.evaluateAll((all) => all.map(({ href }) => href))) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
      await page.waitForLoadState('networkidle');
      assert.equal(await page.getByRole('alert').count(), 0, path);
    }
    // A stream of live events is never fetched to its end.
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    assert.ok(extended > 0);
    assert.deepEqual(window.problems, []);
  });

  it('loads a page by itself once the responses have the members that it needs', async () => {
    const account = await newer.createAccount(10);
    proxy.send([newerPort]);
    await window.enter(account);
    let asked: string[] = [];
    page.on('request', (each) => void asked.push(new URL(each.url()).pathname));
    for (const [name, member] of [
      ['Budgets', 'budgets'],
      ['Usage', 'charges'],
      ['Keys', 'keys'],
    ] as const) {
      proxy.leaveOut(member);
      await link(name).click();
      await page.getByText('This page could not be loaded').waitFor();
      proxy.leaveOut(undefined);
      asked = [];
      await heading(name).waitFor();
      assert.equal(await page.getByRole('alert').count(), 0, name);
    }
    assert.ok(asked.includes('/v1/keys'));
    assert.ok(!asked.includes('/v1/usage'), 'the page before is not read again');
  });
});

/** Every object in it has one more member. */
function extend(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(extend);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, each]) => {
    // Its members are the names of tools.
    return [name, name === 'byTool' ? each : extend(each)] as const;
  });
  return { ...Object.fromEntries(members), addedLater: { since: 'the next release' } };
}

/** This program, but the files of its console have other names, as after a change that all of them share. */
async function linkWithOtherNames(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farebox-older-'));
  for (const part of PROGRAM) await symlink(join(ROOT, part), join(folder, part));
  const built = join(folder, 'console/.dist');
  await cp(join(ROOT, 'console/.dist'), built, { recursive: true, filter: isPlain });
  const names = await readdir(join(built, 'assets'));
  const renamed = (text: string) =>
    names.reduce((changed, name) => changed.replaceAll(name, otherName(name)), text);
  for (const name of names) {
    const file = join(built, 'assets', name);
    await writeFile(file, renamed(await readFile(file, 'utf8')));
    await rename(file, join(built, 'assets', otherName(name)));
  }
  const index = join(built, 'index.html');
  await writeFile(index, renamed(await readFile(index, 'utf8')));
  return folder;
}

/** A changed file would not match its Brotli copy. */
function isPlain(path: string): boolean {
  return !path.endsWith('.br');
}

/** Another name of the same length: `keys-BZlBrKV3.js` becomes `keys-3VKrBlZB.js`. */
function otherName(name: string): string {
  return name.replace(/(.{8})(\.\w+)$/, (_, hash: string, extension: string) => {
    return Array.from(hash).toReversed().join('') + extension;
  });
}

/** Passes a JSON response on without its member of that name. */
async function leaveOut(member: string, answer: IncomingMessage, outgoing: ServerResponse) {
  const { [member]: _, ...rest } = (await json(answer)) as Record<string, unknown>;
  outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(rest));
}

interface Alternator {
  readonly url: string;
  /** Each request goes to the next of these ports from now on, beginning with the first. */
  send(ports: readonly number[]): void;
  /** Responses lack the member from now on, as those of an API that does not know it. */
  leaveOut(member: string | undefined): void;
  stop(): Promise<void>;
}

async function startAlternator(): Promise<Alternator> {
  let ports: readonly number[] = [];
  let sent = 0;
  let missing: string | undefined;
  const server = createServer((incoming, outgoing) => {
    const { method, url: path = '', headers } = incoming;
    const port = ports[sent++ % ports.length];
    const passed = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      if (missing !== undefined && path.startsWith('/v1/')) {
        void leaveOut(missing, answer, outgoing);
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  return {
    url,
    send: (next) => {
      ports = next;
      sent = 0;
    },
    leaveOut: (member) => {
      missing = member;
    },
    stop: () => closeNow(server),
  };
}
