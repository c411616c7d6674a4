/**
 * @farebox/client: charge a consumer for a tool call, get a signed receipt, run the tool. Amounts are dollars with at
 * most six decimals (0.000001 is the smallest); timestamps are ISO 8601 UTC strings.
 */

import type {
  BalanceReply,
  BatchMember,
  CheckoutReply,
  ConsumerStatementReply,
  DeveloperStatementReply,
  EarningsReply,
  QuoteReply,
  RefusalsReply,
  TopUpReply,
  UsageByDayReply,
  VerifyReply,
} from './api.js';

import type { Approvals, AskOptions, OwnerApprovals } from './approvals.js';
import type { Budgets } from './budgets.js';
import type { DeveloperSettings, LowBalance } from './developer-settings.js';
import type { Lease, LeasedCharge, LeaseOptions, Leases } from './leases.js';
import type { FareboxError, ServiceUnavailableError } from './errors.js';
import type { BatchRequest, Holds } from './holds.js';
import type {
  ConsumerCharges,
  ConsumerChargesFilter,
  ConsumerHolds,
  ConsumerTopUps,
  DeveloperCharges,
  DeveloperTopUps,
} from './lists.js';
import type { Amount } from './money.js';
import type { Tools } from './tools.js';
import type { WebhookEndpoints } from './webhook-endpoints.js';

export type * as Api from './api.js';
export type { Approvals, AskOptions, OwnerApprovals, WaitOptions } from './approvals.js';
export type { Budgets } from './budgets.js';
export type { DeveloperSettings, LowBalance } from './developer-settings.js';
export type * from './leases.js';
export {
  FareboxError,
  InsufficientBalanceError,
  InvalidApiKeyError,
  ServiceUnavailableError,
} from './errors.js';
export type { BatchRequest, Capture, CaptureRequest, Hold, HoldRequest, Holds } from './holds.js';
export type * from './lists.js';
export type { RateCard, Tools } from './tools.js';
export type { WebhookEndpoints } from './webhook-endpoints.js';
export { usd, type Amount, type Rounding, type Usd } from './money.js';

/**
 * What charge() does when Farebox cannot be reached or does not respond:
 * `fail` throws, so the tool does not run; `run_unpaid` resolves with `paid: false`, so it may.
 */
export type OnUnavailable = 'fail' | 'run_unpaid';

export type OnError = (error: FareboxError, call: { tool: string }) => unknown;

