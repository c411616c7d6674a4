/**
 * Single charges per second while 20 Developer Dashboards are open, compared to none, in turns. A real
 * Chromium opens the dashboard once, and it is recorded which requests it makes when, while its tools are
 * charged; 20 signed-in developers then repeat these, and listen to the stream as it does, so that no browser
 * takes the service's cores. Fails when the ratio of the medians is below 0.95, or a request is refused: run
 * it on a machine that does nothing else. `npm run bench:consoles -- [--charges 1000000] [--consoles 20]
 * [--seconds 10] [--rounds 5]`
 */
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { buildConsole } from '../src/embedded/console-build.ts';
import { startBrowser } from '../test/support/browser.ts';
import { signIn, signInLink } from '../test/support/sessions.ts';
import { createLedger, proveWhole, type Ledger } from './ledger.ts';
import { chargeOverHttp, loadGenerator } from './load.ts';
import { fillMonths } from './months.ts';
import type { Measured } from './rounds.ts';
import { startApi, startStack, withClient } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    charges: { type: 'string', default: '1000000' },
    consoles: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '128' },
  },
});
const CONSOLES = Number(options.consoles);
const SECONDS = Number(options.seconds);
const ROUNDS = Number(options.rounds);
const CONNECTIONS = Number(options.connections);
const RATIO_MIN = 0.95;
/** Longer than the longest pause between two requests of the same kind. */
const RECORDED_MS = 31_000;
/** An open dashboard asks less often while charges keep coming: its usual pace comes after these seconds. */
const SETTLED_MS = 15_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const emailOf = (n: number): string => `bench+${n}@example.com`;

interface Asked {
  readonly path: string;
  readonly afterMs: number;
}

const STREAM = '/v1/earnings/live';

/** What an open dashboard asks the API for by itself while its tools are charged. */
async function record(ledger: Ledger, url: string): Promise<readonly Asked[]> {
  const browser = await startBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(await signInLink({ url }, ledger.databaseUrl, emailOf(0)));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/console/balance');
    await page.goto(`${url}/console/developer`);
    await page.locator('.recharts-surface').first().waitFor();
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
    const charged = chargeOverHttp(
      { ...ledger, url },
      { connections: 1, seconds: Math.ceil((SETTLED_MS + RECORDED_MS) / 1_000), seed: 1 },
    );
    await delay(SETTLED_MS);
    const asked: Asked[] = [];
    const start = performance.now();
    page.on('request', (request) => {
      const { pathname, search } = new URL(request.url());
      if (pathname === STREAM) return;
      asked.push({ path: pathname + search, afterMs: performance.now() - start });
    });
    await delay(RECORDED_MS);
    const recorded = [...asked];
    await charged;
    return recorded;
  } finally {
    await browser.close();
  }
}

/** Opens the consoles. Returns a function that closes them, and returns how many answers and events they got. */
function open(url: string, cookies: readonly string[], asked: readonly Asked[]) {
  const closing = new AbortController();
  let count = 0;
  const ask = async (path: string, cookie: string) => {
    const answer = await fetch(url + path, { headers: { cookie } });
    await answer.text();
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    count += 1;
  };
  const listen = async (cookie: string) => {
    const { signal } = closing;
    const answer = await fetch(url + STREAM, { headers: { cookie }, signal });
    if (!answer.body) throw new Error(`${STREAM} was answered with ${answer.status}`);
    try {
      for await (const _ of answer.body) count += 1;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  const poll = async (cookie: string, n: number) => {
    // Each at another moment of the recording.
    const opened = performance.now() - (n / cookies.length) * RECORDED_MS;
    for (let turn = 0; ; turn += 1) {
      for (const { path, afterMs } of asked) {
        const waitMs = opened + turn * RECORDED_MS + afterMs - performance.now();
        if (waitMs < 0) continue;
        await delay(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
        if (closing.signal.aborted) return;
        await ask(path, cookie);
      }
    }
  };
  const consoles = cookies.flatMap((cookie, n) => [listen(cookie), poll(cookie, n)]);
  return async () => {
    closing.abort();
    await Promise.all(consoles);
    return count;
  };
}

function median(measured: readonly Measured[], of: (each: Measured) => number): number {
  return measured.map(of).toSorted((a, b) => a - b)[Math.floor(measured.length / 2)] ?? 0;
}

function p99(measured: readonly Measured[]): string {
  return median(measured, ({ p99Ms = 0 }) => p99Ms).toFixed(1);
}

async function compare(url: string, ledger: Ledger): Promise<boolean> {
  const asked = await record(ledger, url);
  if (asked.length === 0) throw new Error('the dashboard asked for nothing');
  const cookies: string[] = [];
  for (let n = 0; n < CONSOLES; n += 1) {
    // All of them sign in from one address, which is limited.
    await withClient(ledger.databaseUrl, (sql) => sql.query('delete from console.rate_limits'));
    cookies.push(await signIn({ url }, ledger.databaseUrl, emailOf(n)));
  }
  say(
    `An open dashboard makes ${asked.length} requests in ${RECORDED_MS / 1_000} s while its tools are charged.`,
  );
  const charge = (seconds: number) =>
    chargeOverHttp({ ...ledger, url }, { connections: CONNECTIONS, seconds, seed: 1 });
  // Code that is compiled first is slow, and is not measured.
  await charge(Math.min(SECONDS, 5));
  const alone: Measured[] = [];
  const beside: Measured[] = [];
  let requests = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await charge(SECONDS));
    const close = open(url, cookies, asked);
    beside.push(await charge(SECONDS));
    requests += await close();
  }
  const [none, some] = [alone, beside].map((each) => median(each, ({ perSecond }) => perSecond));
  const ratio = (some ?? 0) / (none ?? 1);
  say(
    `${some?.toFixed(0)} charges/s (p99 ${p99(beside)} ms) with ${CONSOLES} consoles open, which got ${requests} answers and events; ` +
      `${none?.toFixed(0)} (p99 ${p99(alone)} ms) with none: ratio ${ratio.toFixed(3)} (at least ${RATIO_MIN}), ` +
      (ratio >= RATIO_MIN ? 'met' : 'NOT MET'),
  );
  return ratio >= RATIO_MIN;
}

const stack = await startStack();
process.env['TEST_FOLDER'] = stack.directory;
try {
  const ledger = await createLedger(stack, 'consoles', 1);
  await Promise.all([fillMonths(ledger, Number(options.charges)), buildConsole()]);
  say(
    `${options.charges} charges, ${CONNECTIONS} connections by ${loadGenerator}, medians of ${ROUNDS} rounds of ${SECONDS} s; ` +
      `load of the machine ${loadavg()[0]?.toFixed(1)}.`,
  );
  const api = await startApi(stack, ledger.databaseUrl);
  try {
    if (!(await compare(api.url, ledger))) process.exitCode = 1;
  } finally {
    await api.stop();
  }
  await proveWhole(ledger);
} finally {
  await stack.stop();
}
