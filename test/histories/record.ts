/**
 * Records a history of each path that a workflow can take, for the release that package.json names:
 * `node test/histories/record.ts`, or some by the first letters of their names. Done once for each release;
 * test/workflows/replay.spec.ts replays all of them, so that no change to workflow code breaks running
 * workflows.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { Micros } from '../../src/domain/money.ts';
import { sql } from '../../src/store/database.ts';
import { admitTopUp } from '../../src/store/top-ups/admit-top-up.ts';
import { withdrawTopUp } from '../../src/store/top-ups/claim-top-up.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { authenticate } from '../../src/stripe/authentication.ts';
import { reportPayment, startCheckout } from '../../src/temporal/start-top-up.ts';
import { reconcileNowId } from '../../src/temporal/reconcile-now.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { aloneInNamespace, until } from '../support/stack.ts';
import { openAgentHarness } from '../support/agent-harness.ts';
import { startTemporalWithShortHistories } from '../support/short-histories.ts';
import { openTopUpHarness, type Consumer, type TopUpHarness } from '../support/top-up-harness.ts';
import { openApprovalHarness } from '../support/approval-harness.ts';
import { AGENT_PATHS } from './agent-paths.ts';
import { APPROVAL_PATHS } from './approval-paths.ts';
import { EVENT_PATHS } from './event-paths.ts';
import { continuedRuns, OUTAGE_PATHS, RUNS_UNDER_WAY } from './outage-paths.ts';
import { REVERSAL_PATHS, REVERSALS_UNDER_WAY } from './reversal-paths.ts';

/** Each runs a top-up to its end and returns it. */
const PATHS: Readonly<Record<string, (harness: TopUpHarness) => Promise<Pick<TopUp, 'id'>>>> = {
  async 'checkout-reported'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.pay(topUp.sessionUrl);
    return topUp;
  },

  async 'checkout-unprompted'(harness) {
    await harness.control('webhooks', { mode: 'drop' });
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await until(async () => (await eventCount(harness, topUp, 'EVENT_TYPE_TIMER_FIRED')) >= 2);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    await harness.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'checkout-expired'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control(`sessions/${topUp.sessionId}/expire-now`);
    return topUp;
  },

  async 'checkout-canceled'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).executeUpdate('cancel');
    return topUp;
  },

  async 'checkout-canceled-by-temporal'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).cancel();
    return topUp;
  },

  async 'checkout-stuck-then-retried'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control('webhooks', { mode: 'drop' });
    await setAmount(harness, topUp, 26_000_000);
    await harness.pay(topUp.sessionUrl);
    await harness.workflow(topUp.id).executeUpdate('retry');
    await setAmount(harness, topUp, 25_000_000);
    await harness.workflow(topUp.id).executeUpdate('retry');
    await harness.control('webhooks', { mode: 'deliver' });
    return topUp;
  },

  async 'checkout-reported-again-after-its-end'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    await harness.workflow(topUp.id).result();
    await reportPayment(harness.temporal, topUp);
    return topUp;
  },

  async 'checkout-withdrawn'(harness) {
    const consumer = await harness.newConsumer();
    const amountMicros = 25_000_000 as Micros;
    const admitted = await admitTopUp(harness.database, {
      ...consumer,
      method: 'checkout',
      amountMicros,
    });
    if (admitted.kind !== 'admitted') throw new Error(admitted.kind);
    await withdrawTopUp(harness.database, admitted.topUp.id);
    await startCheckout(harness.temporal, admitted.topUp, { timeoutMs: 10_000 });
    return admitted.topUp;
  },

  async 'direct-completed'(harness) {
    const result = await harness.request(await harness.newConsumer(), 'direct', 12.5);
    if (result.kind !== 'completed') throw new Error(result.kind);
    return result.topUp;
  },

  async 'direct-declined'(harness) {
    const consumer = await harness.newConsumer();
    await harness.request(consumer, 'direct', 1);
    await harness.saveCard(consumer, 'pm_card_chargeCustomerFail');
    const result = await harness.request(consumer, 'direct', 12.5);
    if (result.kind !== 'failed') throw new Error(result.kind);
    return result.topUp;
  },

  async 'direct-authenticated'(harness) {
    const consumer = await harness.newConsumer();
    await harness.request(consumer, 'direct', 1);
    await harness.saveCard(consumer, 'pm_card_authenticationRequired');
    const result = await harness.request(consumer, 'direct', 12.5);
    if (result.kind !== 'pending') throw new Error(result.kind);
    const { paymentIntentId } = await harness.topUp(result.topUp.id);
    const next = await authenticate(harness.stripe, paymentIntentId ?? '', 'http://127.0.0.1:9/');
    if (next.kind !== 'redirect') throw new Error(next.kind);
    const body = new URLSearchParams({ result: 'succeeded' });
    await fetch(next.url, { method: 'POST', body });
    return result.topUp;
  },

  async 'automatic-completed'(harness) {
    return automatic(harness, await harness.newConsumer());
  },

  async 'automatic-declined'(harness) {
    const consumer = await harness.newConsumer();
    await harness.request(consumer, 'direct', 1);
    await harness.saveCard(consumer, 'pm_card_chargeCustomerFail');
    return automatic(harness, consumer);
  },

  async 'checkout-delayed'(harness) {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.pay(topUp.sessionUrl, '000123456789');
    await until(async () => (await harness.waitingNotices()) === 0);
    await harness.control(`async/${topUp.sessionId}`, { outcome: 'succeeded' });
    return topUp;
  },

  async 'checkout-left-alone-as-asked'(harness) {
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/checkout',
      kind: 'error',
      status: 429,
      headers: { 'retry-after': '1' },
      times: 5,
    });
    const result = await harness.request(await harness.newConsumer(), 'checkout', 25);
    if (!('topUp' in result)) throw new Error(result.kind);
    const url = await until(async () => (await harness.topUp(result.topUp.id)).sessionUrl);
    await harness.pay(url);
    return result.topUp;
  },
};

