/**
 * The composition root of the API: configuration to resources to a listening server, and back in reverse
 * order. The worker's is worker.ts beside it.
 */
import type { Logger } from 'pino';
import { ChargeBatcher } from '../charging/batcher.ts';
import { FreshCache } from '../charging/fresh-cache.ts';
import { HoldLedger } from '../charging/hold-ledger.ts';
import { KeyUse } from '../charging/key-use.ts';
import { PublicReceipts } from '../charging/public-receipts.ts';
import { ReceiptSigner } from '../charging/receipts.ts';
import { TailNet } from '../charging/tail-net.ts';
import { ToolPrices } from '../charging/tool-prices.ts';
import type { Config } from '../config.ts';
import { uuidFloor } from '../domain/ids.ts';
import { createApp } from '../http/app.ts';
import { listen } from '../http/server.ts';
import { createStripe } from '../stripe/calls.ts';
import { isLiveKey } from '../stripe/webhook.ts';
import { findChangedKeyHashes, findKeyOwners, type KeyOwner } from '../store/accounts/api-keys.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ReplayWindow,
} from '../store/charges/post-charges.ts';
import { postHoldEntries } from '../store/holds/post-hold-entries.ts';
import { createDatabase, type Connection, type Database } from '../store/database.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { STARTS_AT_ONCE_MAX } from '../agents/request-invocation.ts';
import { Turns } from '../temporal/turns.ts';

/** While one lane's commit waits for the disk, the other one works; of a process beside others, theirs do. */
const LANES = { alone: 2, besideOthers: 1 } as const;
const BATCH_MAX = 200;
const QUEUE_MAX = 5_000;
const CHARGE_DEADLINE_MS = 5_000;
/** Below the client library's patience of 5 s, so that who waits gets an answer rather than a guess. */
const CHARGE_STATEMENT_TIMEOUT_MS = 4_000;
const READ_CONNECTIONS = 8;
const KEYS_CACHED_MAX = 25_000;
/** Idempotency keys are honoured for at least 60 days; two more for clocks and slow retries. */
const REPLAY_DAYS = 62;
const DAY_MS = 86_400_000;

export interface Running {
  readonly port: number;
  stop(): Promise<void>;
}

export async function runApi(config: Config, log: Logger): Promise<Running> {
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const onError = warn('a connection to Postgres broke');
  const { putOff } = await ensureChargePartitions(config.databaseUrl, Date.now());
  if (putOff.length > 0) log.warn({ putOff }, 'traffic did not let partitions be made');
  const database = await createDatabase(config.databaseUrl, {
    maxPoolSize: READ_CONNECTIONS,
    onError,
  });
  const laneCount = config.sharesPort ? LANES.besideOthers : LANES.alone;
  const ledger = await createDatabase(config.databaseUrl, {
    maxPoolSize: laneCount,
    statementTimeoutMs: CHARGE_STATEMENT_TIMEOUT_MS,
    onError,
  });
  const holdPool = await createDatabase(config.databaseUrl, {
    maxPoolSize: laneCount,
    statementTimeoutMs: CHARGE_STATEMENT_TIMEOUT_MS,
    onError,
  });
  const receipts = new ReceiptSigner(config.masterSecrets);
  const batcher = chargeBatcher(
    ledger,
    laneCount,
    receipts.activeKey,
    warn('charges could not be posted'),
  );
  const keys = keyCache(database, warn('changed keys could not be read'));
  const tools = new ToolPrices(database, warn('changed tools could not be read'));
  const keyUse = new KeyUse(database, warn('the use of keys could not be noted'));
  const tailNet = new TailNet(database, warn('long tails could not be shortened'));
  await Promise.all([keys.start(), tools.start()]);
  const stripe = createStripe(config.stripe);
  const temporal = createTemporalClient(config.temporal);

  const app = createApp({
    config,
    log,
    keyPrefix: config.keyPrefix,
    database,
    batcher,
    holds: holdLedger(holdPool, laneCount, receipts.activeKey),
    keys,
    keyUse,
    tools,
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
    isTemporalUp: () => temporal.isUp(),
  });
  const release = async () => {
    keys.stop();
    tools.stop();
    await tailNet.stop();
    await keyUse.stop();
    await temporal.close();
    await ledger.end();
    await holdPool.end();
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

/** In the lanes' own connections, besides those of charges. */
function holdLedger(database: Database, laneCount: number, receiptKey: number): HoldLedger {
  return new HoldLedger({
    execute: (entries) => postHoldEntries(database, entries, receiptKey, replayWindow()),
    laneCount,
    batchMax: BATCH_MAX,
    queueMax: QUEUE_MAX,
    deadlineMs: CHARGE_DEADLINE_MS,
  });
}

function replayWindow(): ReplayWindow {
  const now = Date.now();
  return {
    fromId: uuidFloor(now - REPLAY_DAYS * DAY_MS),
    // A day for processes whose clocks are ahead of this one's.
    toId: uuidFloor(now + DAY_MS),
  };
}

type ChargeStatement<Outcome> = (
  connection: Connection,
  drafts: readonly ChargeDraft[],
  receiptKey: number,
  replay: ReplayWindow,
) => Promise<Outcome[]>;

function chargeBatcher(
  ledger: Database,
  laneCount: number,
  receiptKey: number,
  onFailure: (error: unknown) => void,
): ChargeBatcher {
  const send =
    <Outcome>(statement: ChargeStatement<Outcome>) =>
    (drafts: readonly ChargeDraft[], onSent: () => void) =>
      ledger.connect((connection) => {
        onSent();
        return statement(connection, drafts, receiptKey, replayWindow());
      });
  return new ChargeBatcher({
    execute: send(postFittingCharges),
    decide: send(postCharges),
    onFailure,
    laneCount,
    batchMax: BATCH_MAX,
    queueMax: QUEUE_MAX,
    deadlineMs: CHARGE_DEADLINE_MS,
  });
}

function keyCache(database: Database, onError: (error: unknown) => void): FreshCache<KeyOwner> {
  return new FreshCache<KeyOwner>({
    entriesMax: KEYS_CACHED_MAX,
    load: async (hashes) => {
      const owners = await findKeyOwners(database, hashes);
      return new Map(owners.map((owner) => [owner.hash, owner]));
    },
    findChanged: () => findChangedKeyHashes(database),
    onError,
  });
}
