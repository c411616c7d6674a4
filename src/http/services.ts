/** What handlers work with: made once by the composition root (main.ts). */
import type { Logger } from 'pino';
import type { ChargeBatcher } from '../charging/batcher.ts';
import type { ChargingDeps } from '../charging/charging.ts';
import type { HoldLedger } from '../charging/hold-ledger.ts';
import type { PublicReceipts } from '../charging/public-receipts.ts';
import type { ReceiptSigner } from '../charging/receipts.ts';
import type { Config } from '../config.ts';
import type { Database } from '../store/database.ts';
import type { Invocations } from '../agents/request-invocation.ts';
import type { TopUps } from '../top-ups/request-top-up.ts';
import type { WebhookDeps } from '../stripe/webhook.ts';

export interface Api extends ChargingDeps {
  readonly config: Config;
  readonly log: Logger;
  /** For reads and rare writes; charges have connections of their own. */
  readonly database: Database;
  readonly batcher: ChargeBatcher;
  readonly holds: HoldLedger;
  readonly receipts: ReceiptSigner;
  readonly publicReceipts: PublicReceipts;
  readonly topUps: TopUps;
  readonly invocations: Invocations;
  readonly webhooks: WebhookDeps;
  /** Whether the workflow server answers; for /readyz. */
  readonly isTemporalUp: () => Promise<boolean>;
}
