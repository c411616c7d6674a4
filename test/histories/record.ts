/**
 * Records a history of each path that a workflow can take, for the release that package.json names:
 * `node test/histories/record.ts`, of some by the beginnings of their names. Done once for each release; test/workflows/replay.spec.ts replays
 * all of them, so that no change to workflow code breaks what is running.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { Micros } from '../../src/domain/money.ts';
import { sql } from '../../src/store/database.ts';
import { admitTopUp, withdrawTopUp, type TopUp } from '../../src/store/top-ups/top-ups.ts';
import { reportPayment, startCheckout } from '../../src/temporal/start-top-up.ts';
import { reconcileNow, reconcileNowId } from '../../src/temporal/reconciliation.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { until } from '../support/stack.ts';
import { openAgentDesk } from '../support/agent-desk.ts';
import { startTemporalWithShortHistories } from '../support/short-histories.ts';
import { openDesk, type Consumer, type TopUpDesk } from '../support/top-up-desk.ts';
import { AGENT_PATHS } from './agent-paths.ts';
import { continuedRuns, OUTAGE_PATHS, RUNS_UNDER_WAY } from './outage-paths.ts';
import { REVERSAL_PATHS } from './reversal-paths.ts';

/** Each brings a top-up to its end and returns it. */
const PATHS: Readonly<Record<string, (desk: TopUpDesk) => Promise<Pick<TopUp, 'id'>>>> = {
  async 'checkout-reported'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.pay(topUp.sessionUrl);
    return topUp;
  },

  async 'checkout-unprompted'(desk) {
    await desk.control('webhooks', { mode: 'drop' });
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await until(async () => (await eventCount(desk, topUp, 'EVENT_TYPE_TIMER_FIRED')) >= 2);
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    await desk.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'checkout-expired'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.control(`sessions/${topUp.sessionId}/expire-now`);
    return topUp;
  },

  async 'checkout-canceled'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.workflow(topUp.id).executeUpdate('cancel');
    return topUp;
  },

  async 'checkout-canceled-by-temporal'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.workflow(topUp.id).cancel();
    return topUp;
  },

  async 'checkout-stuck-then-retried'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.control('webhooks', { mode: 'drop' });
    await setAmount(desk, topUp, 26_000_000);
    await desk.pay(topUp.sessionUrl);
    await desk.workflow(topUp.id).executeUpdate('retry');
    await setAmount(desk, topUp, 25_000_000);
    await desk.workflow(topUp.id).executeUpdate('retry');
    await desk.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'checkout-reported-again-after-its-end'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    await desk.workflow(topUp.id).result();
    await reportPayment(desk.temporal, topUp);
    return topUp;
  },

  async 'checkout-withdrawn'(desk) {
    const consumer = await desk.newConsumer();
    const amountMicros = 25_000_000 as Micros;
    const admitted = await admitTopUp(desk.database, {
      ...consumer,
      method: 'checkout',
      amountMicros,
    });
    if (admitted.kind !== 'admitted') throw new Error(admitted.kind);
    await withdrawTopUp(desk.database, admitted.topUp.id);
    await startCheckout(desk.temporal, admitted.topUp, { timeoutMs: 10_000 });
    return admitted.topUp;
  },

  async 'direct-completed'(desk) {
    const result = await desk.request(await desk.newConsumer(), 'direct', 12.5);
    if (result.kind !== 'completed') throw new Error(result.kind);
    return result.topUp;
  },

  async 'direct-declined'(desk) {
    const consumer = await desk.newConsumer();
    await desk.request(consumer, 'direct', 1);
    await desk.saveCard(consumer, 'pm_card_chargeCustomerFail');
    const result = await desk.request(consumer, 'direct', 12.5);
    if (result.kind !== 'failed') throw new Error(result.kind);
    return result.topUp;
  },

  async 'automatic-completed'(desk) {
    return automatic(desk, await desk.newConsumer());
  },

  async 'automatic-declined'(desk) {
    const consumer = await desk.newConsumer();
    await desk.request(consumer, 'direct', 1);
    await desk.saveCard(consumer, 'pm_card_chargeCustomerFail');
    return automatic(desk, consumer);
  },

  async 'checkout-delayed'(desk) {
    const topUp = await desk.checkout(await desk.newConsumer(), 25);
    await desk.pay(topUp.sessionUrl, '000123456789');
    await until(async () => (await desk.waitingNotices()) === 0);
    await desk.control(`async/${topUp.sessionId}`, { outcome: 'succeeded' });
    return topUp;
  },

  async 'checkout-left-alone-as-asked'(desk) {
    await desk.control('faults', {
      method: 'POST',
      path: '/v1/checkout',
      kind: 'error',
      status: 429,
      headers: { 'retry-after': '1' },
      times: 5,
    });
    const result = await desk.request(await desk.newConsumer(), 'checkout', 25);
    if (!('topUp' in result)) throw new Error(result.kind);
    const url = await until(async () => (await desk.topUp(result.topUp.id)).sessionUrl);
    await desk.pay(url);
    return result.topUp;
  },
};

async function automatic(desk: TopUpDesk, consumer: Consumer): Promise<Pick<TopUp, 'id'>> {
  await desk.topUpAutomatically(consumer, 20);
  await desk.charge(consumer);
  return until(async () => (await desk.automaticTopUps(consumer))[0]);
}

async function eventCount(
  desk: TopUpDesk,
  topUp: Pick<TopUp, 'id'>,
  type: string,
): Promise<number> {
  const history = await desk.workflow(topUp.id).fetchHistory();
  const { events } = JSON.parse(historyToJSON(history)) as { events: { eventType: string }[] };
  return events.filter((event) => event.eventType === type).length;
}