interface ConnectionOptions {
  /** The URL of Farebox, such as `https://billing.example.com`. Default: `FAREBOX_URL`. */
  baseUrl?: string | undefined;
  /**
   * How long one attempt may take. A call ends within `timeoutMs * (maxRetries + 1)`. Default 5000. At least
   * 65000 for `topUp()`, `checkout()` and the decision `top_up` of a consumer, to which Farebox responds after
   * ten seconds at the latest, or after up to 60 if its operator chose so.
   */
  timeoutMs?: number | undefined;
  /** How many attempts may follow the first one, all with the same idempotency key. Default 2. */
  maxRetries?: number | undefined;
  /** Sends the requests, in place of the runtime's own: for proxies, and for tests (`@farebox/client/testing`). */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export interface FareboxOptions<Mode extends OnUnavailable = 'fail'> extends ConnectionOptions {
  /** Your secret key. Default: the environment's `FAREBOX_SECRET_KEY`. */
  secretKey?: string | undefined;
  /** Default `fail`. A refusal always throws, regardless of this setting. */
  onUnavailable?: Mode | undefined;
  /**
   * Called with what a caller of a paid tool or route is not told or cannot act upon: your own mistake, such as
   * a wrong secret key, a `price` or `settle` that returns no amount, a charge or refund whose `outcome` is
   * `unknown`, a refund that failed after a charge (with `chargeId`), and why a call ran unpaid. Default: a
   * `FareboxWarning` of the process (`process.on('warning')`), or of the console in edge runtimes, at most
   * once a minute for each code, tool and outcome. If it throws or rejects, there is a warning, and the call continues.
   */
  onError?: OnError | undefined;
  /**
   * Whether concurrent charges share a request (`POST /v1/charges/batch`). Default: true under Node, Bun and Deno;
   * false in edge runtimes such as Workers, where calls cannot share a request.
   */
  coalesce?: boolean | undefined;
  /**
   * The `keys` of `GET /v1/receipts/keys`: receipts are then verified without the network. They sign as well as verify,
   * so keep them as safe as your secret key. Default: fetched when first needed.
   */
  receiptKeys?: readonly ReceiptKey[] | undefined;
}

/** Options for one call, as its last argument. Any other member, such as an `idempotencyKey`, throws a TypeError. */
export interface CallOptions {
  /** Replaces the client's `timeoutMs`. The call ends within `timeoutMs * (maxRetries + 1)`. */
  timeoutMs?: number | undefined;
  /**
   * Ends the call: it throws `aborted`, with the signal's reason as `cause`. If a request was sent, it may have taken
   * effect: `outcome` is then `unknown`; repeat the call with `idempotencyKey` to find out.
   */
  signal?: AbortSignal | undefined;
}

export interface EarningsFilter extends Omit<ConsumerChargesFilter, 'limit'> {
  /** Adds a `series`, starting at `from`. */
  interval?: 'hour' | 'day' | undefined;
}

/** One of the developer's receipt keys. */
export interface ReceiptKey {
  /** The id as in a receipt, such as `1`. */
  id: string;
  /** 32 bytes in base64url, for HMAC-SHA-256. */
  key: string;
}

/**
 * How many of each unit of the tool's rate card a call used: whole numbers from 0 to 10^12. They cost the exact
 * sum, rounded once to the micro-dollar, half to even, and at least one micro-dollar. Units that cost nothing
 * cannot be charged.
 */
export type Units = Readonly<Record<string, number>>;

/** One charge. */
export interface ChargeRequest<Mode extends OnUnavailable = OnUnavailable> {
  /**
   * The consumer's key, as the tool server received it; `serviceKeyOf` reads it. A missing, empty or wrong key is
   * refused with `invalid_api_key`.
   */
  apiKey: string | undefined;
  /** The tool's name. The tool need not be registered. */
  tool: string;
  /** Dollars. Default: the price with which the tool is registered. */
  amount?: Amount | undefined;
  /** In place of an amount: how much was used, for the prices on the tool's rate card. */
  units?: Units | undefined;
  /**
   * Stored with the charge: at most 20 fields, with names of up to 40 and strings of up to 500 characters.
   * Pass an integer beyond 2^53 as a string: JSON rounds it.
   */
  metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  /**
   * Names this charge: another call with the same key and the same request finds the charge instead of making a second
   * one. 1 to 255 printable ASCII characters. Default: a fresh UUID for each call. Never use a JSON-RPC
   * request id, which starts again at 1 with each connection.
   */
  idempotencyKey?: string | undefined;
  /** For this call only. */
  onUnavailable?: Mode | undefined;
  /**
   * After a refusal that the owner of the account can lift, asks the owner, waits for the decision and
   * charges again with the same key. If the owner denies the request or does not decide in time, throws the
   * refusal with `approvalId` and `approvalStatus`.
   */
  ask?: true | AskOptions | undefined;
}

/** A successful, durable charge. */
export interface Charge {
  paid: true;
  /** `chg_...` */
  id: string;
  /** The signed receipt. You may show it to the consumer. */
  receipt: string;
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** `cns_...` */
  consumerId: string;
  /** `dev_...`: you. */
  developerId: string;
  /** The consumer's balance after this charge, in dollars. */
  balance: number;
  createdAt: string;
  /** The version of the rate card, if units were charged. */
  cardVersion?: number;
  /**
   * Whether this idempotency key had already made the charge: in an earlier call, or in an attempt of this call whose
   * response was lost. Without your own key, it is always the latter.
   */
  replayed: boolean;
}

/** A refund of a charge that you made. */
export interface RefundRequest {
  /** The charge's `id`: `chg_...` */
  chargeId: string;
  /** Dollars, at most the part of the charge that is left. Default: all that is left. */
  amount?: Amount | undefined;
  /**
   * Names this refund of this charge: another call with the same key and the same amount finds it instead of making a
   * second one. 1 to 255 printable ASCII characters. Default: a fresh UUID for each call.
   */
  idempotencyKey?: string | undefined;
}

/** A successful, durable refund: the consumer can spend the money again. */
export interface Refund {
  /** `rf_...` */
  id: string;
  /** `chg_...` */
  chargeId: string;
  /** Dollars refunded by this refund. */
  amount: number;
  /** Dollars of the charge refunded so far, including this refund. */
  refunded: number;
  createdAt: string;
  /** Whether this idempotency key had already made the refund. */
  replayed: boolean;
}

/** One of the `keys` of `GET /v1/receipts/public-keys` (RFC 8037). */
export interface PublicReceiptKey {
  kty: string;
  crv: string;
  kid: string;
  x: string;
}

/**
 * Verifies that a public receipt (`POST /v1/receipts/public`) was signed by Farebox, and returns its contents. For
 * payers: it needs neither a secret key nor a request. Farebox signs a public receipt only for a charge or
 * invocation that it has recorded.
 */
export declare function verifyPublicReceipt(
  keys: readonly PublicReceiptKey[],
  receipt: string,
): Promise<ReceiptCheck>;

/** The result of verifyReceipt(). It has no contents when the receipt is not valid. */
export type ReceiptCheck =
  | { valid: true; charge: ReceiptCharge; invocation?: undefined }
  | { valid: true; charge?: undefined; invocation: ReceiptInvocation }
  | { valid: false; charge: null; invocation?: undefined };

/** The contents of an agent invocation's receipt. Hashes are in hex, over JSON without whitespace. */
export interface ReceiptInvocation {
  id: string;
  /** The account that invoked the agent. */
  developerId: string;
  callerId: string;
  targetAgentId: string;
  grantId: string;
  capability: string;
  status: 'succeeded' | 'failed';
  /** The hash of `{targetAgentId, grantId, capability, payload}`. */
  requestSha256: string;
  /** The hash of the agent's response; null when it failed. */
  resultSha256: string | null;
  createdAt: string;
  completedAt: string;
}

/** The contents of a charge's receipt. */
export type ReceiptCharge = Pick<
  Charge,
  'id' | 'consumerId' | 'developerId' | 'tool' | 'amount' | 'createdAt' | 'cardVersion'
> & {
  /** False: a charge of play money, by test keys. Nobody paid for it. */
  livemode: boolean;
};

/** Only with `run_unpaid`: Farebox did not respond, and the tool may run without payment. */
export interface UnpaidCharge {
  paid: false;
  code: 'service_unavailable';
  /** The reason. If its `outcome` is `unknown`, the consumer may have been charged anyway. */
  error: ServiceUnavailableError;
}

/**
 * The result of a member of a batch. One with an `error` has the member's `idempotencyKey` too (a release only if
 * you gave it one): send the member again with it if the status is 409 `idempotency_key_in_use`, 500 or 503. It takes
 * effect once.
 */
export type BatchResult = WithError<BatchMember> & { idempotencyKey?: string | undefined };

/** So that `error` can be read of each. */
type WithError<Member> = Member extends { error: object } ? Member : Member & { error?: undefined };

export type ChargeResult<Mode extends OnUnavailable> = Mode extends 'run_unpaid'
  ? Charge | UnpaidCharge
  : Charge;

export declare class Farebox<Mode extends OnUnavailable = 'fail'> {
  /** Throws a TypeError when a setting is missing or wrong. Opens no connection. */
  constructor(options?: FareboxOptions<Mode>);

