/** Refusals of a FakeFarebox, in the shape of the service's. */
const STATUSES = {
  invalid_request: 400,
  invalid_amount: 400,
  invalid_cursor: 400,
  unknown_tool: 400,
  tool_archived: 400,
  refund_exceeds_charge: 400,
  invalid_api_key: 401,
  invalid_secret_key: 401,
  card_declined: 402,
  authentication_required: 402,
  card_expired: 402,
  declined_too_often: 402,
  no_saved_card: 402,
  insufficient_balance: 402,
  spend_limit_reached: 402,
  exceeds_hold: 402,
  approval_required: 403,
  delegation_not_allowed: 403,
  developer_not_allowed: 403,
  tool_not_allowed: 403,
  consent_required: 403,
  consent_ceiling_reached: 403,
  not_found: 404,
  hold_not_found: 404,
  approval_closed: 409,
  approval_not_needed: 409,
  budget_closed: 409,
  hold_closed: 409,
  tool_exists: 409,
  idempotency_key_reused: 422,
  rate_limited: 429,
  outcome_unknown: 500,
  service_unavailable: 503,
};
const TYPES = {
  401: 'authentication_error',
  402: 'payment_error',
  422: 'idempotency_error',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'api_error',
};

function keyPageOf(code, param) {
  if (code === 'invalid_secret_key') return '/console/developer/settings';
  if (code !== 'invalid_api_key') return undefined;
  return param === 'apiKey' ? '/console/budgets' : '/console/keys';
}

export class FakeRefusal extends Error {
  constructor(code, message, param, facts) {
    super(message);
    this.status = STATUSES[code];
    const type = TYPES[this.status] ?? 'invalid_request_error';
    const docUrl = `https://fake.farebox.example/docs/errors#${code}`;
    const keyPage = keyPageOf(code, param);
    const keysUrl = keyPage && `https://fake.farebox.example${keyPage}`;
    const mayWait = this.status === 429 || this.status === 503;
    const extra = {
      ...(param && { param }),
      ...(mayWait && { retryAfter: 1 }),
      ...(keysUrl && { keysUrl }),
      ...facts,
    };
    this.error = { type, code, message, docUrl, ...extra };
  }
}

export function refuse(code, message, param, facts) {
  throw new FakeRefusal(code, message, param, facts);
}

/** Without `param`, `rule` is the whole sentence. */
export function malformed(param, rule) {
  refuse('invalid_request', `${param === undefined ? '' : `${param} `}${rule}.`, param);
}