async function setAmount(desk: TopUpDesk, topUp: TopUp, amountMicros: number): Promise<void> {
  await desk.database.query(sql.typeAlias('nothing')`
    update farebox.top_ups set amount_micros = ${amountMicros} where id = ${topUp.id}
  `);
}

/** Where it was recorded is nobody's business, and no part of what is replayed. */
function withoutPlaces(history: string): string {
  const recorded: unknown = JSON.parse(history, (key, value: unknown) => {
    const isPlace = key === 'stackTrace' || (typeof value === 'string' && /^\d+@/.test(value));
    return isPlace ? 'recorded' : value;
  });
  return JSON.stringify(recorded, null, 1);
}

interface Recorder {
  /** Waits for its end. */
  readonly save: (name: string, workflow: WorkflowHandle) => Promise<void>;
  readonly saveAsIs: (name: string, workflow: WorkflowHandle) => Promise<void>;
  /** Whether this path is asked for. */
  readonly isWanted: (name: string) => boolean;
}

async function recordTopUps({ save, isWanted }: Recorder): Promise<void> {
  const all = { ...PATHS, ...REVERSAL_PATHS, ...OUTAGE_PATHS };
  const paths = Object.entries(all).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const desk = await openDesk({ FIRST_ASK_MS: '500' });
  await desk.startWorker();
  try {
    for (const [name, path] of paths) await save(name, desk.workflow((await path(desk)).id));
  } finally {
    await desk.close();
  }
}

/** As they stand, since they do not end by themselves. */
async function recordRunsUnderWay({ saveAsIs, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(RUNS_UNDER_WAY).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const desk = await openDesk({ FIRST_ASK_MS: '3600000' });
  await desk.startWorker();
  try {
    for (const [name, path] of paths) await saveAsIs(name, desk.workflow((await path(desk)).id));
  } finally {
    await desk.close();
  }
}

async function recordContinuedRuns({ saveAsIs, isWanted }: Recorder): Promise<void> {
  if (!isWanted('checkout-continued')) return;
  const temporal = await startTemporalWithShortHistories();
  const desk = await openDesk({ FIRST_ASK_MS: '3600000', ...temporal.env });
  await desk.startWorker();
  try {
    const { before, after } = await continuedRuns(desk);
    await after.result();
    await saveAsIs('checkout-continued', before);
    await saveAsIs('checkout-continued-told-of-a-refund', after);
  } finally {
    await desk.close();
    await temporal.stop();
  }
}

async function recordAgents({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(AGENT_PATHS).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const desk = await openAgentDesk({ INVOCATION_DEADLINE_MS: '10000' });
  const { workflow } = desk.temporal.client;
  try {
    for (const [name, path] of paths) await save(name, workflow.getHandle(await path(desk)));
  } finally {
    await desk.close();
  }
}

/** One that finds little, and one that finds more than a run may move. */
async function recordRollups({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries({ 'roll-up': 3, 'roll-up-continued': 100_001 });
  if (!paths.some(([name]) => isWanted(name))) return;
  // Its own schedule keeps out of the way.
  const desk = await openDesk({ ROLL_UP_EVERY_SECONDS: '86400' });
  await desk.startWorker();
  const { client, taskQueue } = desk.temporal;
  try {
    for (const [name, rows] of paths) {
      await desk.database.query(sql.typeAlias('nothing')`
        insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
        select 0, 1, date_bin('1 minute', now(), 'epoch'), 'search', 1, 1
        from generate_series(1, ${rows})
      `);
      const options = { workflowId: name, taskQueue };
      const { firstExecutionRunId } = await client.workflow.start('rollUpEarnings', options);
      await save(name, client.workflow.getHandle(name, firstExecutionRunId));
    }
  } finally {
    await desk.close();
  }
}

/** One that finds nothing, and one that mends a payment of which nobody was told. */
async function recordReconciliations({ save, isWanted }: Recorder): Promise<void> {
  const paths = ['reconciliation', 'reconciliation-mends'].filter(isWanted);
  if (paths.length === 0) return;
  const desk = await openDesk({ FIRST_ASK_MS: '3600000', RECONCILE_EVERY_SECONDS: '86400' });
  await desk.startWorker();
  try {
    await desk.control('webhooks', { mode: 'drop' });
    for (const name of paths) {
      const topUp = await desk.checkout(await desk.newConsumer(), 25);
      if (name === 'reconciliation-mends') await desk.pay(topUp.sessionUrl);
      await reconcileNow(desk.temporal, AbortSignal.timeout(60_000));
      await save(name, desk.temporal.client.workflow.getHandle(reconcileNowId(desk.temporal)));
    }
  } finally {
    await desk.close();
  }
}

const manifest = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
const { version } = JSON.parse(manifest) as { version: string };
const folder = join(import.meta.dirname, version);
await mkdir(folder, { recursive: true });
const wanted = process.argv.slice(2);
async function saveAsIs(name: string, workflow: WorkflowHandle): Promise<void> {
  const history = historyToJSON(await workflow.fetchHistory());
  await writeFile(join(folder, `${name}.json`), `${withoutPlaces(history)}\n`);
}

const recorder: Recorder = {
  saveAsIs,
  isWanted: (name) => wanted.length === 0 || wanted.some((start) => name.startsWith(start)),
  save: async (name, workflow) => {
    await workflow.result();
    await saveAsIs(name, workflow);
  },
};
await mochaGlobalSetup();
try {
  await recordTopUps(recorder);
  await recordRunsUnderWay(recorder);
  await recordContinuedRuns(recorder);
  await recordAgents(recorder);
  await recordRollups(recorder);
  await recordReconciliations(recorder);
} finally {
  await mochaGlobalTeardown();
}