  /**
   * Charges a consumer (`POST /v1/charges`; concurrent calls share a request, each with its own result). Run the tool
   * when it resolves with `paid: true`. Lost connections, timeouts and the statuses 409, 429, 500 and 503 are retried
   * with the same idempotency key, after a jittered pause or the time that `Retry-After` asks for.
   *
   * Throws FareboxError, by `code`:
   * - `insufficient_balance`: with `balance`, `required`, `shortfall`, `topUpUrl`; nothing was charged;
   * - `invalid_api_key`: the consumer's key is missing, wrong or revoked;
   * - `mode_mismatch`: the consumer's key is a test key and yours is a live key, or the other way round;
   * - `service_unavailable`: no response; `outcome` says whether a charge may have been made;
   * - any other code of the service, such as `invalid_amount` or `invalid_secret_key` (your own key).
   */
  charge<CallMode extends OnUnavailable = Mode>(
    request: ChargeRequest<CallMode>,
    options?: CallOptions,
  ): Promise<ChargeResult<CallMode>>;

  /**
   * Makes charges and places, captures and releases holds, up to 1,000 in one request (`POST /v1/charges/batch`). Each
   * is decided on its own, in order, and has a result: `status` with the charge, the `hold`, or the `error`. A refusal
   * throws nothing. Throws FareboxError when the batch itself fails; each member has an idempotency key, your own or a
   * fresh one, with which it is retried.
   */
  batch(members: readonly BatchRequest[], options?: CallOptions): Promise<BatchResult[]>;

