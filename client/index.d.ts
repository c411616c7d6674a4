/**
 * @farebox/client: charge a consumer for a tool call, get a signed receipt, run the tool.
 * Section numbers are those of the Farebox interface specification. Amounts are dollars as JSON
 * numbers with at most six decimals (0.000001 is the smallest); timestamps are ISO 8601 UTC strings.
 */

/**
 * What charge() does when Farebox cannot be reached or gives no answer (section 7):
 * `fail` raises, so the tool does not run; `run_unpaid` resolves with `paid: false`, so it may.
 */
export type OnUnavailable = 'fail' | 'run_unpaid';

export interface FareboxOptions<Mode extends OnUnavailable = 'fail'> {
  /** The developer secret key (section 5). Default: the environment's `FAREBOX_SECRET_KEY`. */
  secretKey?: string | undefined;
  /** Where Farebox is, such as `https://billing.example.com`. Default: `FAREBOX_URL`. */
  baseUrl?: string | undefined;
  /** How long one attempt may take. A call ends within `timeoutMs * (maxRetries + 1)`. Default 5000. */
  timeoutMs?: number | undefined;
  /** How many attempts may follow the first one; all have its idempotency key. Default 2. */
  maxRetries?: number | undefined;
  /** Default `fail`. A refusal always raises, whatever this says. */
  onUnavailable?: Mode | undefined;
  /** Default true: concurrent charges go together in one request (`POST /v1/charges/batch`). */
  coalesce?: boolean | undefined;
  /**
   * The `keys` of `GET /v1/receipts/keys`: receipts are then verified without the network. They sign as
   * well as verify, so keep them as secret as your secret key. Default: asked for when first needed.
   */
  receiptKeys?: readonly ReceiptKey[] | undefined;
}

/** One of the developer's receipt keys. */
export interface ReceiptKey {
  /** As in a receipt, such as `1`. */
  id: string;
  /** 32 bytes in base64url, for HMAC-SHA-256. */
  key: string;
}

/** One charge (section 4.3). */
export interface ChargeRequest<Mode extends OnUnavailable = OnUnavailable> {
  /**
   * The consumer's key, as the tool server received it; `serviceKeyOf` reads it. A missing, empty or
   * wrong one is refused with `invalid_api_key`.
   */
  apiKey: string | undefined;
  /** The tool's name. It need not be registered before. */
  tool: string;
  /** Dollars. Without it the price that the tool is registered with is charged. */
  amount?: number | undefined;
  /** Kept with the charge: at most 20 members, names of 40 and strings of 500 characters. */
  metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  /**
   * Names this charge: another call with the same key and the same request finds the charge instead of
   * making a second. 1 to 255 visible ASCII characters. Default: a fresh UUID for each call. Never use
   * a JSON-RPC request id, which begins again at 1 for each connection.
   */
  idempotencyKey?: string | undefined;
  /** For this call only. */
  onUnavailable?: Mode | undefined;
}

/** A charge that is made and durable. */
export interface Charge {
  paid: true;
  /** `chg_...` */
  id: string;
  /** The signed receipt. It may be shown to the consumer. */
  receipt: string;
  tool: string;
  /** Dollars that were charged. */
  amount: number;
  /** `cns_...` */
  consumerId: string;
  /** `dev_...`: you. */
  developerId: string;
  /** The consumer's balance after this charge, in dollars. */
  balance: number;
  createdAt: string;
  /**
   * The charge had been made before with this idempotency key: by an earlier call, or by an attempt of
   * this call whose answer was lost. Without a key of your own it is always the latter.
   */
  replayed: boolean;
}

/** A refund of a charge that you made. */
export interface RefundRequest {
  /** The charge's `id`: `chg_...` */
  chargeId: string;
  /** Dollars, at most what is left of the charge. Default: all that is left. */
  amount?: number | undefined;
  /**
   * Names this refund of this charge: another call with the same key and the same amount finds it instead
   * of making a second. 1 to 255 visible ASCII characters. Default: a fresh UUID for each call.
   */
  idempotencyKey?: string | undefined;
}

