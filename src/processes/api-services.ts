/**
 * The services that handlers use, each created after those that it needs. What has to be stopped is put on the stack
 * `opened`, whose owner closes it.
 */
import type { Logger } from 'pino';
import { AccountKeyGuard } from '../charging/account-key-guard.ts';
import { ApprovalLinks } from '../signing/approval-links.ts';
import type { Flush } from '../charging/batcher.ts';
import { BudgetRulesCache } from '../charging/budget-rules.ts';
import { HoldCards } from '../charging/hold-cards.ts';
import { EarlierCharges } from '../charging/earlier-charges.ts';
import { createKeyCache } from '../charging/find-key-owner.ts';
import { LastUsedRecorder } from '../charging/last-used-recorder.ts';
import { createChargeBatcher, createEntryBatcher } from '../charging/ledger-batchers.ts';
import { PublicReceipts } from '../charging/public-receipts.ts';
import { ReceiptSigner } from '../charging/receipts.ts';
import { RecentChanges } from '../charging/recent-changes.ts';
import { startRollupFallback } from '../charging/rollup-fallback.ts';
import { ToolPrices } from '../charging/tool-prices.ts';
import { TopUpLinks } from '../signing/top-up-links.ts';
import type { Config } from '../config.ts';
import { Console } from '../console/console.ts';
import { WebhookSigner } from '../events/signing.ts';
import { ApprovalWatch } from '../http/approval-watch.ts';
import { EarningsWatch } from '../http/earnings-watch.ts';
import { createFairShares } from '../http/fair-shares.ts';
import { createQuotedTaxes } from '../http/handlers/top-ups/quote.ts';
import { createRateLimits } from '../http/rate-limits.ts';
import { Readiness } from '../http/readiness.ts';
import { RefusalRecorder } from '../http/refusals/refusal-recorder.ts';
import { ResponseRecorder } from '../http/response-recorder.ts';
import type { Api } from '../http/services.ts';
import { STARTS_AT_ONCE_MAX } from '../invocations/request-invocation.ts';
import { Semaphore } from '../invocations/semaphore.ts';
import { ClosedCharges } from '../store/charges/closed-charges.ts';
import { findRecentChanges } from '../store/recent-changes.ts';
import { createStripe } from '../stripe/calls.ts';
import { isLiveKey } from '../stripe/webhook.ts';
import type { TemporalClient } from '../temporal/client.ts';
import { readTemporalState } from '../temporal/namespace.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { OpenedPools } from './api-pools.ts';

export interface ServiceDeps extends OpenedPools {
  readonly config: Config;
  readonly log: Logger;
  readonly tracing: Tracing | undefined;
  readonly temporal: TemporalClient;
  readonly onFlush: ((flush: Flush) => void) | undefined;
  readonly opened: AsyncDisposableStack;
}

export async function openServices(deps: ServiceDeps): Promise<Api> {
  const { config, log, pools, clock, temporal, tracing, opened } = deps;
  const { database, lookUps, invocations } = pools;
  const warn = warner(log);
  const receipts = new ReceiptSigner(config.masterSecrets);
  const charging = await openCharging(deps, receipts.activeKey);
  const { batcher, keys } = charging;
  const stripe = createStripe(config.stripe, { tracing });
  const shares = createFairShares(batcher);
  const rollupFallback = startRollupFallback(database, warn('fallback rollup failed'));
  opened.defer(() => rollupFallback.stop());
  const refusals = new RefusalRecorder(database, clock, warn('could not record refusals'));
  opened.defer(() => refusals.stop());
  const consoleSessions = new Console({ config, database, log });
  opened.defer(() => consoleSessions.end());
  const approvals = new ApprovalWatch(database, warn('could not look for decided approvals'));
  const earnings = new EarningsWatch(database, clock, warn('could not read earnings for streams'));
  const closedCharges = new ClosedCharges();
  clock.onSetBack((byMs) => {
    log.warn({ byMs }, 'the clock of Postgres was set back');
    closedCharges.forget();
  });
  return {
    ...charging,
    config,
    log,
    tracing,
    database,
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
    },
    invocations: {
      database: invocations,
      temporal,
      starts: new Semaphore(STARTS_AT_ONCE_MAX),
      log,
    },
    stripe,
    quotedTaxes: createQuotedTaxes(),
    stripeWebhook: {
      database,
      stripe,
      webhookSecrets: config.stripe.webhookSecrets,
      isLive: isLiveKey(config.stripe.secretKey),
    },
    console: consoleSessions,
    responses: new ResponseRecorder(log, keys, refusals),
    shares,
    rateLimits: createRateLimits(config.rateLimits),
    readiness: new Readiness(lookUps, clock, (timeoutMs) =>
      readTemporalState(temporal.client, timeoutMs),
    ),
  };
}

/** The part that charges, holds and leases use. `receiptKey` is the number of the signing secret. */
async function openCharging(
  { config, log, pools, clock, laneCount, onFlush, tracing, opened }: ServiceDeps,
  receiptKey: number,
) {
  const { database, lookUps, charges, holds, leases } = pools;
  const warn = warner(log);
  const flushing = { laneCount, receiptKey, clock, onFlush, tracing };
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
  opened.defer(() => changes.stop());
  const keys = createKeyCache(lookUps, changes);
  const tools = new ToolPrices(lookUps, changes);
  const budgets = new BudgetRulesCache(lookUps, changes, clock);
  const lastUsed = new LastUsedRecorder(database, warn('could not record key usage'));
  opened.defer(() => lastUsed.stop());
  await changes.start();
  return {
    keyPrefix: config.keyPrefix,
    batcher,
    entries,
    leasePool: leases,
    clock,
    receiptKey,
    keys,
    lastUsed,
    tools,
    budgets,
    guards: new AccountKeyGuard(lookUps),
    earlier: new EarlierCharges(lookUps, clock),
    holdCards: new HoldCards(lookUps, changes),
  };
}

function warner(log: Logger) {
  return (message: string) => (error: unknown) => log.warn({ err: error }, message);
}