  /**
   * Refunds one of your charges to its consumer, in whole or in part (`POST /v1/charges/:id/refund`). Retried like
   * charge(), with the same idempotency key. The charge and its receipt do not change.
   *
   * Throws FareboxError, by `code`:
   * - `refund_exceeds_charge`: with `refundable`, what is left of the charge; nothing was refunded;
   * - `not_found`: you made no such charge;
   * - `service_unavailable`: no response; `outcome` says whether a refund may have been made;
   * - any other code of the service.
   */
  refund(request: RefundRequest, options?: CallOptions): Promise<Refund>;

  /** What a charge would cost now: its units, or without units the price of the tool. Takes and reserves nothing. */
  quote(
    request: { tool: string; units?: Units | undefined },
    options?: CallOptions,
  ): Promise<QuoteReply>;

  /** Your earnings, in total or for a range of whole UTC hours, and by tool. */
  earnings(filter?: EarningsFilter, options?: CallOptions): Promise<EarningsReply>;
  /** Your earnings in a UTC month, such as `2026-11`. */
  statement(month: string, options?: CallOptions): Promise<DeveloperStatementReply>;
  /** What your callers were refused in the last hours, 24 by default, by code and tool. */
  refusals(filter?: { hours?: number | undefined }, options?: CallOptions): Promise<RefusalsReply>;
  /** Signs a receipt for everybody: `verifyPublicReceipt` checks the result without your keys. */
  publicReceipt(receipt: string, options?: CallOptions): Promise<string>;
  readonly charges: DeveloperCharges;
  readonly topUps: DeveloperTopUps;
  readonly developer: DeveloperSettings;
  readonly lowBalance: LowBalance;
  readonly tools: Tools;
  readonly holds: Holds;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly approvals: Approvals;
  readonly leases: Leases;
  /**
   * Takes a lease on a spend key, and keeps renewing it. Its charge() decides calls in this process, within a
   * microsecond, even while Farebox is away. Throws what `POST /v1/leases` refuses, such as `lease_not_allowed`,
   * and a TypeError in edge runtimes, which end timers with the request.
   */
  lease(options: LeaseOptions & { journal: string }): Promise<Lease<Promise<LeasedCharge>>>;
  lease(options: LeaseOptions & { journal?: undefined }): Promise<Lease>;
  /** If only the running program knows whether there is a journal, await what charge() returns. */
  lease(options: LeaseOptions): Promise<Lease<LeasedCharge | Promise<LeasedCharge>>>;
  /** The setting, which paid tools and routes have as their default too. */
  readonly onUnavailable: Mode;
  /** The setting, which paid tools and routes call. */
  readonly onError: OnError;
  /** The request id of the last response: name it when you ask for help. */
  readonly lastRequestId: string | undefined;

  /**
   * Whether a receipt is one of yours and unchanged to the byte, and its contents. The only request is for your receipt
   * keys: once, and again, at most once a minute, when a receipt names an unknown key. If Farebox has retired the key,
   * the receipt is not valid here: ask `POST /v1/receipts/verify`, which compares it with the ledger.
   *
   * Another developer's receipt is not valid, because its key is not yours. Throws FareboxError when the keys are
   * needed and cannot be fetched (`service_unavailable`, `invalid_secret_key`).
   */
  verifyReceipt(receipt: string): Promise<ReceiptCheck>;

