/**
 * The schedule that rolls up earnings, under traffic on two API processes and with one or two workers: figures agree
 * with the charges while it runs, when workers are killed at any step, and after days without them.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readTemporalConfig } from '../../../src/config.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { scheduleIdOf } from '../../../src/temporal/schedules.ts';
import { ToolsReply } from '../../../src/schemas/tools.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import {
  TOOLS,
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { Random, SEED } from '../../support/random.ts';
import { proveBooks } from '../../support/books.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import {
  aloneInNamespace,
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
  type Stack,
} from '../../support/stack.ts';

const today = () => Math.floor(Date.now() / DAY_MS) * DAY_MS;

describe('the schedule that rolls up earnings', () => {
  const random = new Random(SEED);
  let stack: Stack<ServerProcess>;
  let harness: EarningsHarness;
  /** Outside the transactions that hold a step: these see one state of what waits. */
  let watcher: Client;
  let temporal: TemporalClient;
  let apis: readonly ServerProcess[];
  let workers: ServerProcess[];
  let parties: Party[];

  before(async () => {
    // Its runs are found by their type.
    const alone = await aloneInNamespace();
    stack = await startProcesses({ env: { ...alone, ROLL_UP_EVERY_SECONDS: '1' } });
    const { PORT: _, BASE_URL: __, ...env } = stack.env;
    apis = [stack.api, await startApiProcess({ env })];
    workers = [stack.worker, await startWorkerProcess({ env: stack.env })];
    temporal = createTemporalClient(readTemporalConfig(stack.env));
    harness = await openEarningsHarness(stack.database.url);
    watcher = new Client({ connectionString: stack.database.url });
    await watcher.connect();
    parties = await harness.parties(4);
    for (const party of parties) await harness.topUp(party, 100_000_000);
  });
  after(async () => {
    await watcher?.end();
    await harness?.close();
    await temporal?.close();
    await apis?.[1]?.stop();
    await Promise.all(workers?.map((worker) => worker.stop()) ?? []);
    await stack?.stop();
  });

  const schedule = () =>
    temporal.client.schedule.getHandle(scheduleIdOf(temporal, 'rollUpEarnings'));

  /** Charges of random consumers, developers and tools, on either process, as quickly as they are answered. */
  async function traffic(count: number): Promise<void> {
    for (let made = 0; made < count; made += 1) {
      const payer = { ...random.pick(parties), developerKey: random.pick(parties).developerKey };
      const changes = { tool: random.pick(TOOLS), amount: random.between(1, 500_000) / 1e6 };
      assert.equal((await charge(random.pick(apis), payer, changes)).status, 201);
    }
  }

  const emptied = () => until(async () => (await harness.tailRows()) === 0);

  /** As any client sees it, on each process. */
  async function compareAnswers(): Promise<void> {
    for (const { developerKey: key, developerNumber } of parties) {
      const { rows } = await harness.client.query<{ micros: number; charges: number }>(
        `select coalesce(sum(amount_micros), 0)::int as micros, count(*)::int as charges
         from farebox.charges where developer = $1`,
        [developerNumber],
      );
      const [{ micros, charges }] = rows as [{ micros: number; charges: number }];
      for (const api of apis) {
        const earnings = bodyOf(
          await call(api, 'GET', '/v1/earnings', { key }),
          200,
          EarningsReply,
        );
        const { tools } = bodyOf(await call(api, 'GET', '/v1/tools', { key }), 200, ToolsReply);
        assert.equal(Math.round(earnings.totalEarnings * 1e6), micros);
        assert.equal(
          tools.reduce((sum, tool) => sum + tool.totalCharges, 0),
          charges,
        );
      }
    }
  }

  it(`agrees with the charges at every moment, and empties the tails (SEED=${SEED})`, async () => {
    const over: true[] = [];
    const calling = Array.from({ length: 4 }, async () => {
      await traffic(60);
      over.push(true);
    });
    do await harness.compare(parties, today());
    while (over.length < calling.length);
    await Promise.all(calling);
    await emptied();
    await harness.compare(parties, today());
    await compareAnswers();
    await proveBooks(stack.env, { processor: false });
  });

  /** A lock from outside that holds a step at one point. */
  const POINTS = {
    'before it takes anything': 'lock table farebox.earnings_tail in exclusive mode',
    'while it adds earnings': 'select from farebox.earnings for update',
    'between earnings and what top-ups paid':
      'lock table farebox.attribution_tail in exclusive mode',
    'while it adds what top-ups paid': 'select from farebox.top_up_earnings for update',
  };
  for (const [point, hold] of Object.entries(POINTS)) {
    it(`moves everything once when the workers are killed ${point}`, async () => {
      await pause();
      await traffic(20);
      await harness.client.query('begin');
      try {
        await harness.client.query(hold);
        await schedule().trigger();
        await until(async () => (await stepsThatWait()) > 0);
        await killWorkers();
      } finally {
        await harness.client.query('rollback');
      }
      await restartAndProve(1);
    });
  }

  it('moves everything once when the workers are killed right after the commit', async () => {
    await pause();
    await traffic(20);
    await schedule().trigger();
    await until(async () => (await harness.tailRows()) === 0, { intervalMs: 1 });
    await killWorkers();
    await traffic(5);
    await schedule().trigger();
    await restartAndProve(2);
  });

  /**
   * Waits until no run is left: it would move what is charged next, and one that is triggered in the second in which
   * it began has its workflow id and does not start. The list of workflows misses a run that has just started, and
   * the schedule does not know about triggered runs, whose killed workers may have left them.
   */
  async function pause(): Promise<void> {
    await schedule().pause();
    await until(async () => {
      const { state, info } = await schedule().describe();
      return state.paused && info.runningActions.length === 0;
    });
    const left = 'WorkflowType = "rollUpEarnings" and ExecutionStatus = "Running"';
    await until(async () => (await temporal.client.workflow.count(left)).count === 0);
  }

  async function killWorkers(): Promise<void> {
    for (const worker of workers) worker.kill('SIGKILL');
    await Promise.all(workers.map(({ exited }) => exited));
  }

  async function restartAndProve(count: 1 | 2): Promise<void> {
    await harness.compare(parties, today());
    workers = await Promise.all(
      Array.from({ length: count }, () => startWorkerProcess({ env: stack.env })),
    );
    await schedule().unpause();
    await emptied();
    await harness.compare(parties, today());
    await proveBooks(stack.env, { processor: false });
  }

  async function stepsThatWait(): Promise<number> {
    const { rows } = await watcher.query<{ count: number }>(`
      select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%taken as (%'
    `);
    return rows[0]?.count ?? 0;
  }

  it('catches up with days of charges in runs of short history', async () => {
    const { client } = temporal;
    await emptied();
    await pause();
    // They would help, as without a worker.
    await Promise.all(apis.map((api) => api.stop()));
    const before = await harness.client.query(
      'select coalesce(sum(amount_micros), 0)::int from farebox.earnings',
    );
    const [developer] = parties as [Party, ...Party[]];
    // Five days, with a row every 0.6 seconds, each refunded right away: zero in total.
    await harness.client.query(
      `insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
       select 0, $1, date_bin('1 minute', now() - n * interval '600 milliseconds', 'epoch'), 'search',
         case n % 2 when 0 then 7 else -7 end, 0
       from generate_series(1, 700000) n`,
      [developer.developerNumber],
    );
    await schedule().unpause();
    await emptied();
    const after = await harness.client.query(
      'select coalesce(sum(amount_micros), 0)::int from farebox.earnings',
    );
    assert.deepEqual(after.rows, before.rows);
    const runs = await until(async () => {
      const found = [];
      for await (const run of client.workflow.list({
        query: 'WorkflowType = "rollUpEarnings" and ExecutionStatus = "ContinuedAsNew"',
      })) {
        found.push(run);
      }
      return found.length >= 2 && found;
    });
    for (const { historyLength } of runs) assert.ok((historyLength ?? 0) < 100);
  });
});
