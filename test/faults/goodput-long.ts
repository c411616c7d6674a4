/**
 * `npm run test:faults:goodput`: twice the charges that the service can make. A narrow line to Postgres sets what it can
 * make, so that this machine's processors do not. First clients that wait for their answers find that rate; then twice as
 * many requests come, whether the earlier ones were answered or not. What is made must stay near the rate, and every
 * other request must be told that nothing happened, and when to come again. `-- --seconds 10` shortens both parts.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { startFaultyLine } from '../support/faulty-line.ts';
import { charge, type Answer } from '../support/http.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { createTestDatabase } from '../support/stack.ts';
import { table, writeRunReport } from './reliability-report.ts';

const BYTES_PER_SECOND = 100_000;
const ACCOUNTS = 16;
const CLIENTS = 64;
/** Until the queue is as long as it gets: a charge waits in it for 5 s at most. */
const WARM_UP_MS = 8_000;
const TICK_MS = 20;
const GOODPUT_MIN = 0.8;

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '30' } } });
const seconds = Number(values.seconds);
const startedAt = new Date();
const print = (text: string) => process.stdout.write(`${text}\n`);

interface Seen {
  /** By status and code. */
  readonly answers: Map<string, number>;
  readonly refusedMs: number[];
  /** Charges that were made after the warm-up. */
  made: number;
}

await mochaGlobalSetup();
try {
  await overload();
} finally {
  await mochaGlobalTeardown();
}

async function overload(): Promise<void> {
  const database = await createTestDatabase();
  const postgres = new URL(database.url);
  const line = await startFaultyLine({ host: postgres.hostname, port: Number(postgres.port) });
  const accounts = await createTestAccounts(database.url, ACCOUNTS, 1_000);
  postgres.port = String(line.port);
  const api = await startTestApi({ env: { DATABASE_URL: postgres.href } });
  try {
    line.damage({ kind: 'narrow', bytesPerSecond: BYTES_PER_SECOND });
    const peak = await measure((isOver, seen) =>
      Promise.all(
        Array.from({ length: CLIENTS }, async (_, index) => {
          while (!isOver()) await chargeOnce(api, accounts[index % ACCOUNTS] as TestAccount, seen);
        }),
      ),
    );
    const perSecond = peak.made / seconds;
    print(`made ${perSecond.toFixed(0)} a second: ${shown(peak)}`);
    const twice = await measure((isOver, seen) =>
      arrive(2 * perSecond, isOver, (index) =>
        chargeOnce(api, accounts[index % ACCOUNTS] as TestAccount, seen),
      ),
    );
    print(`of twice as many, made ${(twice.made / seconds).toFixed(0)} a second: ${shown(twice)}`);
    line.mend();
    await proveBooks({ ...api.env, DATABASE_URL: database.url }, { processor: false });
    const goodput = twice.made / peak.made;
    assert.ok((twice.answers.get('503') ?? 0) > 0, 'nothing was refused, so it was no overload');
    assert.ok(goodput >= GOODPUT_MIN, `${goodput.toFixed(2)} of the peak`);
    await report(peak, twice);
  } finally {
    await api.stop();
    await line.stop();
    await database.drop();
  }
}

/** `send` sends until it is over; everything that it sent is answered before this returns. */
async function measure(
  send: (isOver: () => boolean, seen: Seen) => Promise<unknown>,
): Promise<Seen> {
  const seen: Seen = { answers: new Map(), refusedMs: [], made: 0 };
  let isOver = false;
  const sent = send(() => isOver, seen);
  await delay(WARM_UP_MS);
  const before = seen.answers.get('201') ?? 0;
  await delay(seconds * 1_000);
  seen.made = (seen.answers.get('201') ?? 0) - before;
  isOver = true;
  await sent;
  return seen;
}

/** Requests at this rate, also while earlier ones wait. */
async function arrive(
  perSecond: number,
  isOver: () => boolean,
  send: (index: number) => Promise<void>,
): Promise<void> {
  const sent: Promise<void>[] = [];
  const startedMs = performance.now();
  while (!isOver()) {
    const due = ((performance.now() - startedMs) / 1_000) * perSecond;
    while (sent.length < due) sent.push(send(sent.length));
    await delay(TICK_MS);
  }
  await Promise.all(sent);
}

async function chargeOnce(
  api: TestApi,
  account: TestAccount,
  { answers, refusedMs }: Seen,
): Promise<void> {
  const startedMs = performance.now();
  const answer = await charge(api, account, { amount: 0.001 });
  const what = nameOf(answer);
  answers.set(what, (answers.get(what) ?? 0) + 1);
  if (what === '201') return;
  assert.equal(what, '503');
  assert.equal(answer.headers.get('retry-after'), '1');
  refusedMs.push(performance.now() - startedMs);
}

function nameOf({ status, body }: Answer): string {
  if (status === 201 || status === 503) return String(status);
  return (body as { error?: { code?: string } }).error?.code ?? String(status);
}

function shown({ answers }: Seen): string {
  return [...answers].map(([what, count]) => `${what}: ${count}`).join(', ');
}

async function report(peak: Seen, twice: Seen): Promise<void> {
  const rows = [
    ['clients that wait for answers', peak],
    ['twice the rate of those', twice],
  ].map(([name, seen]) => {
    const { made, refusedMs, answers } = seen as Seen;
    const longest = Math.max(0, ...refusedMs) / 1_000;
    return [name, (made / seconds).toFixed(0), answers.get('503') ?? 0, `${longest.toFixed(1)} s`];
  });
  await writeRunReport({
    title: 'Twice the load',
    command: `npm run test:faults:goodput -- --seconds ${values.seconds}`,
    seed: 0,
    startedAt,
    body: `Charges through a line of ${BYTES_PER_SECOND / 1_000} kB a second to Postgres. What is made stays at
${(twice.made / peak.made).toFixed(2)} of the peak; every other request is answered 503 with \`Retry-After\`, and made nothing.

${table(['Requests', 'Charges a second', 'Refused', 'Longest wait of a refused one'], rows)}`,
  });
}