  /**
   * The pricing helper: a map of tool name to price in dollars. Throws a RangeError when a price cannot be charged.
   *
   * @example const prices = farebox.withPrices({ search: 0.02, summarize: 0.5 }); await prices.charge({ apiKey, tool:
   * 'search' });
   */
  withPrices<Tool extends string>(
    prices: Readonly<Record<Tool, Amount>>,
  ): PricedFarebox<Tool, Mode>;
}

export interface FareboxConsumerOptions extends ConnectionOptions {
  /** Default: the environment's `FAREBOX_CONSUMER_KEY`. */
  consumerKey?: string | undefined;
}

export interface TopUpRequest {
  /** Dollars, in whole cents. Through checkout at least 5, from the saved card at least 0.50. */
  amount: Amount;
  /** Names this top-up, like a charge's key. Default: a fresh UUID for each call. */
  idempotencyKey?: string | undefined;
}

export interface CheckoutRequest extends TopUpRequest {
  /** Save the card for top-ups that are made without its owner. Requires the owner's consent. Default: false. */
  saveCard?: boolean | undefined;
}

/** The consumer's side, for programs that pay for tools, such as an agent with a budget. */
export declare class FareboxConsumer {
  /** Throws a TypeError when a setting is missing or wrong. Opens no connection. */
  constructor(options?: FareboxConsumerOptions);
  balance(options?: CallOptions): Promise<BalanceReply>;
  /** What you were charged on each UTC day, from `from` (such as `2026-11-01`, at most 100 days ago) to today. */
  usageByDay(filter: { from: string }, options?: CallOptions): Promise<UsageByDayReply>;
  /** Asks Farebox whether a receipt is valid and on record. */
  verifyReceipt(receipt: string, options?: CallOptions): Promise<VerifyReply>;
  /** Signs a receipt for everybody: `verifyPublicReceipt` checks the result without a developer's keys. */
  publicReceipt(receipt: string, options?: CallOptions): Promise<string>;
  /** The statement for a UTC month, such as `2026-11`. */
  statement(month: string, options?: CallOptions): Promise<ConsumerStatementReply>;
  /**
   * Tops up from the saved card, if the owner of the account has consented. `status` is `pending` when the payment
   * takes more than ten seconds, or when the bank wants the cardholder to confirm it at `sessionUrl`. Throws
   * `consent_required`, `consent_ceiling_reached` or `card_declined`, among others, with `topUpUrl`. Throws
   * instead of retrying if Farebox asks for a pause of more than five seconds.
   */
  topUp(request: TopUpRequest, options?: CallOptions): Promise<TopUpReply>;
  /** Opens a hosted checkout: send the payer to `sessionUrl`. Without one, call again with the same key. */
  checkout(request: CheckoutRequest, options?: CallOptions): Promise<CheckoutReply>;
  readonly charges: ConsumerCharges;
  readonly holds: ConsumerHolds;
  readonly topUps: ConsumerTopUps;
  readonly budgets: Budgets;
  readonly approvals: OwnerApprovals;
  /** The request id of the last response: name it when you ask for help. */
  readonly lastRequestId: string | undefined;
}

/** Charges the prices of the map. A tool that is not in it throws `unknown_tool`, without a request. */
export interface PricedFarebox<Tool extends string, Mode extends OnUnavailable = 'fail'> {
  charge<CallMode extends OnUnavailable = Mode>(
    request: Omit<ChargeRequest<CallMode>, 'amount' | 'units' | 'tool'> & { tool: Tool },
    options?: CallOptions,
  ): Promise<ChargeResult<CallMode>>;
}

/**
 * The consumer's key in a request to a tool server: `X-Service-Key`, or else an `Authorization: Bearer` token that
 * looks like a consumer's key. `undefined` when there is none, or when the header was sent twice.
 *
 * @param headers a Headers object, or node's `request.headers` (names in lower case)
 */
export declare function serviceKeyOf(
  headers:
    | { get(name: string): string | null }
    | Readonly<Record<string, string | string[] | undefined>>,
): string | undefined;
