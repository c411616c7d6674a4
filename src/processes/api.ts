/**
 * The composition root of the API: configuration to resources to a listening server, and back in reverse
 * order. The worker's is worker.ts beside it.
 */
import type { Logger } from 'pino';
import { createBatcher } from '../charging/create-batcher.ts';
import { DatabaseClock } from '../charging/database-clock.ts';
import { EarlierCharges } from '../charging/earlier-charges.ts';
import { createKeyCache } from '../charging/find-key-owner.ts';
import { createHoldLedger } from '../charging/create-hold-ledger.ts';
import { LastUsedRecorder } from '../charging/last-used-recorder.ts';
import {
  CHARGE_LOCK_TIMEOUT_MS,
  CHARGE_SILENCE_MS_MAX,
  CHARGE_STATEMENT_TIMEOUT_MS,
  DEBT_LANES,
  EXCEPTION_LANES,
  LANES,
} from '../charging/limits.ts';
import { PublicReceipts } from '../charging/public-receipts.ts';
import { ReceiptSigner } from '../charging/receipts.ts';
import { RollupFallback } from '../charging/rollup-fallback.ts';
import { ToolPrices } from '../charging/tool-prices.ts';
import type { Config } from '../config.ts';
import { createApp } from '../http/app.ts';
import { createFairShares } from '../http/fair-shares.ts';
import { createRateLimits } from '../http/rate-limits.ts';
import { Readiness } from '../http/readiness.ts';
import { listen } from '../http/server.ts';
import { createStripe } from '../stripe/calls.ts';
import { isLiveKey } from '../stripe/webhook.ts';
import { createDatabase } from '../store/database.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { STARTS_AT_ONCE_MAX } from '../agents/request-invocation.ts';
import { Turns } from '../temporal/turns.ts';

/** Connections of one API process besides its charge lanes, and how long they may be waited for and used. */
const READS = {
  maxPoolSize: 8,
  statementTimeoutMs: 5_000,
  silenceMsMax: 6_000,
  waitMsMax: 1_000,
} as const;
/**
 * For keys, prices, what changed of them, and readiness: charges wait for these, so they never wait for
 * what others read.
 */
const LOOK_UPS = {
  maxPoolSize: 3,
  statementTimeoutMs: 1_000,
  silenceMsMax: 2_000,
  waitMsMax: 1_000,
} as const;

export interface Running {
  readonly port: number;
  stop(): Promise<void>;
}

export async function runApi(config: Config, log: Logger): Promise<Running> {
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const onError = warn('a connection to Postgres broke');
  const { putOff } = await ensureChargePartitions(config.databaseUrl, Date.now());
  if (putOff.length > 0) log.warn({ putOff }, 'could not create partitions under load');
  const lookUps = await createDatabase(config.databaseUrl, { ...LOOK_UPS, onError });
  const clock = new DatabaseClock(lookUps, warn('could not read the clock of Postgres'));
  // Open connections would keep the process that cannot start from ending.
  await clock.start().catch(async (error: unknown) => {
    clock.stop();
    await lookUps.end();
    throw error;
  });
  const database = await createDatabase(config.databaseUrl, { ...READS, onError });
  const laneCount = config.sharesPort ? LANES.besideOthers : LANES.alone;
  const chargePool = await createDatabase(config.databaseUrl, {
    maxPoolSize: laneCount + EXCEPTION_LANES,
    lockTimeoutMs: CHARGE_LOCK_TIMEOUT_MS,
    statementTimeoutMs: CHARGE_STATEMENT_TIMEOUT_MS,
    silenceMsMax: CHARGE_SILENCE_MS_MAX,
    onError,
  });
  const holdPool = await createDatabase(config.databaseUrl, {
    maxPoolSize: laneCount + DEBT_LANES,
    statementTimeoutMs: CHARGE_STATEMENT_TIMEOUT_MS,
    silenceMsMax: CHARGE_SILENCE_MS_MAX,
    onError,
  });
  const receipts = new ReceiptSigner(config.masterSecrets);
  const batcher = createBatcher(
    chargePool,
    laneCount,
    receipts.activeKey,
    clock,
    warn('could not post charges'),
  );
  const keys = createKeyCache(lookUps, warn('could not read changed keys'));
  const tools = new ToolPrices(lookUps, warn('could not read changed tools'));
  const lastUsed = new LastUsedRecorder(database, warn('could not record key usage'));
  const rollupFallback = new RollupFallback(database, warn('fallback rollup failed'));
  await Promise.all([keys.start(), tools.start()]);
  const stripe = createStripe(config.stripe);
  const temporal = createTemporalClient(config.temporal);

  const app = createApp({
    config,
    log,
    keyPrefix: config.keyPrefix,
    database,
    batcher,
    holds: createHoldLedger(holdPool, laneCount, receipts.activeKey, clock),
    keys,
    lastUsed,
    tools,
    earlier: new EarlierCharges(lookUps, clock),
    receipts,
    publicReceipts: new PublicReceipts(config.masterSecrets),
    topUps: { database, temporal, log },
    invocations: { database, temporal, starts: new Turns(STARTS_AT_ONCE_MAX), log },
    webhooks: {
      database,
      stripe,
      webhookSecrets: config.stripe.webhookSecrets,
      isLive: isLiveKey(config.stripe.secretKey),
    },
    shares: createFairShares(),
    rateLimits: createRateLimits(config.rateLimits),
    readiness: new Readiness(lookUps, () => temporal.isUp()),
  });
  const release = async () => {
    clock.stop();
    keys.stop();
    tools.stop();
    await rollupFallback.stop();
    await lastUsed.stop();
    await temporal.close();
    await chargePool.end();
    await holdPool.end();
    await lookUps.end();
    await database.end();
  };
  // What stays open would keep a process alive that serves nobody, and that no supervisor starts anew.
  const server = await listen(app, config, `${config.baseUrl}/docs/errors`).catch(
    async (error: unknown) => {
      await release();
      throw error;
    },
  );
  return {
    port: server.port,
    stop: async () => {
      await server.close();
      await release();
    },
  };
}