/** A refund that is made and durable: the consumer can spend the money again. */
export interface Refund {
  /** `rf_...` */
  id: string;
  /** `chg_...` */
  chargeId: string;
  /** Dollars that went back by this refund. */
  amount: number;
  /** Dollars of the charge that went back by this refund and those before it. */
  refunded: number;
  createdAt: string;
  /** The refund had been made before with this idempotency key. */
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
 * Whether a public receipt (`POST /v1/receipts/public`) was signed by Farebox, and what it says. For payers: it needs
 * no key of theirs and no request. Farebox signs a public receipt only for a charge or invocation that it has recorded.
 */
export declare function verifyPublicReceipt(
  keys: readonly PublicReceiptKey[],
  receipt: string,
): Promise<ReceiptCheck>;

/** What verifyReceipt() found. Of a receipt that does not hold nothing is shown. */
export type ReceiptCheck =
  | { valid: true; charge: ReceiptCharge; invocation?: undefined }
  | { valid: true; charge?: undefined; invocation: ReceiptInvocation }
  | { valid: false; charge: null; invocation?: undefined };

/** What a receipt of an agent's invocation says (section 4.4). Hashes are in hex, of JSON without blanks. */
export interface ReceiptInvocation {
  id: string;
  /** Whose account invoked. */
  developerId: string;
  callerId: string;
  targetAgentId: string;
  grantId: string;
  capability: string;
  status: 'succeeded' | 'failed';
  /** Of `{targetAgentId, grantId, capability, payload}`. */
  requestSha256: string;
  /** Of what the agent answered; null when it failed. */
  resultSha256: string | null;
  createdAt: string;
  completedAt: string;
}

/** What a receipt of a charge says. */
export type ReceiptCharge = Pick<
  Charge,
  'id' | 'consumerId' | 'developerId' | 'tool' | 'amount' | 'createdAt'
>;

/** With `run_unpaid` only: Farebox was not there, and the tool may run without payment. */
export interface UnpaidCharge {
  paid: false;
  code: 'service_unavailable';
  /** Why. When its `outcome` is `unknown`, the consumer may have been charged all the same. */
  error: ServiceUnavailableError;
}

export type ChargeResult<Mode extends OnUnavailable> = Mode extends 'run_unpaid'
  ? Charge | UnpaidCharge
  : Charge;

export declare class Farebox<Mode extends OnUnavailable = 'fail'> {
  /** Throws a TypeError when a setting is missing or wrong. Opens no connection. */
  constructor(options?: FareboxOptions<Mode>);

  /**
   * Charges a consumer (section 4.3, `POST /v1/charges`; calls that wait at the same time go together,
   * each with its own answer). Run the tool when it resolves with
   * `paid: true`. Lost connections, timeouts and the statuses 409, 429, 500 and 503 are retried with
   * the same idempotency key, after a jittered pause or what `Retry-After` asks for.
   *
   * Raises FareboxError, by `code` (section 7):
   * - `insufficient_balance`: with `balance`, `required`, `shortfall`, `topUpUrl`; nothing was charged;
   * - `invalid_api_key`: the consumer's key is missing, wrong or revoked;
   * - `service_unavailable`: no answer; `outcome` says whether a charge may have been made;
   * - any other code of the service, such as `invalid_amount` or `invalid_secret_key` (your own key).
   */
  charge<CallMode extends OnUnavailable = Mode>(
    request: ChargeRequest<CallMode>,
  ): Promise<ChargeResult<CallMode>>;

  /**
   * Gives a charge of yours back to its consumer, in whole or in part (`POST /v1/charges/:id/refund`). Retried
   * as charge() is, with the same idempotency key. The charge and its receipt stay as they are.
   *
   * Raises FareboxError, by `code`:
   * - `refund_exceeds_charge`: with `refundable`, what is left of the charge; nothing was refunded;
   * - `not_found`: you made no such charge;
   * - `service_unavailable`: no answer; `outcome` says whether a refund may have been made;
   * - any other code of the service.
   */
  refund(request: RefundRequest): Promise<Refund>;