async function automatic(harness: TopUpHarness, consumer: Consumer): Promise<Pick<TopUp, 'id'>> {
  await harness.topUpAutomatically(consumer, 20);
  await harness.charge(consumer);
  return until(async () => (await harness.automaticTopUps(consumer))[0]);
}

async function eventCount(
  harness: TopUpHarness,
  topUp: Pick<TopUp, 'id'>,
  type: string,
): Promise<number> {
  const history = await harness.workflow(topUp.id).fetchHistory();
  const { events } = JSON.parse(historyToJSON(history)) as { events: { eventType: string }[] };
  return events.filter((event) => event.eventType === type).length;
}

async function setAmount(harness: TopUpHarness, topUp: TopUp, amountMicros: number): Promise<void> {
  await harness.database.query(sql.typeAlias('nothing')`
    update farebox.top_ups set amount_micros = ${amountMicros} where id = ${topUp.id}
  `);
}

/** The place of the recording is private, and not part of the replay. */
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
  /** Whether this path was requested. */
  readonly isWanted: (name: string) => boolean;
}

async function recordTopUps({ save, isWanted }: Recorder): Promise<void> {
  const all = { ...PATHS, ...OUTAGE_PATHS };
  const paths = Object.entries(all).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const harness = await openTopUpHarness({ FIRST_ASK_MS: '500' });
  await harness.startWorker();
  try {
    for (const [name, path] of paths) await save(name, harness.workflow((await path(harness)).id));
  } finally {
    await harness.close();
  }
}

async function recordReversals({ save, saveAsIs, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(REVERSAL_PATHS).filter(([name]) => isWanted(name));
  const underWay = Object.entries(REVERSALS_UNDER_WAY).filter(([name]) => isWanted(name));
  if (paths.length + underWay.length === 0) return;
  const harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
  await harness.startWorker();
  try {
    for (const [name, path] of paths) await save(name, harness.reversals((await path(harness)).id));
    for (const [name, path] of underWay)
      await saveAsIs(name, harness.reversals((await path(harness)).id));
  } finally {
    await harness.close();
  }
}

/** In progress, since they do not end by themselves. */
async function recordRunsUnderWay({ saveAsIs, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(RUNS_UNDER_WAY).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
  await harness.startWorker();
  try {
    for (const [name, path] of paths)
      await saveAsIs(name, harness.workflow((await path(harness)).id));
  } finally {
    await harness.close();
  }
}

async function recordContinuedRuns({ saveAsIs, isWanted }: Recorder): Promise<void> {
  if (!isWanted('checkout-continued')) return;
  const temporal = await startTemporalWithShortHistories();
  const harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...temporal.env });
  await harness.startWorker();
  try {
    const { before, after } = await continuedRuns(harness);
    await after.result();
    await saveAsIs('checkout-continued', before);
    await saveAsIs('checkout-continued-ended', after);
  } finally {
    await harness.close();
    await temporal.stop();
  }
}

