/**
 * The codes that Farebox answers with, each with its one HTTP status and what it means to the one who gets
 * it (specification section 7).
 * Meanings: 2xx is durable; every 4xx but 409, and 503, did nothing; 409, 500 or a dropped line is
 * unknown, and the same idempotency key resolves it.
 */
export const ERRORS = {
  invalid_request: [400, 'The request is malformed; `param` names the field at fault. Correct it.'],
  invalid_json: [400, 'The body is not JSON in UTF-8.'],
  invalid_amount: [
    400,
    'The amount has more than six decimals, or is outside the allowed range. Round it, or send a decimal string.',
  ],
  invalid_cursor: [400, 'The cursor is not a `nextCursor` of this list.'],
  invalid_idempotency_key: [400, 'The Idempotency-Key header is empty, too long, or given twice.'],
  invalid_signature: [400, 'The webhook is not signed by the payment processor, or too old.'],
  refund_exceeds_charge: [400, 'More than what is left of the charge to refund: see `refundable`.'],
  unknown_tool: [400, 'The tool is not registered and the charge names no amount. Register it.'],
  tool_archived: [
    400,
    'The tool is archived, and its price with it. Name an amount, or unarchive it.',
  ],
  invalid_api_key: [401, "The consumer's key is missing, wrong or revoked. Reject the call."],
  invalid_secret_key: [401, "The developer's secret key is missing, wrong or revoked."],
  insufficient_balance: [402, 'The balance does not cover the charge. The consumer has to top up.'],
  card_declined: [402, 'The card was declined. Another card can be used at checkout.'],
  authentication_required: [402, 'The bank asks for its customer to confirm: pay at checkout.'],
  card_expired: [402, 'The saved card has expired. Another card can be used at checkout.'],
  payment_failed: [402, 'The payment did not succeed; nothing was credited. Pay at checkout.'],
  no_saved_card: [402, 'There is no saved card yet. The first checkout saves one.'],
  consent_required: [403, 'The owner has not consented to direct top-ups.'],
  consent_ceiling_reached: [403, 'The monthly ceiling that the owner consented to is reached.'],
  not_found: [404, 'There is no such thing, or this key may not see it.'],
  method_not_allowed: [405, 'The path exists, but not with this method; see the Allow header.'],
  idempotency_key_in_use: [409, 'A request with this key is in flight. Ask again for its outcome.'],
  tool_exists: [409, 'A tool of this name is registered already.'],
  agent_exists: [409, 'Another account has registered this agent id. Choose another id.'],
  grant_not_active: [
    409,
    'The grant is used, revoked, expired or for another agent. Get a new one.',
  ],
  payload_too_large: [413, 'The body is larger than any request has to be.'],
  unsupported_media_type: [415, 'The body must be application/json, not encoded.'],
  idempotency_key_reused: [422, 'This key belongs to a request with another body. Use a new one.'],
  rate_limited: [429, 'Too many requests. Wait for as long as Retry-After says.'],
  internal_error: [500, 'Our fault. It is logged with the request id.'],
  outcome_unknown: [500, 'It may have happened. Send it again with the same Idempotency-Key.'],
  service_unavailable: [503, 'Nothing happened. Try again after Retry-After seconds.'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

export type ErrorCode = keyof typeof ERRORS;

/** Extra members of the error body, such as `balance` and `shortfall`. */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | null>>;

export interface RefusalDetails {
  /** The field of the request that is at fault, as a path: `amount`, `charges[3].tool`. */
  readonly param?: string;
  readonly facts?: ErrorFacts;
  readonly retryAfterSeconds?: number;
  /** The methods that the path takes. */
  readonly allow?: string;
}

/** What a client is told. Thrown in the HTTP layer only; the store returns refusals as data. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(code: ErrorCode, message: string, details: RefusalDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ApiError';
    this.code = code;
    this.status = ERRORS[code][0];
    this.details = details;
  }
}

/** The `type` member: a coarse class that a client can branch on without knowing every code. */
export function errorTypeOf(code: ErrorCode): string {
  const status = ERRORS[code][0];
  if (code.startsWith('idempotency_')) return 'idempotency_error';
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'payment_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}
