/**
 * Every error code with its one HTTP status and its meaning to the caller (docs/specification.md, section 7).
 * 2xx: durable. 4xx and 503: no money moved. `idempotency_key_in_use`, 500 or a dropped connection: unknown; repeat
 * the request with the same idempotency key to find out.
 */
export const ERRORS = {
  invalid_request: [400, 'The request is malformed. `param` names the field.'],
  invalid_json: [400, 'The body is not valid UTF-8 JSON.'],
  invalid_amount: [
    400,
    'The amount has more than six decimals or is out of range. Round it, or send a decimal string.',
  ],
  invalid_cursor: [400, 'The cursor is not a `nextCursor` of this list.'],
  invalid_idempotency_key: [
    400,
    'The Idempotency-Key is empty, too long, sent twice, not printable ASCII, or begins or ends with a space.',
  ],
  invalid_signature: [400, 'The webhook is not signed by the payment processor, or it is too old.'],
  refund_exceeds_charge: [400, 'The refund exceeds what is left of the charge; see `refundable`.'],
  unknown_tool: [
    400,
    'The tool is not registered. Register it with a price. Or send an amount, unless you have charged the maximum number of unregistered names.',
  ],
  tool_archived: [
    400,
    'The tool is archived, so it has no price. Send an amount, or unarchive it.',
  ],
  too_many_approvals: [
    400,
    'This key, budget, balance or account has too many requests for approval. Try again in an hour, or once the owner has decided.',
  ],
  too_many_tools: [400, 'The account already has the maximum number of registered tools.'],
  invalid_api_key: [
    401,
    "The consumer's key is missing, invalid or revoked. Reject the call. The owner can create a live key at `keysUrl`; test spend keys are created with the API.",
  ],
  invalid_secret_key: [401, 'The secret key is missing, invalid or revoked. Send an active one.'],
  session_required: [401, 'The session has ended, or there is none. Sign in to the console.'],
  insufficient_balance: [402, 'The balance is too low for the charge. The consumer has to top up.'],
  spend_limit_reached: [
    402,
    'The call exceeds a limit of the budget; see `budgetId`, `scope`, `remaining` and `resetsAt`. The owner can raise the limit at `raiseUrl`.',
  ],
  exceeds_lease: [402, 'The amount is more than the lease has left; see `remaining`.'],
  exceeds_hold: [
    402,
    'The amount is more than the hold has left; see `remaining`. Or an `overflow` was refused, because the key is revoked or expired, or the budget does not allow the charge.',
  ],
  card_declined: [402, 'The card was declined. Another card can be used at checkout.'],
  tax_address_missing: [402, 'The tax depends on an address that is missing. Pay at checkout.'],
  authentication_required: [
    402,
    'The bank requires the cardholder to confirm the payment. Pay at checkout.',
  ],
  card_expired: [402, 'The saved card has expired. Another card can be used at checkout.'],
  payment_failed: [402, 'The payment failed and nothing was credited. Pay at checkout.'],
  payment_too_late: [402, 'The card could not be charged within 15 minutes. Nothing was taken.'],
  declined_too_often: [
    402,
    'The saved card was declined too often within an hour, and was not charged. Pay at checkout.',
  ],
  no_saved_card: [
    402,
    'No card is saved yet. Save one in the console, or at a checkout with `saveCard`.',
  ],
  foreign_origin: [403, 'A change with a session cookie must come from a page of the console.'],
  operator_required: [
    403,
    'Only operators can do this. `farebox account promote` makes an account an operator.',
  ],
  second_factor_required: [403, 'Operators need two-factor authentication. Turn it on first.'],
  sign_in_refused: [403, 'The sign-in endpoints of the console do not allow this; see `reason`.'],
  tool_not_allowed: [403, 'The budget of the spend key, or the lease, does not allow this tool.'],
  developer_not_allowed: [403, 'The budget of the spend key does not allow this developer.'],
  account_keys_closed: [
    403,
    'The consumer accepts charges only to spend keys. Ask for a spend key.',
  ],
  mode_mismatch: [403, 'A test key cannot be used with a live key. Use two keys of the same mode.'],
  approval_required: [
    403,
    'The owner has not approved this developer for the budget. The owner can approve it at `approvalUrl`.',
  ],
  lease_not_allowed: [
    403,
    'Only a spend key can be leased, and only if its budget and those above have `allowLeases`.',
  ],
  delegation_not_allowed: [
    403,
    'A spend key can change only budgets and keys below its own budget, and only if its budget has `mayDelegate`.',
  ],
  consent_required: [403, 'The owner has not consented to direct top-ups.'],
  consent_ceiling_reached: [403, 'The monthly limit that the owner consented to is reached.'],
  not_found: [404, 'Not found, or not visible to this key.'],
  hold_not_found: [404, 'There is no such hold, or it belongs to another account.'],
  lease_not_found: [404, 'There is no such lease, or it belongs to another account.'],
  method_not_allowed: [405, 'This path does not support this method; see the Allow header.'],
  idempotency_key_in_use: [
    409,
    'A request with this key is still running. Repeat it to get the outcome.',
  ],
  approval_closed: [409, 'The approval was already decided, or has ended; see `status`.'],
  approval_not_needed: [409, 'Nothing refuses this call, so it needs no approval. Charge again.'],
  top_up_not_refundable: [409, 'Only a credited top-up without a dispute can be refunded.'],
  hold_closed: [409, 'The hold was captured or released, or it has expired; see `status`.'],
  lease_closed: [409, 'The lease is settled, released or expired; see `status`.'],
  lease_fenced: [409, 'The lease has since been renewed; see `fence` for the current number.'],
  lease_not_renewable: [
    409,
    'This lease cannot be renewed: it is 24 hours old, it already ends later than you ask, or a window of its budget has started or changed since it was taken. Settle it and take a new one.',
  ],
  budget_closed: [409, 'The budget is closed or expired, or one above it is.'],
  budget_not_reopenable: [
    409,
    'Only a budget that limits a single developer to consumer keys can be reopened. Create a new one.',
  ],
  webhook_endpoint_disabled: [409, 'The webhook endpoint is disabled. Enable it first.'],
  tool_exists: [409, 'A tool with this name is already registered.'],
  agent_exists: [409, 'Another account has registered this agent id. Choose another id.'],
  grant_not_active: [409, 'The grant is used up, revoked, expired or for another agent.'],
  charges_archived: [
    410,
    'The charges of that period are archived. Statements and earnings still include them.',
  ],
  payload_too_large: [413, 'The request body is too large.'],
  unsupported_media_type: [415, 'The body must be application/json, without a Content-Encoding.'],
  idempotency_key_reused: [422, 'This key was used with a different body. Use a new key.'],
  rate_limited: [429, 'Too many requests. Wait as long as Retry-After says.'],
  internal_error: [500, 'Internal error. Quote the request id when you contact support.'],
  outcome_unknown: [
    500,
    'The request may have taken effect. Repeat it with the same Idempotency-Key. If the operation takes no key, read the object first.',
  ],
  service_unavailable: [503, 'This attempt changed nothing. Try again after Retry-After seconds.'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

export type ErrorCode = keyof typeof ERRORS;

/** Additional members of the error body, such as `balance` and `shortfall`. */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | null>>;

export interface RefusalDetails {
  /** The path of the offending field: `amount`, `entries.3.amount`. */
  readonly param?: string;
  readonly facts?: ErrorFacts;
  readonly retryAfterSeconds?: number;
  /** The methods that the path supports. */
  readonly allow?: string;
  /** A test key asked for this failure by its amount: nothing is wrong. */
  readonly isOnDemand?: boolean;
  /** Headers of the response: the remaining rate limit. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error as the client sees it. The store returns refusals as data; the HTTP layer throws them as this. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(code: ErrorCode, message: string, details: RefusalDetails = {}, cause?: unknown) {
    const [status] = ERRORS[code];
    const { stackTraceLimit } = Error;
    // Nobody reads the stack of a refusal, which takes more time than all else in a batch of refused charges.
    if (status < 500) Error.stackTraceLimit = 0;
    super(message, cause === undefined ? undefined : { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** The values of the `type` member: coarse classes that a client can branch on without knowing every code. */
export const ERROR_TYPES = [
  'invalid_request_error',
  'authentication_error',
  'payment_error',
  'idempotency_error',
  'rate_limit_error',
  'api_error',
] as const;
export type ErrorType = (typeof ERROR_TYPES)[number];

export function errorTypeOf(code: ErrorCode): ErrorType {
  const status = ERRORS[code][0];
  if (code.startsWith('idempotency_')) return 'idempotency_error';
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'payment_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}