async function recordAgents({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(AGENT_PATHS).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const harness = await openAgentHarness({
    ...(await aloneInNamespace()),
    INVOCATION_DEADLINE_MS: '10000',
    AGENT_TIMEOUT_MS: '120000',
    AGENT_GRACE_MS: '0',
  });
  const { workflow } = harness.temporal.client;
  try {
    for (const [name, path] of paths) await save(name, workflow.getHandle(await path(harness)));
  } finally {
    await harness.close();
  }
}

async function recordApprovals({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(APPROVAL_PATHS).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const harness = await openApprovalHarness({ ...(await aloneInNamespace()), DEV_MAIL: 'true' });
  const { workflow } = harness.temporal.client;
  try {
    for (const [name, path] of paths) await save(name, workflow.getHandle(await path(harness)));
  } finally {
    await harness.close();
  }
}

async function recordEvents({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries(EVENT_PATHS).filter(([name]) => isWanted(name));
  if (paths.length === 0) return;
  const harness = await openAgentHarness({
    ...(await aloneInNamespace()),
    WEBHOOK_RETRY_MS: '200',
  });
  const { workflow } = harness.temporal.client;
  try {
    for (const [name, path] of paths) await save(name, workflow.getHandle(await path(harness)));
  } finally {
    await harness.close();
  }
}

/** One that finds little, and one that finds more than a run may move. */
async function recordRollups({ save, isWanted }: Recorder): Promise<void> {
  const paths = Object.entries({ 'roll-up': 3, 'roll-up-continued': 100_001 });
  if (!paths.some(([name]) => isWanted(name))) return;
  // Its own schedule does not interfere.
  const harness = await openTopUpHarness({ ROLL_UP_EVERY_SECONDS: '86400' });
  await harness.startWorker();
  const { client, taskQueue } = harness.temporal;
  try {
    for (const [name, rows] of paths) {
      await harness.database.query(sql.typeAlias('nothing')`
        insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
        select 0, 1, date_bin('1 minute', now(), 'epoch'), 'search', 1, 1
        from generate_series(1, ${rows})
      `);
      const options = { workflowId: name, taskQueue };
      const { firstExecutionRunId } = await client.workflow.start('rollUpEarnings', options);
      await save(name, client.workflow.getHandle(name, firstExecutionRunId));
    }
  } finally {
    await harness.close();
  }
}

/** One that finds nothing, and one that repairs a payment without a webhook. */
async function recordReconciliations({ save, isWanted }: Recorder): Promise<void> {
  const paths = [
    'reconciliation',
    'reconciliation-mends',
    'reconciliation-of-a-warning',
    'reconciliation-walks-first',
  ].filter(isWanted);
  if (paths.length === 0) return;
  const harness = await openTopUpHarness({
    FIRST_ASK_MS: '3600000',
    RECONCILE_EVERY_SECONDS: '86400',
  });
  await harness.startWorker();
  try {
    await harness.control('webhooks', { mode: 'drop' });
    for (const name of paths) {
      const topUp = await harness.checkout(await harness.newConsumer(), 25);
      if (name === 'reconciliation-mends') await harness.pay(topUp.sessionUrl);
      if (name === 'reconciliation-of-a-warning') {
        const direct = await harness.requestDirect(await harness.newConsumer(), 10);
        if (direct.kind !== 'completed') throw new Error(direct.kind);
        const { paymentIntentId } = direct.topUp;
        await harness.control('fraud-warnings', { payment_intent: paymentIntentId });
      }
      await harness.reconcile();
      await save(
        name,
        harness.temporal.client.workflow.getHandle(reconcileNowId(harness.temporal)),
      );
    }
  } finally {
    await harness.close();
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
  await recordReversals(recorder);
  await recordRunsUnderWay(recorder);
  await recordContinuedRuns(recorder);
  await recordAgents(recorder);
  await recordApprovals(recorder);
  await recordEvents(recorder);
  await recordRollups(recorder);
  await recordReconciliations(recorder);
} finally {
  await mochaGlobalTeardown();
}