  /**
   * Whether a receipt (section 2) is one of yours and unchanged to the byte, and what it says. No
   * request is made, but for your receipt keys: once, and once more, at most once a minute, when a
   * receipt names a key that is not known yet.
   *
   * A receipt of another developer is not valid: its key is not yours. Raises FareboxError when the
   * keys are needed and cannot be had (`service_unavailable`, `invalid_secret_key`).
   */
  verifyReceipt(receipt: string): Promise<ReceiptCheck>;

  /**
   * The pricing helper (section 4.3, rule 4): a map of tool name to price in dollars.
   * Throws a RangeError when a price is not an amount that can be charged.
   *
   * @example
   * const prices = farebox.withPrices({ search: 0.02, summarize: 0.5 });
   * await prices.charge({ apiKey, tool: 'search' });
   */
  withPrices<Tool extends string>(
    prices: Readonly<Record<Tool, number>>,
  ): PricedFarebox<Tool, Mode>;
}

/** Charges what the map says. A tool that is not in it raises `unknown_tool`, without a request. */
export interface PricedFarebox<Tool extends string, Mode extends OnUnavailable = 'fail'> {
  charge<CallMode extends OnUnavailable = Mode>(
    request: Omit<ChargeRequest<CallMode>, 'amount' | 'tool'> & { tool: Tool },
  ): Promise<ChargeResult<CallMode>>;
}

/**
 * The consumer's key of a request to a tool server: `X-Service-Key` (section 4.3, rule 1), else an
 * `Authorization: Bearer` token that looks like a consumer key. `undefined` when there is none or when
 * the header was sent twice.
 *
 * @param headers a Headers object, or node's `request.headers` (names in lower case)
 */
export declare function serviceKeyOf(
  headers:
    | { get(name: string): string | null }
    | Readonly<Record<string, string | string[] | undefined>>,
): string | undefined;

/**
 * Why charge() or refund() did nothing, or verifyReceipt() could not tell. No field ever holds a key but
 * `idempotencyKey`, which is no secret.
 */
export declare class FareboxError extends Error {
  /** Like `instanceof`, also across two installed copies of this package. */
  static isInstance(value: unknown): value is FareboxError;

  readonly code: string;
  /**
   * `not_charged`: this call took no money (`not_refunded`: gave none back). `unknown`: it may have, because
   * an answer was lost; call again with this `idempotencyKey` to find out, without a second one.
   */
  readonly outcome: 'not_charged' | 'not_refunded' | 'unknown';
  /** The key of this charge or refund; absent when no request was sent. */
  readonly idempotencyKey: string | undefined;
  /** HTTP status of the last answer; absent when there was none. */
  readonly status: number | undefined;
  /** A coarse class, such as `payment_error`. */
  readonly type: string | undefined;
  /** The field at fault. */
  readonly param: string | undefined;
  readonly docUrl: string | undefined;
  readonly requestId: string | undefined;
  /** A charge that the answer refers to. */
  readonly chargeId: string | undefined;
  /** With `insufficient_balance`: dollars that the consumer has. */
  readonly balance: number | undefined;
  /** With `insufficient_balance`: dollars that the charge asked for. */
  readonly required: number | undefined;
  /** With `insufficient_balance`: dollars that are missing. */
  readonly shortfall: number | undefined;
  /** With `insufficient_balance`: where the consumer tops up. */
  readonly topUpUrl: string | undefined;
  /** With `refund_exceeds_charge`: dollars of the charge that are left to refund. */
  readonly refundable: number | undefined;
}

/** The consumer must top up (section 7). */
export declare class InsufficientBalanceError extends FareboxError {
  readonly code: 'insufficient_balance';
}

/** Reject the call (section 7). */
export declare class InvalidApiKeyError extends FareboxError {
  readonly code: 'invalid_api_key';
}

/** Fail, or run the tool without payment (section 7). */
export declare class ServiceUnavailableError extends FareboxError {
  readonly code: 'service_unavailable';
}
