/**
 * The composition root of the API: turns configuration into resources and a listening server, and closes them in
 * reverse order. The worker's is worker.ts.
 */
import { Registry } from '@prometheus-io/client';
import type { Logger } from 'pino';
import { AccountKeyGuard } from '../charging/account-key-guard.ts';
import { ApprovalLinks } from '../charging/approval-links.ts';
import { BudgetRulesCache } from '../charging/budget-rules.ts';
import { createChargeBatcher } from '../charging/create-charge-batcher.ts';
import { EarlierCharges } from '../charging/earlier-charges.ts';
import { createKeyCache } from '../charging/find-key-owner.ts';
import { createEntryBatcher } from '../charging/create-entry-batcher.ts';
import { LastUsedRecorder } from '../charging/last-used-recorder.ts';
import { PublicReceipts } from '../charging/public-receipts.ts';
import { ReceiptSigner } from '../charging/receipts.ts';
import { RecentChanges } from '../charging/recent-changes.ts';
import { WebhookSigner } from '../events/signing.ts';
import { startRollupFallback } from '../charging/rollup-fallback.ts';
import { TopUpLinks } from '../charging/top-up-links.ts';
import { ToolPrices } from '../charging/tool-prices.ts';
import type { Config } from '../config.ts';
import { Console } from '../console/console.ts';
import { createApp } from '../http/app.ts';
import { ApprovalWatch } from '../http/approval-watch.ts';
import { EarningsWatch } from '../http/earnings-watch.ts';
import { createFairShares } from '../http/fair-shares.ts';
import { createRateLimits } from '../http/rate-limits.ts';
import { Readiness } from '../http/readiness.ts';
import { listen } from '../http/server.ts';
import { RefusalRecorder } from '../http/refusal-recorder.ts';
import { ResponseRecorder } from '../http/response-recorder.ts';
import { STARTS_AT_ONCE_MAX } from '../invocations/request-invocation.ts';
import { Semaphore } from '../invocations/semaphore.ts';
import { registerApi } from '../metrics/api-metrics.ts';
import { observeFlushes } from '../metrics/flush-metrics.ts';
import { serveMetrics, type MetricsServer } from '../metrics/serve-metrics.ts';
import { createStripe } from '../stripe/calls.ts';
import { isLiveKey } from '../stripe/webhook.ts';
import { ClosedCharges } from '../store/charges/closed-charges.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { findRecentChanges } from '../store/recent-changes.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { keepConnected } from '../temporal/keep-connected.ts';
import { startTracing } from '../tracing/start-tracing.ts';
import { closePools, openApiPools } from './api-pools.ts';
import { checkStart } from './check-start.ts';
import { startPatience } from './patience.ts';

export interface Running {
  readonly port: number;
  stop(): Promise<void>;
}

