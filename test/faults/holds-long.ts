/**
 * Kills processes that hold money, ten thousand of them: tool servers between a hold and its capture and, in
 * between, the API, the worker and connections to PostgreSQL. Captures that were not answered are resolved by
 * the same key. In the end each charge is known and none was made twice, nothing is reserved, and `farebox
 * doctor` finds nothing. `npm run test:faults:holds -- [--kills 10000] [--seed N] [--at-once 12]`
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Farebox, FareboxError } from '@farebox/client';
import { build } from 'esbuild';
import { Client } from 'pg';
import { wireId } from '../../src/domain/ids.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { Random, SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
} from '../support/stack.ts';
import type { Capture, Report } from './holding-reports.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(SEED) },
    'at-once': { type: 'string', default: '12' },
  },
});
const KILLS = Number(values.kills);
const ACCOUNTS = 20;
/** A process is killed this long after it holds money, at most: it places a dozen holds in that time. */
const LIVES_MS_MAX = 150;
/** After each so many killed tool servers, one of these too. */
const API_EVERY = 200;
const WORKER_EVERY = 500;
const CONNECTIONS_EVERY = 50;
/** The books are examined after each so many. */
const DOCTOR_EVERY = 2_500;

/** One file of JavaScript starts with a third of the work of the sources, which are many and in TypeScript. */
const folder = await mkdtemp(join(tmpdir(), 'farebox-holds-'));
const HOLDING_PROCESS = join(folder, 'holding-process.mjs');

const say = (text: string) => process.stdout.write(`${text}\n`);

