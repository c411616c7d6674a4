/**
 * `npm run test:soak`: an hour at half of the peak that this machine reaches, with everything on: charges, spend keys,
 * holds, refunds, reads, top-ups, webhooks to a receiver, metrics, roll-ups. Memory and latency have to stay flat after
 * the warm-up, tables may not bloat, and the books must be whole. `SOAK_MINUTES=3` for less.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { choosePort } from '../support/ports.ts';
import { createTestAccounts } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { call } from '../support/http.ts';
import { openCheckout, pay, topUpsOf } from '../support/payments.ts';
import { SEED } from '../support/random.ts';
import { startReceiver } from '../support/receiver.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { startProcesses, until, type ServerProcess, type Stack } from '../support/stack.ts';
import { table, writeRunReport } from './reliability-report.ts';
import { SoakTraffic, type Interval, type Payer } from './soak-traffic.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? 60);
const PAYERS = 200;
const PEAK_CLIENTS = 64;
const PEAK_MS = 15_000;
const SAMPLES = 30;
const TOP_UP_EVERY_MS = 3_000;
/** The part of the samples to leave out: a process's heap and the plans of its connections grow until then. */
const WARM_UP_PART = 0.3;
/** The mean of the last third of what comes after the warm-up, compared with the first third. */
const MEMORY_GROWTH_MAX = 1.1;
const P99_GROWTH_MAX = 1.5;
/** Rows in these are changed or deleted all the time; without vacuum, each would grow with the traffic. */
const HOT_TABLES = [
  'consumers',
  'budgets',
  'outbox',
  'earnings_tail',
  'key_spending_tail',
  'attribution_tail',
];
const BLOAT_GROWTH_MAX = 2;
/** Small tables are a few pages more or less. */
const BLOAT_BYTES_MIN = 20_000_000;

interface Sample extends Interval {
  readonly minute: number;
  readonly apiMb: number;
  readonly workerMb: number;
  readonly hotMb: number;
  readonly deadRows: number;
}

const isCompleted = ({ status }: { status: string }) => status === 'completed';

const print = (text: string) => process.stdout.write(`${text}\n`);
const startedAt = new Date();

await mochaGlobalSetup();
try {
  await run();
} finally {
  await mochaGlobalTeardown();
}