export async function runApi(config: Config, log: Logger): Promise<Running> {
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const patiently = startPatience(log);
  await patiently(() => checkStart(config, log));
  const { putOff } = await patiently(() =>
    ensureChargePartitions(config.databaseUrl, 'now', 'leave'),
  );
  if (putOff.length > 0) log.warn({ putOff }, 'the workers will create these partitions');
  const tracing = await startTracing(config.traces, 'farebox-api', log);
  const { laneCount, pools, clock } = await openApiPools(config, log, patiently, tracing);
  const { database, lookUps, invocations, charges, holds, leases } = pools;
  const receipts = new ReceiptSigner(config.masterSecrets);
  const { host, metricsPort } = config;
  const registry = metricsPort === undefined ? undefined : new Registry();
  const onFlush = registry && observeFlushes(registry);
  const { activeKey } = receipts;
  const flushing = { laneCount, receiptKey: activeKey, clock, onFlush, tracing };
  const batcher = createChargeBatcher({
    ...flushing,
    pool: charges,
    onFailure: warn('could not post charges'),
  });
  const entries = createEntryBatcher({
    ...flushing,
    pool: holds,
    onFailure: warn('could not post holds'),
  });
  const notRead = warn('could not read recent changes');
  const changes = new RecentChanges((since) => findRecentChanges(lookUps, since), notRead);
  const keys = createKeyCache(lookUps, changes);
  const tools = new ToolPrices(lookUps, changes);
  const budgets = new BudgetRulesCache(lookUps, changes, clock);
  const lastUsed = new LastUsedRecorder(database, warn('could not record key usage'));
  const rollupFallback = startRollupFallback(database, warn('fallback rollup failed'));
  await changes.start();
  const refusals = new RefusalRecorder(database, clock, warn('could not record refusals'));
  const responses = new ResponseRecorder(log, keys, refusals);
  const stripe = createStripe(config.stripe, { tracing });
  const temporal = createTemporalClient(config.temporal, tracing);
  const stopping = new AbortController();

  const approvals = new ApprovalWatch(database, warn('could not look for decided approvals'));
  const earnings = new EarningsWatch(database, clock, warn('could not read earnings for streams'));
  const shares = createFairShares(() => batcher.isShared);
  const closedCharges = new ClosedCharges();
  clock.onSetBack((byMs) => {
    log.warn({ byMs }, 'the clock of Postgres was set back');
    closedCharges.forget();
  });
  const consoleSessions = new Console({ config, database, log });
  const app = createApp({
    config,
    log,
    tracing,
    keyPrefix: config.keyPrefix,
    database,
    batcher,
    entries,
    leasePool: leases,
    clock,
    receiptKey: receipts.activeKey,
    keys,
    lastUsed,
    tools,
    budgets,
    guards: new AccountKeyGuard(lookUps),
    earlier: new EarlierCharges(lookUps, clock),
    receipts,
    topUpLinks: new TopUpLinks(config.masterSecrets, config.consoleUrl, clock),
    approvalLinks: new ApprovalLinks(config.masterSecrets, config.consoleUrl),
    approvals,
    earnings,
    publicReceipts: new PublicReceipts(config.masterSecrets),
    closedCharges,
    webhookSigner: new WebhookSigner(config.masterSecrets),
    topUps: {
      database,
      temporal,
      log,
      answerMs: config.topUpAnswerMs,
      inTurn: (accountId, write) => shares.topUps.run(accountId, 1, write),
    },
    invocations: {
      database: invocations,
      temporal,
      starts: new Semaphore(STARTS_AT_ONCE_MAX),
      log,
    },
    webhooks: {
      database,
      stripe,
      webhookSecrets: config.stripe.webhookSecrets,
      isLive: isLiveKey(config.stripe.secretKey),
    },
    console: consoleSessions,
    responses,
    shares,
    rateLimits: createRateLimits(config.rateLimits),
    readiness: new Readiness(lookUps, clock, () => temporal.isUp()),
  });
  const release = async () => {
    await consoleSessions.end();
    clock.stop();
    changes.stop();
    await rollupFallback.stop();
    await lastUsed.stop();
    await refusals.stop();
    stopping.abort();
    await temporal.close();
    await closePools(pools);
    await tracing?.stop();
  };
  // An open resource would keep the process alive without serving, and no supervisor would restart it.
  const server = await listen(app, config, config.baseUrl, responses).catch(
    async (error: unknown) => {
      await release();
      throw error;
    },
  );
  let metrics: MetricsServer | undefined;
  if (registry && metricsPort !== undefined) {
    const waitingCharges = () => batcher.waiting + entries.waiting;
    registerApi(registry, {
      responses,
      waitingCharges,
      pools: { charges, holds, lookUps, invocations, reads: database },
    });
    metrics = await serveMetrics({ host, port: metricsPort, log }, registry).catch(
      async (error: unknown) => {
        await server.close();
        await release();
        throw error;
      },
    );
  }
  void keepConnected(temporal, log, stopping.signal);
  return {
    port: server.port,
    stop: async () => {
      // Requests that wait for a decision are answered with the present state. Their senders ask again elsewhere.
      approvals.stop();
      earnings.stop();
      await server.close();
      await metrics?.close();
      await release();
    },
  };
}
