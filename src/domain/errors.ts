/**
 * The codes that Farebox answers with, each with its one HTTP status (specification section 7).
 * Meanings: 2xx is durable; every 4xx but 409, and 503, did nothing; 409, 500 or a dropped line is
 * unknown, and the same idempotency key resolves it.
 */
export const STATUS_OF_CODE = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_amount: 400,
  invalid_cursor: 400,
  invalid_idempotency_key: 400,
  invalid_signature: 400,
  unknown_tool: 400,
  invalid_api_key: 401,
  invalid_secret_key: 401,
  insufficient_balance: 402,
  card_declined: 402,
  authentication_required: 402,
  card_expired: 402,
  no_saved_card: 402,
  consent_required: 403,
  consent_ceiling_reached: 403,
  not_found: 404,
  method_not_allowed: 405,
  idempotency_key_in_use: 409,
  tool_exists: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal_error: 500,
  outcome_unknown: 500,
  service_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_OF_CODE;

/** Extra members of the error body, such as `balance` and `shortfall`. */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | null>>;

export interface RefusalDetails {
  /** The field of the request that is at fault, as a path: `amount`, `charges[3].tool`. */
  readonly param?: string;
  readonly facts?: ErrorFacts;
  readonly retryAfterSeconds?: number;
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
    this.status = STATUS_OF_CODE[code];
    this.details = details;
  }
}

/** The `type` member: a coarse class that a client can branch on without knowing every code. */
export function errorTypeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'payment_error';
  if (status === 409 || status === 422) return 'idempotency_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}