await mochaGlobalSetup();
try {
  await build({
    entryPoints: [join(import.meta.dirname, 'holding-process.ts')],
    outfile: HOLDING_PROCESS,
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
  await run();
} finally {
  await rm(folder, { recursive: true });
  await mochaGlobalTeardown();
}

async function run(): Promise<void> {
  say(`${KILLS} kills, seed ${values.seed}`);
  const random = new Random(Number(values.seed));
  const stack = await startProcesses();
  const { PORT: _, BASE_URL: __, ...env } = stack.env;
  const apis: ServerProcess[] = [stack.api, await startApiProcess({ env })];
  let { worker } = stack;
  const client = new Client({ connectionString: stack.database.url });
  await client.connect();
  const accounts = await createTestAccounts(stack.database.url, ACCOUNTS, 100_000);
  const startedMs = performance.now();
  const counts = { toolServers: 0, apis: 0, workers: 0, connections: 0, holds: 0, unanswered: 0 };
  /** Micros of captures, as answered, by the charge's id. */
  const charged = new Map<string, number>();
  const refusals = new Map<string, number>();
  let others: Promise<unknown> = Promise.resolve();

  try {
    let started = 0;
    const killers = Array.from({ length: Number(values['at-once']) }, async () => {
      while (counts.toolServers < KILLS) {
        started += 1;
        await killOne(started);
      }
    });
    await Promise.all(killers);
    await others;
    say(progress());
    const open = 'select from farebox.holds where state = 0 limit 1';
    await until(async () => (await client.query(open)).rowCount === 0);
    await compare();
    await proveBooks(stack.env, { processor: false });
    say(`refusals: ${JSON.stringify(Object.fromEntries(refusals))}`);
    say('Every charge is known, none was made twice, nothing is reserved; doctor finds nothing.');
  } finally {
    await client.end();
    await Promise.all([...apis, worker].map((each) => each.stop()));
    await stack.stop();
  }

  /** Starts a tool server, kills it while it holds money, and finds out what it did not hear. */
  async function killOne(number: number): Promise<void> {
    const account = random.pick(accounts);
    const unanswered = new Map<string, Capture>();
    const child = startHolding(number, account, random.pick(apis).url);
    const isHolding = Promise.withResolvers<void>();
    const lines = createInterface({ input: child.stdout ?? assert.fail() });
    lines.on('line', (line) => {
      const report = JSON.parse(line) as Report;
      if (report.step === 'held') {
        counts.holds += 1;
        isHolding.resolve();
      } else if (report.step === 'capturing') unanswered.set(report.key, report);
      else if (report.step === 'captured') {
        unanswered.delete(report.key);
        note(report.chargeId, report.micros);
      } else refusals.set(report.code, (refusals.get(report.code) ?? 0) + 1);
    });
    const ended = Promise.all([once(lines, 'close'), once(child, 'exit')]);
    // It ends by itself only because of a bug.
    await Promise.race([
      isHolding.promise,
      ended.then(() => assert.fail(`tool server ${number} ended`)),
    ]);
    await delay(random.between(0, LIVES_MS_MAX));
    child.kill('SIGKILL');
    await ended;
    assert.equal(child.signalCode, 'SIGKILL');
    await countKill();
    counts.unanswered += unanswered.size;
    for (const capture of unanswered.values()) await resolve(account, capture);
  }

  /** Kills something else too, now and then, one after the other. */
  async function countKill(): Promise<void> {
    counts.toolServers += 1;
    const n = counts.toolServers;
    if (n % CONNECTIONS_EVERY === 0) others = others.then(endConnections);
    if (n % API_EVERY === 0) others = others.then(() => replaceApi((n / API_EVERY) % 2));
    if (n % WORKER_EVERY === 0) others = others.then(replaceWorker);
    if (n % DOCTOR_EVERY === 0) {
      others = others.then(() => proveBooks(stack.env, { processor: false }));
      await others;
      say(`${progress()}; doctor finds nothing`);
    }
  }

  /** As the documentation says: again with the same key, until the outcome is known. */
  async function resolve({ developerKey }: TestAccount, { holdId, micros, final, key }: Capture) {
    for (;;) {
      const farebox = new Farebox({ secretKey: developerKey, baseUrl: random.pick(apis).url });
      try {
        const asked = { holdId, amount: micros / 1e6, final, idempotencyKey: key };
        note((await farebox.holds.capture(asked)).id, micros);
        return;
      } catch (error) {
        if (!(error instanceof FareboxError)) throw error;
        if (error.code === 'hold_closed') return;
        if (error.code !== 'service_unavailable') throw error;
      }
    }
  }

  function note(chargeId: string, micros: number): void {
    assert.ok(!charged.has(chargeId), `${chargeId} was the answer to two captures`);
    charged.set(chargeId, micros);
  }

  async function compare(): Promise<void> {
    const { rows } = await client.query<{ id: string; micros: number }>(
      'select id, amount_micros::int as micros from farebox.charges',
    );
    const stored = new Map(rows.map(({ id, micros }) => [wireId('charge', id), micros]));
    assert.deepEqual(stored, charged);
    const { rows: reserved } = await client.query(
      'select from farebox.consumers where reserved_micros <> 0 or held_micros <> 0',
    );
    assert.equal(reserved.length, 0);
  }

  /** Connections of all processes: those in the middle of a statement, and some of the others. */
  async function endConnections(): Promise<void> {
    const { rowCount } = await client.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
        and (state <> 'idle' or random() < 0.2)
    `);
    counts.connections += rowCount ?? 0;
  }

  async function replaceApi(index: number): Promise<void> {
    const victim = apis[index] ?? assert.fail();
    victim.kill('SIGKILL');
    await victim.exited;
    counts.apis += 1;
    apis[index] = await startApiProcess({ env: { ...stack.env, PORT: new URL(victim.url).port } });
  }

  async function replaceWorker(): Promise<void> {
    worker.kill('SIGKILL');
    await worker.exited;
    counts.workers += 1;
    worker = await startWorkerProcess({ env: stack.env });
  }

  function progress(): string {
    const seconds = (performance.now() - startedMs) / 1_000;
    const rate = counts.toolServers / seconds;
    return (
      `after ${Math.round(seconds)} s: ${JSON.stringify(counts)}, ${charged.size} charges; ` +
      `${rate.toFixed(1)} kills a second`
    );
  }
}

function startHolding(
  number: number,
  { developerKey, consumerKey }: TestAccount,
  url: string,
): ChildProcess {
  return spawn(process.execPath, [HOLDING_PROCESS], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      NAME: `p${values.seed}.${number}`,
      SEED: String(Number(values.seed) + number),
      CONSUMER_KEY: consumerKey,
      FAREBOX_URL: url,
      FAREBOX_SECRET_KEY: developerKey,
      PATH: process.env['PATH'],
    },
  });
}
