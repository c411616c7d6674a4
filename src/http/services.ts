/** The services that handlers use, created once by the composition root (processes/api-services.ts). */
import type { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Stripe } from 'stripe';
import type { ChargingDeps } from '../charging/charge.ts';
import type { HoldCards } from '../charging/hold-cards.ts';
import type { EntryBatcher } from '../charging/ledger-batchers.ts';
import type { LeaseDeps } from '../charging/lease-requests.ts';
import type { PublicReceipts } from '../charging/public-receipts.ts';
import type { ReceiptSigner } from '../charging/receipts.ts';
import type { Config } from '../config.ts';
import type { Micros } from '../domain/money.ts';
import type { ClosedCharges } from '../store/charges/closed-charges.ts';
import type { Database } from '../store/database.ts';
import type { RequestInvocationDeps } from '../invocations/request-invocation.ts';
import type { TopUpLinks } from '../signing/top-up-links.ts';
import type { Console } from '../console/console.ts';
import type { ApprovalLinks } from '../signing/approval-links.ts';
import type { ApprovalWatch } from './approval-watch.ts';
import type { EarningsWatch } from './earnings-watch.ts';
import type { FairShares } from './fair-shares.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Readiness } from './readiness.ts';
import type { WebhookSigner } from '../events/signing.ts';
import type { RequestTopUpDeps } from '../top-ups/request-top-up.ts';
import type { WebhookDeps } from '../stripe/webhook.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { ResponseRecorder } from './response-recorder.ts';

export interface Api extends ChargingDeps, LeaseDeps {
  readonly holdCards: HoldCards;
  readonly config: Config;
  readonly log: Logger;
  /** Undefined: tracing is off. */
  readonly tracing: Tracing | undefined;
  /** For reads and rare writes. Charges, keys and prices have their own connections. */
  readonly database: Database;
  /** For holds, and for the charges that come with them. */
  readonly entries: EntryBatcher;
  readonly receipts: ReceiptSigner;
  readonly topUpLinks: TopUpLinks;
  readonly approvalLinks: ApprovalLinks;
  readonly approvals: ApprovalWatch;
  readonly earnings: EarningsWatch;
  readonly closedCharges: ClosedCharges;
  readonly publicReceipts: PublicReceipts;
  readonly webhookSigner: WebhookSigner;
  readonly topUps: RequestTopUpDeps;
  readonly invocations: RequestInvocationDeps;
  readonly stripe: Stripe;
  /** The tax on top-ups that were quoted recently (handlers/top-ups/quote.ts). */
  readonly quotedTaxes: LRUCache<string, Micros>;
  /** For the webhooks that Stripe sends us. Those that we send use `webhookSigner`. */
  readonly stripeWebhook: WebhookDeps;
  readonly console: Console;
  readonly responses: ResponseRecorder;
  readonly readiness: Readiness;
  readonly shares: FairShares;
  readonly rateLimits: RateLimits;
}