async function run(): Promise<void> {
  const receiver = await startReceiver();
  const [apiMetrics, workerMetrics] = [await choosePort(), await choosePort()];
  const stack = await startProcesses({
    env: {
      ALLOW_PRIVATE_ENDPOINTS: 'true',
      ROLL_UP_EVERY_SECONDS: '10',
      RECONCILE_EVERY_SECONDS: '60',
      LOG_LEVEL: 'info',
    },
    apiEnv: { METRICS_PORT: String(apiMetrics) },
    workerEnv: { METRICS_PORT: String(workerMetrics) },
  });
  const sql = new Client({ connectionString: stack.database.url });
  await sql.connect();
  try {
    const payers = await createPayers(stack);
    const hooked = await call(stack.api, 'POST', '/v1/webhook-endpoints', {
      key: payers[0]?.developerKey ?? '',
      body: { url: receiver.url },
    });
    assert.equal(hooked.status, 201, JSON.stringify(hooked.body));
    const traffic = new SoakTraffic(stack.api.url, payers, SEED);
    const peak = await traffic.measurePeak(PEAK_CLIENTS, PEAK_MS);
    print(`peak ${Math.round(peak)} operations a second; ${MINUTES} minutes at half of it`);
    const topUps = new AbortController();
    const paid = payUntil(topUps.signal, stack, payers);
    traffic.start(peak / 2);
    const samples = await takeSamples(stack, sql, traffic);
    topUps.abort();
    await traffic.stop();
    const paidCount = await paid;
    await traffic.close();
    for (const port of [apiMetrics, workerMetrics]) {
      assert.equal((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 200);
    }
    await until(async () => (await topUpsOf(stack.api, payers[0] as Payer)).every(isCompleted), {
      timeoutMs: 120_000,
    });
    assert.ok(receiver.events.length > 0, 'no event arrived');
    await proveBooks(stack.env);
    const growth = judge(samples);
    const eventDelaysMs = receiver.events
      .map(({ atMs, payload }) => atMs - Date.parse(payload.timestamp))
      .toSorted((a, b) => a - b);
    await report({ samples, peak, paidCount, traffic, growth, eventDelaysMs });
  } finally {
    await sql.end();
    await stack.stop();
    await receiver.stop();
  }
}

async function createPayers(stack: Stack): Promise<Payer[]> {
  const accounts = await createTestAccounts(stack.database.url, PAYERS, 100_000);
  const payers: Payer[] = [];
  for (const account of accounts) {
    const budget = await makeBudget(stack.api, account.consumerKey, { limit: 100_000 });
    const { key } = await makeKey(stack.api, account.consumerKey, budget.id);
    payers.push({ ...account, spendKey: key });
  }
  return payers;
}

/** The first payer tops up, again and again. Resolves with the number of payments. */
async function payUntil(
  signal: AbortSignal,
  stack: Stack,
  [payer]: readonly Payer[],
): Promise<number> {
  assert.ok(payer);
  for (let count = 0; ; count += 1) {
    await delay(TOP_UP_EVERY_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted) return count;
    const { sessionUrl } = await openCheckout(stack.api, payer, 5);
    assert.ok(await pay(sessionUrl));
  }
}

async function takeSamples(
  stack: Stack<ServerProcess>,
  sql: Client,
  traffic: SoakTraffic,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  traffic.takeInterval();
  const everyMs = (MINUTES * 60_000) / SAMPLES;
  const fromMs = performance.now();
  for (let n = 1; n <= SAMPLES; n += 1) {
    await delay(Math.max(fromMs + n * everyMs - performance.now(), 0));
    const { rows } = await sql.query<{ bytes: number; dead: number }>(
      `select sum(pg_table_size(relid))::float8 as bytes, sum(n_dead_tup)::float8 as dead
       from pg_stat_user_tables where schemaname = 'farebox' and relname = any ($1)`,
      [HOT_TABLES],
    );
    const sample = {
      minute: (n * everyMs) / 60_000,
      ...traffic.takeInterval(),
      apiMb: await residentMb(stack.api.pid),
      workerMb: await residentMb(stack.worker.pid),
      hotMb: (rows[0]?.bytes ?? 0) / 1e6,
      deadRows: rows[0]?.dead ?? 0,
    };
    print(JSON.stringify(sample));
    samples.push(sample);
  }
  return samples;
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_000;
}

/** Last third divided by first third, after the warm-up. */
function judge(samples: readonly Sample[]) {
  const warm = samples.slice(Math.floor(samples.length * WARM_UP_PART));
  const third = Math.floor(warm.length / 3);
  const growthOf = (pick: (sample: Sample) => number) =>
    mean(warm.slice(-third).map(pick)) / mean(warm.slice(0, third).map(pick));
  const growth = {
    api: growthOf(({ apiMb }) => apiMb),
    worker: growthOf(({ workerMb }) => workerMb),
    p99: growthOf(({ p99Ms }) => p99Ms),
    tables: growthOf(({ hotMb }) => Math.max(hotMb, BLOAT_BYTES_MIN / 1e6)),
  };
  print(JSON.stringify(growth));
  assert.ok(growth.api <= MEMORY_GROWTH_MAX, `the API's memory grew: ${growth.api}`);
  assert.ok(growth.worker <= MEMORY_GROWTH_MAX, `the worker's memory grew: ${growth.worker}`);
  assert.ok(growth.p99 <= P99_GROWTH_MAX, `the p99 grew: ${growth.p99}`);
  assert.ok(growth.tables <= BLOAT_GROWTH_MAX, `the tables grew: ${growth.tables}`);
  return growth;
}

function times(factor: number): string {
  return `x ${factor.toFixed(2)}`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function report({
  samples,
  peak,
  paidCount,
  traffic,
  growth,
  eventDelaysMs,
}: {
  samples: readonly Sample[];
  peak: number;
  paidCount: number;
  traffic: SoakTraffic;
  growth: ReturnType<typeof judge>;
  eventDelaysMs: readonly number[];
}): Promise<void> {
  const counts = [...traffic.counts].map(([kind, count]) => `${kind} ${count}`).join(', ');
  const refusals = [...traffic.refusals].map(([status, count]) => `${status}: ${count}`).join(', ');
  const events = eventDelaysMs.length;
  const lateMs = (part: number) => eventDelaysMs[Math.floor(events * part)];
  const rows = samples
    .filter((_, index) => (index + 1) % 3 === 0)
    .map((sample) => [
      sample.minute.toFixed(1),
      sample.requests,
      sample.p50Ms.toFixed(1),
      sample.p99Ms.toFixed(1),
      sample.apiMb.toFixed(0),
      sample.workerMb.toFixed(0),
      sample.hotMb.toFixed(1),
      sample.deadRows,
    ]);
  await writeRunReport({
    title: 'Soak',
    command: `SOAK_MINUTES=${MINUTES} npm run test:soak`,
    seed: SEED,
    startedAt,
    body: `${MINUTES} minutes at ${Math.round(peak / 2)} operations a second, half of the peak that the same client reached before.
Operations: ${counts}; ${paidCount} checkouts paid. Refused: ${refusals || 'none'}.
${events} events received, half of them within ${lateMs(0.5)} ms of the start of their transaction, 99 % within ${lateMs(0.99)} ms.
\`farebox doctor\` found nothing.

After the warm-up, from the first third to the last: memory of the API ${times(growth.api)}, of the worker
${times(growth.worker)}; p99 ${times(growth.p99)}; size of the tables whose rows change all the time ${times(growth.tables)}.

${table(['Minute', 'Operations', 'p50 ms', 'p99 ms', 'API MB', 'Worker MB', 'Hot tables MB', 'Dead rows'], rows)}`,
  });
}
