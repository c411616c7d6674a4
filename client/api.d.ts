/**
 * The bodies and the replies of the HTTP API. Generated from its OpenAPI document by
 * `npm run generate`; do not edit.
 */

export type BatchMember =
  | {
      status: 201;
      /** An earlier operation with the same idempotency key took effect, and this is its result. */
      replayed?: true;
      /** The id of the charge. */
      id: string;
      /** The name of the tool. */
      tool: string;
      /** Dollars charged. */
      amount: number;
      /** The developer who made the charge. */
      developerId: string;
      /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
      receipt: string;
      /** When it was made, in UTC. */
      createdAt: string;
      /** The version of the tool's rate card that priced it, if units were charged. */
      cardVersion?: number;
      /** The consumer who was charged. */
      consumerId: string;
      /** The consumer's balance after this charge. */
      balance: number;
    }
  | {
      status: 201;
      /** An earlier operation with the same idempotency key took effect, and this is its result. */
      replayed?: true;
      hold: PlacedHoldReply;
    }
  | {
      status: 201;
      /** An earlier operation with the same idempotency key took effect, and this is its result. */
      replayed?: true;
      /** The id of the charge. */
      id: string;
      /** The name of the tool. */
      tool: string;
      /** Dollars charged. */
      amount: number;
      /** The developer who made the charge. */
      developerId: string;
      /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
      receipt: string;
      /** When it was made, in UTC. */
      createdAt: string;
      /** The version of the tool's rate card that priced it, if units were charged. */
      cardVersion?: number;
      /** The consumer who was charged. */
      consumerId: string;
      /** The consumer's balance after this charge. */
      balance: number;
      /** The hold that was captured. */
      holdId: string;
      hold: HoldReply;
    }
  | {
      status: 200;
      hold: HoldReply;
    }
  | {
      status: number;
      error: ErrorDetail;
    };
export type StatementReply = ConsumerStatementReply | DeveloperStatementReply;

export interface AccountKeysBody {
  /** Whether consumer keys of the account can be charged. Spend keys always can. */
  charge?: 'open' | 'closed';
  /**
   * Dollars that one developer can charge to consumer keys of the account in a UTC day. A number, or a decimal string such as "0.05". Null: no limit. Setting it sets the limit of every developer.
   */
  developerDayLimit?: number | string | null;
}
export interface AccountKeysReply {
  /** Whether consumer keys of the account can be charged. Spend keys always can. */
  charge: 'open' | 'closed';
  /**
   * Dollars that one developer can charge to consumer keys of the account in a UTC day, or null.
   */
  developerDayLimit: number | null;
}
export interface AgentBody {
  /** An id of your choice: 1 to 100 letters, digits and . _ : - */
  id: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  name: string;
  /**
   * How the agent is called: 1 to 30 letters, digits and -. Agents of `http`, `mcp` and `a2a`, in letters of either case, can be invoked; agents of other protocols can only be found.
   */
  protocol: string;
  /** An http or https URL on a public address, without credentials. */
  endpoint: string;
  description?: string;
  /**
   * @maxItems 50
   *
   * Items: Printable text of 1 to 100 characters, not all blank.
   */
  capabilities?: string[];
  /**
   * @maxItems 50
   *
   * Items: Printable text of 1 to 100 characters, not all blank.
   */
  intents?: string[];
}
export interface AgentReply {
  /** An id of your choice: 1 to 100 letters, digits and . _ : - */
  id: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  name: string;
  /**
   * How the agent is called: 1 to 30 letters, digits and -. Agents of `http`, `mcp` and `a2a`, in letters of either case, can be invoked; agents of other protocols can only be found.
   */
  protocol: string;
  /** An http or https URL on a public address, without credentials. */
  endpoint: string;
  /** What the agent does. */
  description: string;
  /**
   * @maxItems 50
   *
   * Items: Printable text of 1 to 100 characters, not all blank.
   */
  capabilities: string[];
  /**
   * @maxItems 50
   *
   * Items: Printable text of 1 to 100 characters, not all blank.
   */
  intents: string[];
  /** When it was made, in UTC. */
  createdAt: string;
}
export interface ApprovalBody {
  /** With a secret key only: the consumer's key that was refused, as in the charge. */
  apiKey?: string;
  /** With a consumer key or spend key only: the developer that was called. */
  developerId?: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars of the call that was refused. Default: the tool's price. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /** Printable text of 1 to 500 characters, not all blank. */
  reason?: string;
  /** Seconds until the request expires, from 60 to 604800 (seven days). */
  expiresIn?: number;
}
export interface ApprovalReply {
  /** The id of the approval. */
  id: string;
  /**
   * Whether the owner has decided. Charge again once `approved`. `expired`: nobody decided in time, or before the spend key or its budget ended.
   */
  status: 'pending' | 'approved' | 'denied' | 'expired';
  /** The error code of the refusal. */
  code: 'approval_required' | 'spend_limit_reached' | 'insufficient_balance';
  /** The budget that refused. Null: the balance did. */
  budgetId: string | null;
  /** The name of the budget. Null to developers, and to spend keys of budgets below it. */
  budgetName: string | null;
  /**
   * The limit that refused: the total, that of the current window, or that of one call. Null with other codes.
   */
  scope: ('total' | 'window' | 'per_call') | null;
  /** The limit as it was then, in dollars, or null. */
  limit: number | null;
  /** The spend key that was to pay. Null: a consumer key. Null to developers. */
  keyId: string | null;
  /** The name of that key, or null. */
  keyName: string | null;
  /** The developer that was called. */
  developerId: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /** Dollars of the call. */
  amount: number;
  /**
   * Text by the sender of the request, or null. Escape it before you show it. Null to developers if the holder of the key wrote it.
   */
  reason: string | null;
  /** The holder of the key that was to pay, or the developer that was called. */
  askedBy: 'payer' | 'developer';
  /**
   * The decision; null while pending and when expired. `once`: one such call may pass what refused it, within 24 hours. `resolved`: nothing refuses the call any more, because a new window began or the budget was changed.
   */
  decision: ('once' | 'always' | 'raise' | 'top_up' | 'deny' | 'resolved') | null;
  /** The limit that the decision set, or null. */
  raisedTo: number | null;
  /** Whether a call has used a decision of `once`. */
  used: boolean;
  /** The page of the console where the owner decides. */
  approvalUrl: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it can no longer be decided, in UTC. */
  expiresAt: string;
  /** When it ended, in UTC, or null. */
  decidedAt: string | null;
}
export interface ApprovalsReply {
  approvals: ApprovalReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface BalanceReply {
  /** Dollars that can be spent now. */
  balance: number;
  /**
   * Dollars that refunds and disputes took back after they were spent. The next credits repay them.
   */
  debt: number;
  /**
   * Dollars on hold, which `balance` does not include: open holds and leases reserve them, or payments are disputed.
   */
  held: number;
  /** Your consumer id. */
  consumerId: string;
  /** Automatic top-ups from the saved card. The owner of the account sets them. */
  autoTopUp: {
    /** Whether automatic top-ups are on. */
    status: 'on' | 'waiting' | 'off';
    /**
     * Why automatic top-ups are waiting or were turned off: a code such as `card_declined` or `payment_disputed`.
     */
    reason: string | null;
  };
}
export interface PlacedHoldReply {
  /** The id of the hold. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars reserved. */
  amount: number;
  /** Dollars charged so far by its captures. */
  captured: number;
  /** Dollars still reserved. 0 once the hold is closed. */
  remaining: number;
  /** The state of the hold. */
  status: 'open' | 'captured' | 'released' | 'expired';
  /** When it expires, in UTC. */
  expiresAt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The consumer whose balance is reserved. */
  consumerId: string;
  /** The developer who placed the hold. */
  developerId: string;
  /** The consumer's balance after the hold was placed. */
  balance: number;
}
export interface HoldReply {
  /** The id of the hold. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars reserved. */
  amount: number;
  /** Dollars charged so far by its captures. */
  captured: number;
  /** Dollars still reserved. 0 once the hold is closed. */
  remaining: number;
  /** The state of the hold. */
  status: 'open' | 'captured' | 'released' | 'expired';
  /** When it expires, in UTC. */
  expiresAt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The consumer whose balance is reserved. */
  consumerId: string;
  /** The developer who placed the hold. */
  developerId: string;
}
export interface ErrorDetail {
  /** The class of the error. */
  type:
    | 'invalid_request_error'
    | 'authentication_error'
    | 'payment_error'
    | 'idempotency_error'
    | 'rate_limit_error'
    | 'api_error';
  /** What went wrong. Branch on this. */
  code:
    | 'invalid_request'
    | 'invalid_json'
    | 'invalid_amount'
    | 'invalid_cursor'
    | 'invalid_idempotency_key'
    | 'invalid_signature'
    | 'refund_exceeds_charge'
    | 'unknown_tool'
    | 'tool_archived'
    | 'too_many_approvals'
    | 'too_many_tools'
    | 'invalid_api_key'
    | 'invalid_secret_key'
    | 'session_required'
    | 'insufficient_balance'
    | 'spend_limit_reached'
    | 'exceeds_lease'
    | 'exceeds_hold'
    | 'card_declined'
    | 'tax_address_missing'
    | 'authentication_required'
    | 'card_expired'
    | 'payment_failed'
    | 'payment_too_late'
    | 'declined_too_often'
    | 'no_saved_card'
    | 'foreign_origin'
    | 'operator_required'
    | 'second_factor_required'
    | 'sign_in_refused'
    | 'tool_not_allowed'
    | 'developer_not_allowed'
    | 'account_keys_closed'
    | 'mode_mismatch'
    | 'approval_required'
    | 'lease_not_allowed'
    | 'delegation_not_allowed'
    | 'consent_required'
    | 'consent_ceiling_reached'
    | 'not_found'
    | 'hold_not_found'
    | 'lease_not_found'
    | 'method_not_allowed'
    | 'idempotency_key_in_use'
    | 'approval_closed'
    | 'approval_not_needed'
    | 'top_up_not_refundable'
    | 'hold_closed'
    | 'lease_closed'
    | 'lease_fenced'
    | 'lease_not_renewable'
    | 'budget_closed'
    | 'budget_not_reopenable'
    | 'webhook_endpoint_disabled'
    | 'tool_exists'
    | 'agent_exists'
    | 'grant_not_active'
    | 'charges_archived'
    | 'payload_too_large'
    | 'unsupported_media_type'
    | 'idempotency_key_reused'
    | 'rate_limited'
    | 'internal_error'
    | 'outcome_unknown'
    | 'service_unavailable';
  /** What went wrong, as a sentence for people. */
  message: string;
  /** The field that caused the error, such as `amount`. */
  param?: string;
  /** The page that explains the code. */
  docUrl: string;
  /** Quote it when you ask for help. The same as `X-Request-Id`. */
  requestId: string;
  /**
   * How many seconds to wait before you try again. The same as the header `Retry-After`, which the results of a batch do not have.
   */
  retryAfter?: number;
  /** With `insufficient_balance`: the consumer's balance. */
  balance?: number;
  /**
   * With `insufficient_balance`: the dollars needed. With `spend_limit_reached` and `approval_required`: the amount of the refused charge or hold.
   */
  required?: number;
  /**
   * With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the developer of the refused charge or hold.
   */
  developerId?: string;
  /**
   * With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the tool of the refused charge or hold.
   */
  tool?: string;
  /** With `insufficient_balance`: the dollars missing, not counting a debt. */
  shortfall?: number;
  /** A page where the consumer can top up. */
  topUpUrl?: string;
  /** With `spend_limit_reached`: the page of the console where the owner can raise the limit. */
  raiseUrl?: string;
  /**
   * With `approval_required`: the page of the console where the owner can approve the developer.
   */
  approvalUrl?: string;
  /**
   * With `invalid_api_key` and `invalid_secret_key`: the page of the console where the owner creates such a key. For the key of a caller, it is the page of budgets and spend keys.
   */
  keysUrl?: string;
  /** The top-up that failed. */
  topUpId?: string;
  /** With `consent_ceiling_reached`: the dollars left of the monthly limit. */
  left?: number;
  /** With `refund_exceeds_charge`: the dollars of the charge that can still be refunded. */
  refundable?: number;
  /**
   * With `exceeds_hold` and `exceeds_lease`: the dollars left in it. With `spend_limit_reached`: the dollars left of the limit.
   */
  remaining?: number;
  /**
   * With `spend_limit_reached`, `approval_required` and `..._not_allowed`: the budget that refused.
   */
  budgetId?: string;
  /** With `spend_limit_reached`: the limit. */
  limit?: number;
  /**
   * With `spend_limit_reached`: whether the limit is the total, or that of the current window, of one call, or of one lease.
   */
  scope?: 'total' | 'window' | 'per_call' | 'per_lease';
  /** With `spend_limit_reached`: when the window ends; null when the limit is not of a window. */
  resetsAt?: string | null;
  /** With `grant_not_active` and `..._closed`: the state of the grant, hold, lease or approval. */
  status?:
    | 'active'
    | 'used'
    | 'revoked'
    | 'expired'
    | 'open'
    | 'captured'
    | 'released'
    | 'settled'
    | 'pending'
    | 'approved'
    | 'denied';
  /** With `lease_fenced`: the fence of the lease. */
  fence?: number;
  /** With `tool_exists`: the tool that has the name. */
  toolId?: string;
}
export interface BatchedCapture {
  /** Captures a hold. */
  op: 'capture';
  /** The id of the hold. */
  holdId: string;
  /**
   * Dollars to charge. Default: all that is left in the hold. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /** Whether to release the rest. Default: true. False leaves the hold open. */
  final?: boolean;
  /**
   * What to do with an amount that exceeds the hold: `reject` it (the default), `cap` it at what is left, or let it `overflow` into the balance.
   */
  over?: 'reject' | 'cap' | 'overflow';
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
  /** The idempotency key of this operation. */
  idempotencyKey?: string;
}
export interface BatchedCharge {
  /** Makes a charge. The default. */
  op?: 'charge';
  /** The consumer's key. Without a valid key, the charge is refused. */
  apiKey?: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars to charge: more than 0, at most 1,000,000. Default: the tool's price. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
  /** The idempotency key of this operation. */
  idempotencyKey?: string;
}
export interface BatchedHold {
  /** Places a hold. */
  op: 'hold';
  /** The consumer's key. Without a valid key, the charge is refused. */
  apiKey?: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars to reserve: more than 0, at most 1,000,000. Default: the tool's price. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
  /** Seconds until the hold expires. Default: 600. */
  expiresIn?: number;
  /** The idempotency key of this operation. */
  idempotencyKey?: string;
}
export interface BatchedRelease {
  /** Releases a hold. */
  op: 'release';
  /** The id of the hold. */
  holdId: string;
  /** The idempotency key of this operation. */
  idempotencyKey?: string;
}
export interface BudgetBody {
  /** Printable text of 1 to 100 characters, not all blank. */
  name: string;
  /**
   * The budget that this one is part of. Null, or left out: the account, or with a spend key its own budget. A tree is at most 6 budgets deep.
   */
  parentId?: string | null;
  /**
   * Dollars that can be spent in total. A number, or a decimal string such as "0.05". Null: no limit.
   */
  limit?: number | string | null;
  /** A limit for each hour, day, week or month. Null: none. */
  window?: {
    /** The calendar unit, in UTC. A week begins on Monday. The limit starts over with each unit. */
    per: 'hour' | 'day' | 'week' | 'month';
    /**
     * Dollars that can be spent in each window. A number, or a decimal string such as "0.05". At most six decimals.
     */
    limit: number | string;
  } | null;
  /**
   * The most that one charge or hold may take, in dollars. A number, or a decimal string such as "0.05". Null: no limit.
   */
  maxPerCall?: number | string | null;
  /**
   * Whether its keys may be leased: clients of developers then decide calls by themselves, and charge them afterwards. Every budget above must allow it too. Default: false.
   */
  allowLeases?: boolean;
  /**
   * Dollars that one lease may reserve. A number, or a decimal string such as "0.05". Null: no limit.
   */
  maxLease?: number | string | null;
  /**
   * The only tools that may be charged: names, or `dev_.../name` for the tool of one developer. Null: all.
   */
  tools?: string[] | null;
  /** The only developers that may charge. Null: all. */
  developers?: string[] | null;
  /**
   * Whether a developer is refused until the owner has approved it for this budget. Default: false.
   */
  approveDevelopers?: boolean;
  /**
   * The developers that the owner has approved for this budget.
   *
   * @maxItems 1000
   *
   * Items: A developer.
   */
  approvedDevelopers?: string[];
  /** Whether the keys of this budget may create budgets and keys below it. Default: false. */
  mayDelegate?: boolean;
  /** When the budget and everything below it stops working. Null: never. */
  expiresAt?: string | null;
  /** Fields of your own. Null: none. */
  metadata?: {
    [k: string]: string | number | boolean | null;
  } | null;
}
export interface BudgetChanges {
  /** Printable text of 1 to 100 characters, not all blank. */
  name?: string;
  /**
   * Dollars that can be spent in total. A number, or a decimal string such as "0.05". Null: no limit.
   */
  limit?: number | string | null;
  /** A limit for each hour, day, week or month. Null: none. */
  window?: {
    /** The calendar unit, in UTC. A week begins on Monday. The limit starts over with each unit. */
    per: 'hour' | 'day' | 'week' | 'month';
    /**
     * Dollars that can be spent in each window. A number, or a decimal string such as "0.05". At most six decimals.
     */
    limit: number | string;
  } | null;
  /**
   * The most that one charge or hold may take, in dollars. A number, or a decimal string such as "0.05". Null: no limit.
   */
  maxPerCall?: number | string | null;
  /**
   * Whether its keys may be leased: clients of developers then decide calls by themselves, and charge them afterwards. Every budget above must allow it too. Default: false.
   */
  allowLeases?: boolean;
  /**
   * Dollars that one lease may reserve. A number, or a decimal string such as "0.05". Null: no limit.
   */
  maxLease?: number | string | null;
  /**
   * The only tools that may be charged: names, or `dev_.../name` for the tool of one developer. Null: all.
   */
  tools?: string[] | null;
  /** The only developers that may charge. Null: all. */
  developers?: string[] | null;
  /**
   * Whether a developer is refused until the owner has approved it for this budget. Default: false.
   */
  approveDevelopers?: boolean;
  /**
   * The developers that the owner has approved for this budget.
   *
   * @maxItems 1000
   *
   * Items: A developer.
   */
  approvedDevelopers?: string[];
  /** Whether the keys of this budget may create budgets and keys below it. Default: false. */
  mayDelegate?: boolean;
  /** When the budget and everything below it stops working. Null: never. */
  expiresAt?: string | null;
  /** Fields of your own. Null: none. */
  metadata?: {
    [k: string]: string | number | boolean | null;
  } | null;
}
export interface BudgetRefusalsReply {
  /** The id of the budget. */
  budgetId: string;
  /** By key and code, most frequent first, at most 200. */
  refusals: {
    /** The spend key. */
    keyId: string;
    /** Its name, or null. */
    keyName: string | null;
    /** The error code. */
    code: string;
    /** How often. */
    count: number;
    /** When it last happened. */
    lastAt: string;
  }[];
}
export interface BudgetReply {
  /** The id of the budget. */
  id: string;
  /** The budget above. Null: the account, or a budget that this key does not see. */
  parentId: string | null;
  /** Its name. */
  name: string;
  /** Whether its keys can be used. A budget is closed or expired with each one above it. */
  status: 'active' | 'closed' | 'expired';
  /** Dollars in total, or null. */
  limit: number | null;
  /**
   * Dollars that its keys and those below it have spent, less refunds, plus what open holds reserve.
   */
  used: number;
  /** The limit for each hour, day, week or month, or null. */
  window: {
    /** The calendar unit, in UTC. A week begins on Monday. The limit starts over with each unit. */
    per: 'hour' | 'day' | 'week' | 'month';
    /** Dollars that can be spent in each window. */
    limit: number;
    /** The same in the current window. */
    used: number;
    /** When the next window begins, in UTC. */
    resetsAt: string;
  } | null;
  /**
   * The smallest amount that any limit of this budget or one above it has left. Null: no limit. The balance may be lower.
   */
  remaining: number | null;
  /** Dollars that one call may cost, or null. */
  maxPerCall: number | null;
  /** Whether its keys may be leased. */
  allowLeases: boolean;
  /** Dollars that one lease may reserve, or null. */
  maxLease: number | null;
  /** The only tools that may be charged, or null. */
  tools: string[] | null;
  /** The only developers that may charge, or null. */
  developers: string[] | null;
  /** Whether a developer is refused until the owner has approved it. */
  approveDevelopers: boolean;
  /**
   * The developers that the owner has approved for this budget.
   *
   * Items: A developer.
   */
  approvedDevelopers: string[];
  /** Whether its keys may create budgets and keys below it. */
  mayDelegate: boolean;
  /**
   * Whether it limits what a single developer charges to the consumer keys of the account. Only the owner can close and reopen such a budget, in a session of the console.
   */
  limitsConsumerKeys: boolean;
  /** When it stops working, or null. */
  expiresAt: string | null;
  /** Fields of your own, or null. */
  metadata: {
    [k: string]: string | number | boolean | null;
  } | null;
  /** When it was created, in UTC. */
  createdAt: string;
}
export interface BudgetUsageReply {
  /** The id of the budget. */
  budgetId: string;
  /** The sums of the whole range, not only of this page. */
  total: {
    /** Dollars charged, less refunds. A refund counts when it is made, so this may be negative. */
    spent: number;
    /** How many charges were made. */
    charges: number;
  };
  /**
   * Keys and days newest first, tools by name, developers in the order in which they signed up. None without charges.
   */
  usage: {
    /** With `by=key`: the spend key. */
    keyId?: string;
    /** With `by=key`: its name, or null. */
    keyName?: string | null;
    /** With `by=tool`: the name of the tool. */
    tool?: string;
    /** With `by=developer`: the developer. */
    developerId?: string;
    /** With `by=day`: when the UTC day begins. */
    from?: string;
    /** Dollars charged, less refunds. A refund counts when it is made, so this may be negative. */
    spent: number;
    /** How many charges were made. */
    charges: number;
  }[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface BudgetsReply {
  budgets: BudgetReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface CaptureBody {
  /**
   * Dollars to charge. Default: all that is left in the hold. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /** Whether to release the rest. Default: true. False leaves the hold open. */
  final?: boolean;
  /**
   * What to do with an amount that exceeds the hold: `reject` it (the default), `cap` it at what is left, or let it `overflow` into the balance.
   */
  over?: 'reject' | 'cap' | 'overflow';
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
}
export interface CaptureReply {
  /** The id of the charge. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** The developer who made the charge. */
  developerId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The version of the tool's rate card that priced it, if units were charged. */
  cardVersion?: number;
  /** The consumer who was charged. */
  consumerId: string;
  /** The consumer's balance after this charge. */
  balance: number;
  /** The hold that was captured. */
  holdId: string;
  hold: HoldReply;
}
export interface ChangedToolReply {
  /** The id of the tool. */
  id: string;
  /** The name used in charges. */
  name: string;
  /** What it does. */
  description: string;
  /** Dollars per call. If null, each charge must state its amount. */
  price: number | null;
  /** The rate card, if the tool has one: dollars per unit, by the name of the unit. */
  card?: {
    [k: string]: number;
  };
  /** The version of the card, which receipts state. Each change makes a new one, from 1. */
  cardVersion?: number;
  /** When it was made, in UTC. */
  createdAt: string;
  /**
   * Whether the tool is archived. An archived tool is not listed, and its price does not apply.
   */
  archived: boolean;
}
export interface ChargeBatchBody {
  /**
   * @minItems 1
   * @maxItems 1000
   */
  charges: (BatchedCharge | BatchedHold | BatchedCapture | BatchedRelease)[];
}
export interface ChargeBatchReply {
  /** One result for each operation, in the order of the request. */
  results: BatchMember[];
}
export interface ChargeBody {
  /** The consumer's key. Without a valid key, the charge is refused. */
  apiKey?: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars to charge: more than 0, at most 1,000,000. Default: the tool's price. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
}
export interface ChargeReply {
  /** The id of the charge. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** The developer who made the charge. */
  developerId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The version of the tool's rate card that priced it, if units were charged. */
  cardVersion?: number;
  /** The consumer who was charged. */
  consumerId: string;
  /** The consumer's balance after this charge. */
  balance: number;
}
export interface ChargesReply {
  charges: DeveloperChargeReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface DeveloperChargeReply {
  /** The id of the charge. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** The developer who made the charge. */
  developerId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The version of the tool's rate card that priced it, if units were charged. */
  cardVersion?: number;
  /** Dollars of the charge refunded so far. */
  refunded: number;
  /** The hold from which the charge was captured, if any. */
  holdId?: string;
  /** The lease in which the call was settled, if any. */
  leaseId?: string;
  /** The consumer who was charged. */
  consumerId: string;
  /** The metadata of the charge, or null. */
  metadata: {
    [k: string]: string | number | boolean | null;
  } | null;
}
export interface CheckoutBody {
  /**
   * Dollars, in whole cents, at most 999,999.99, or 750,000 where tax is added. The minimum is 0.50, or 5 through checkout. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount: number | string;
  /**
   * Whether the checkout saves the card for direct and automatic top-ups. Needs the consent of the owner.
   */
  saveCard?: boolean;
}
export interface CheckoutReply {
  /** Send the consumer here to pay. */
  sessionUrl?: string;
  /** The id of the top-up. */
  topUpId: string;
  /** The state of the top-up. */
  status:
    | 'pending'
    | 'completed'
    | 'expired'
    | 'failed'
    | 'partially_refunded'
    | 'refunded'
    | 'disputed'
    | 'charged_back';
}
export interface ConsumerChargeReply {
  /** The id of the charge. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** The developer who made the charge. */
  developerId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The version of the tool's rate card that priced it, if units were charged. */
  cardVersion?: number;
  /** Dollars of the charge refunded so far. */
  refunded: number;
  /** The hold from which the charge was captured, if any. */
  holdId?: string;
  /** The lease in which the call was settled, if any. */
  leaseId?: string;
  /** The credits that paid for the charge, oldest first. They add up to its amount. */
  paidBy: {
    /**
     * What credited the balance: a top-up, an adjustment by an operator, or the refund of an earlier charge.
     */
    source: 'top_up' | 'adjustment' | 'charge_refund';
    /** The top-up, if it was one. */
    topUpId?: string;
    /** When it was credited. */
    creditedAt: string;
    /** Dollars of this credit that the charge spent. */
    amount: number;
  }[];
}
export interface ConsumerStatementReply {
  /** A UTC month: the current or an earlier one. */
  month: string;
  /** The beginning of the month. */
  from: string;
  /** The beginning of the next month. */
  to: string;
  /**
   * Whether the statement is final. False until a minute after the end of the month, or longer while a commit of that time waits in PostgreSQL. A complete statement never changes, unless the clock of the service is set back over the end of the month.
   */
  complete: boolean;
  /** Your consumer id. */
  consumerId: string;
  /** The balance at the beginning of the month, including disputed money. */
  openingBalance: number;
  /**
   * All changes of the balance except charges. If the month has more than 1,000 of a `kind`, they are added up into one entry for each UTC day, without `topUpId` and `reason`.
   */
  movements: {
    /** `top_up`, `refund`, `dispute`, `charge_refund`, `adjustment` ... */
    kind: string;
    /** Dollars. Negative when taken from the balance. */
    amount: number;
    /**
     * Tax that was paid with a top-up on top of `amount`; negative when a refund or a lost dispute returned it, and positive again when that was reversed. Not part of the balance.
     */
    tax?: number;
    /** The top-up that it belongs to, or null. */
    topUpId: string | null;
    /** Why, or null. For a `charge_refund`, the id of the charge. */
    reason: string | null;
    /** When it was made, in UTC. */
    createdAt: string;
  }[];
  /** Dollars spent, by tool. */
  charges: {
    /** The name of the tool. */
    tool: string;
    /** How many charges. */
    charges: number;
    /** Dollars spent. */
    amount: number;
  }[];
  /** The opening balance plus the movements, less the charges. It includes what is on hold. */
  closingBalance: number;
}
export interface DecisionBody {
  /**
   * `once`: this call, one time. `always`: approve the developer, or raise the limit just enough for the call. `raise`: set the limit to `limit`. `top_up`: pay `amount` from the saved card. `deny`: refuse it.
   */
  decision: 'once' | 'always' | 'raise' | 'top_up' | 'deny';
  /**
   * With `raise`: the new limit in dollars. A number, or a decimal string such as "0.05". At most six decimals.
   */
  limit?: number | string;
  /**
   * With `top_up`: dollars, in whole cents. Default: what is missing. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
}
export interface DecisionReply {
  /** The id of the approval. */
  id: string;
  /**
   * Whether the owner has decided. Charge again once `approved`. `expired`: nobody decided in time, or before the spend key or its budget ended.
   */
  status: 'pending' | 'approved' | 'denied' | 'expired';
  /** The error code of the refusal. */
  code: 'approval_required' | 'spend_limit_reached' | 'insufficient_balance';
  /** The budget that refused. Null: the balance did. */
  budgetId: string | null;
  /** The name of the budget. Null to developers, and to spend keys of budgets below it. */
  budgetName: string | null;
  /**
   * The limit that refused: the total, that of the current window, or that of one call. Null with other codes.
   */
  scope: ('total' | 'window' | 'per_call') | null;
  /** The limit as it was then, in dollars, or null. */
  limit: number | null;
  /** The spend key that was to pay. Null: a consumer key. Null to developers. */
  keyId: string | null;
  /** The name of that key, or null. */
  keyName: string | null;
  /** The developer that was called. */
  developerId: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /** Dollars of the call. */
  amount: number;
  /**
   * Text by the sender of the request, or null. Escape it before you show it. Null to developers if the holder of the key wrote it.
   */
  reason: string | null;
  /** The holder of the key that was to pay, or the developer that was called. */
  askedBy: 'payer' | 'developer';
  /**
   * The decision; null while pending and when expired. `once`: one such call may pass what refused it, within 24 hours. `resolved`: nothing refuses the call any more, because a new window began or the budget was changed.
   */
  decision: ('once' | 'always' | 'raise' | 'top_up' | 'deny' | 'resolved') | null;
  /** The limit that the decision set, or null. */
  raisedTo: number | null;
  /** Whether a call has used a decision of `once`. */
  used: boolean;
  /** The page of the console where the owner decides. */
  approvalUrl: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it can no longer be decided, in UTC. */
  expiresAt: string;
  /** When it ended, in UTC, or null. */
  decidedAt: string | null;
  /**
   * With `top_up`: send the cardholder here, because the bank wants the payment confirmed. Present only while the payment waits for that.
   */
  sessionUrl?: string;
}
export interface DeletedWebhookEndpointReply {
  /** The id of the endpoint. */
  id: string;
  /** Always true. */
  deleted: true;
}
export interface DeliveriesReply {
  deliveries: DeliveryReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface DeliveryReply {
  /** The id of the event: `webhook-id` in the request. */
  eventId: string;
  /**
   * `waiting` for its next attempt, `delivered`, or `failed`: given up after five days, or dropped when the endpoint was disabled.
   */
  status: 'waiting' | 'delivered' | 'failed';
  /** How many attempts were made. */
  attempts: number;
  payload: {
    /** The type of the event. */
    type: string;
    /** When it happened. */
    timestamp: string;
    /** As documented for the type. */
    data: {
      [k: string]: unknown;
    };
  };
  /** When the last attempt was made, or null. */
  attemptedAt: string | null;
  /** When the next attempt is due, or null. */
  nextAttemptAt: string | null;
  /** How many milliseconds the last attempt took, or null. */
  durationMs: number | null;
  /** The HTTP status of the last response. Null: there was none. */
  responseStatus: number | null;
  /** The first 1000 characters of the last response, or null. */
  responseBody: string | null;
  /** Why the last attempt got no response, or null. */
  failureReason: string | null;
}
export interface DeveloperChanges {
  /**
   * The page to which people return after they top up through the `topUpUrl` of a refusal. Null: none.
   */
  returnUrl?: string | null;
}
export interface DeveloperReply {
  /** Your developer id. */
  developerId: string;
  /**
   * The page to which people return after they top up through the `topUpUrl` of a refusal. Null: none.
   */
  returnUrl: string | null;
}
export interface DeveloperStatementReply {
  /** A UTC month: the current or an earlier one. */
  month: string;
  /** The beginning of the month. */
  from: string;
  /** The beginning of the next month. */
  to: string;
  /**
   * Whether the statement is final. False until a minute after the end of the month, or longer while a commit of that time waits in PostgreSQL. A complete statement never changes, unless the clock of the service is set back over the end of the month.
   */
  complete: boolean;
  /** Your developer id. */
  developerId: string;
  /** Dollars earned before the month. */
  openingEarnings: number;
  /** Dollars charged, by day and tool. */
  earned: {
    /** The UTC day. */
    day: string;
    /** The name of the tool. */
    tool: string;
    /** How many charges. */
    charges: number;
    /** Dollars charged, refunded or not. */
    amount: number;
  }[];
  /** Dollars refunded, by day and tool. */
  refunds: {
    /** The UTC day on which the refunds were made. */
    day: string;
    /** The name of the tool. */
    tool: string;
    /** How many refunds. */
    refunds: number;
    /** Dollars refunded. */
    amount: number;
  }[];
  /** The opening earnings plus the dollars earned, less refunds. */
  closingEarnings: number;
}
export interface DeveloperTopUpsReply {
  topUps: {
    /** The id of the top-up. */
    id: string;
    /** The consumer who topped up. */
    consumerId: string;
    /** Dollars of the complete top-up. */
    amount: number;
    /** The state of the top-up. */
    status:
      | 'pending'
      | 'completed'
      | 'expired'
      | 'failed'
      | 'partially_refunded'
      | 'refunded'
      | 'disputed'
      | 'charged_back';
    /** When it was made, in UTC. */
    createdAt: string;
    /** Dollars of it spent on your tools. */
    charged: number;
    /** How many charges of your tools it paid for. */
    charges: number;
  }[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface EarningsReply {
  /** Your developer id. */
  developerId: string;
  /** Dollars earned from `from` to `to`, or in total by default. */
  totalEarnings: number;
  /** Dollars earned since 00:00 UTC. */
  todayEarnings: number;
  /** Dollars earned by each tool from `from` to `to`, or in total by default. */
  byTool: {
    /** Dollars. */
    [k: string]: number;
  };
  /** With `interval`: every hour or day since `from`, including empty ones. */
  series?: {
    /** The beginning of the interval. */
    from: string;
    /** Dollars earned in the interval. */
    earnings: number;
    /** How many charges were made in the interval. */
    charges: number;
  }[];
}
export interface ErrorReply {
  error: ErrorDetail;
}
export interface ExtendBody {
  /** Seconds from now until the hold expires. */
  expiresIn: number;
}
export interface GrantBody {
  /** Printable text of 1 to 200 characters, not all blank. */
  callerId: string;
  targetAgentId: string;
  /** How often the grant can be used. */
  type: 'one_time' | 'session' | 'limited';
  /**
   * When it expires, in ISO 8601: at most 30 days ahead. Default: in one day. Required for a `session`.
   */
  expiresAt?: string;
  /**
   * How many invocations may use it. Required for a `limited` grant, and not allowed for others.
   */
  maxUses?: number;
}
export interface GrantReply {
  /** The id of the grant. */
  id: string;
  /** Who may invoke, by a name of your own. */
  callerId: string;
  /** The agent that may be invoked. */
  targetAgentId: string;
  /** How often it can be used. */
  type: 'one_time' | 'session' | 'limited';
  /** The state of the grant. */
  status: 'active' | 'used' | 'revoked' | 'expired';
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it expires. */
  expiresAt: string;
  /** How many invocations have used it. */
  uses: number;
  /** How many invocations may use a `limited` grant. */
  maxUses?: number;
}
export interface HoldBody {
  /** The consumer's key. Without a valid key, the charge is refused. */
  apiKey?: string;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars to reserve: more than 0, at most 1,000,000. Default: the tool's price. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
  /** Seconds until the hold expires. Default: 600. */
  expiresIn?: number;
}
export interface HoldsReply {
  holds: ListedHold[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface ListedHold {
  /** The id of the hold. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars reserved. */
  amount: number;
  /** Dollars charged so far by its captures. */
  captured: number;
  /** Dollars still reserved. 0 once the hold is closed. */
  remaining: number;
  /** The state of the hold. */
  status: 'open' | 'captured' | 'released' | 'expired';
  /** When it expires, in UTC. */
  expiresAt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The consumer whose balance is reserved. */
  consumerId: string;
  /** The developer who placed the hold. */
  developerId: string;
  /** The metadata of the hold, or null. Only its developer sees it. */
  metadata?: {
    [k: string]: string | number | boolean | null;
  } | null;
}
export interface IntentBody {
  /** What you are looking for, in words: 1 to 1,000 characters, not all blank. */
  query: string;
}
export interface IntentReply {
  intent: {
    /**
     * The registered intent or capability that matches the query best, or `unknown` when none shares a word with it.
     */
    name: string;
    /** From 0 for `unknown` to 1 for identical words. */
    confidence: number;
  };
}
export interface InvocationBody {
  targetAgentId: string;
  /** The grant to use. */
  grantId: string;
  /** Printable text of 1 to 200 characters, not all blank. */
  capability: string;
  /**
   * The input of the capability. The agent receives it, with numbers in double precision: send longer ones as strings. Nested at most 100 levels deep.
   */
  payload: {
    [k: string]: unknown;
  };
}
export interface InvocationReceiptReply {
  /** The id of the invocation. */
  invocationId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** The account that invoked the agent. Its key signs the receipt. */
  developerId: string;
  /** The caller named in the grant. */
  callerId: string;
  /** The agent. */
  targetAgentId: string;
  /** The grant that allowed it. */
  grantId: string;
  /** What the agent was asked to do. */
  capability: string;
  /** How it ended. */
  status: 'succeeded' | 'failed';
  /**
   * SHA-256 of the JSON of `{targetAgentId, grantId, capability, payload}`, in this order and without whitespace.
   */
  requestSha256: string;
  /** SHA-256 of the JSON of `result`, without whitespace. Null when it failed. */
  resultSha256: string | null;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it ended. */
  completedAt: string;
}
export interface InvocationReply {
  /** The id of the invocation. */
  id: string;
  /** The state of the invocation. */
  status: 'pending' | 'running' | 'succeeded' | 'failed';
  /** The agent. */
  targetAgentId: string;
  /** The grant that allowed it. */
  grantId: string;
  /** What the agent was asked to do. */
  capability: string;
  /** How many times the agent was called. */
  attempts: number;
  /**
   * The agent's answer, once the invocation has `succeeded`, with numbers in double precision. Absent once an operator has archived the month in which the invocation was made; the receipt still has its hash.
   */
  result?: {
    [k: string]: unknown;
  };
  /** Why it failed, once it has `failed`. */
  error?: {
    /**
     * One of agent_unavailable, agent_refused, agent_error, invalid_answer, answer_too_large, endpoint_not_allowed, protocol_not_supported, deadline_exceeded, canceled.
     */
    code: string;
    /** The reason, for people. */
    message: string;
  };
  /** The error of the last attempt, while the invocation continues. */
  lastError?: {
    /**
     * One of agent_unavailable, agent_refused, agent_error, invalid_answer, answer_too_large, endpoint_not_allowed, protocol_not_supported, deadline_exceeded, canceled.
     */
    code: string;
    /** The reason, for people. */
    message: string;
  };
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it ended, or null. */
  completedAt: string | null;
}
export interface KeyBody {
  /** What the key is for. A secret key has the kind `developer`. */
  kind: 'consumer' | 'developer' | 'legacy';
  /** Whether it spends real money (`live`) or play money (`test`). */
  mode?: 'live' | 'test';
  /** Printable text of 1 to 100 characters, not all blank. */
  name?: string;
}
export interface KeyReply {
  /** The id of the key. */
  id: string;
  /** What the key is for. A secret key has the kind `developer`. */
  kind: 'consumer' | 'developer' | 'legacy';
  /** Whether it spends real money (`live`) or play money (`test`). */
  mode: 'live' | 'test';
  /** The budget that the key spends from. Absent: a key of the account. */
  budgetId?: string;
  /** The name that its owner gave it, or null. */
  name: string | null;
  /** The last four characters of the key. */
  lastFour: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it stops working, or null. */
  expiresAt: string | null;
  /** When it was revoked, or null. */
  revokedAt: string | null;
  /** When it was last used, or null if no use is recorded yet. It may be a minute late. */
  lastUsedAt: string | null;
}
export interface KeysReply {
  keys: KeyReply[];
}
export interface LeaseBody {
  /** The consumer's key. Without a valid key, the charge is refused. */
  apiKey?: string;
  /**
   * The tools that can be called: names, or objects with a `name` and the most that a call costs.
   *
   * @minItems 1
   * @maxItems 100
   */
  tools: (
    | string
    | {
        /** Printable text of 1 to 100 characters, not all blank. */
        name: string;
        /**
         * Dollars of a call. Default: the registered price. A number, or a decimal string such as "0.05". At most six decimals.
         */
        price?: number | string;
      }
  )[];
  /** Dollars to reserve. A number, or a decimal string such as "0.05". At most six decimals. */
  amount: number | string;
  /** Seconds until the lease expires. Default: 300. */
  expiresIn?: number;
}
export interface LeaseReply {
  /** The id of the lease. */
  id: string;
  /** The state of the lease. */
  status: 'open' | 'settled' | 'released' | 'expired';
  /** Dollars reserved. */
  amount: number;
  /** Dollars charged so far. */
  settled: number;
  /** Dollars given back to the balance. */
  released: number;
  /** Dollars still reserved. 0 once the lease is closed. */
  remaining: number;
  /** When it expires, in UTC. Until then, your server may decide calls. */
  expiresAt: string;
  /** Seconds from now until it expires, for clients whose clock may be wrong. */
  expiresIn: number;
  /** The number of the current holder. It rises with each renewal. */
  fence: number;
  /** The tools that can be called. */
  tools: {
    /** The name of the tool. */
    name: string;
    /**
     * The price of a call since the latest renewal. Calls at a higher price that the lease had before can still be settled.
     */
    price: number;
  }[];
  /** When it was made, in UTC. */
  createdAt: string;
  /** The consumer whose balance is reserved. */
  consumerId: string;
  /** The developer who holds the lease. */
  developerId: string;
}
export interface LeasesReply {
  leases: LeaseReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface ListedCharge {
  /** The id of the charge. */
  id: string;
  /** The name of the tool. */
  tool: string;
  /** Dollars charged. */
  amount: number;
  /** The developer who made the charge. */
  developerId: string;
  /** The signed receipt. Verify it with `POST /v1/receipts/verify`. */
  receipt: string;
  /** When it was made, in UTC. */
  createdAt: string;
  /** The version of the tool's rate card that priced it, if units were charged. */
  cardVersion?: number;
  /** Dollars of the charge refunded so far. */
  refunded: number;
  /** The hold from which the charge was captured, if any. */
  holdId?: string;
  /** The lease in which the call was settled, if any. */
  leaseId?: string;
}
export interface LiveEarnings {
  /** Your developer id. */
  developerId: string;
  /** Dollars earned in total. */
  totalEarnings: number;
  /** Dollars earned since 00:00 UTC. */
  todayEarnings: number;
  /** How many charges were made in total. */
  charges: number;
}
export interface LowBalanceBody {
  /**
   * A charge or hold that leaves less than this, in dollars, makes a `balance.low` event. A number, or a decimal string such as "5.00". Null: no event.
   */
  threshold: number | string | null;
}
export interface LowBalanceReply {
  /**
   * A charge or hold that leaves less than this, in dollars, makes a `balance.low` event. Null: no event.
   */
  threshold: number | null;
}
export interface NewKeyReply {
  /** The id of the key. */
  id: string;
  /** What the key is for. A secret key has the kind `developer`. */
  kind: 'consumer' | 'developer' | 'legacy';
  /** Whether it spends real money (`live`) or play money (`test`). */
  mode: 'live' | 'test';
  /** The budget that the key spends from. Absent: a key of the account. */
  budgetId?: string;
  /** The name that its owner gave it, or null. */
  name: string | null;
  /**
   * The key. Only this response has it, and the response to a retry with the same Idempotency-Key.
   */
  key: string;
}
export interface NewWebhookEndpointReply {
  /** The id of the endpoint. */
  id: string;
  /** Where to send events: an https URL on a public address. */
  url: string;
  /** The types of events to send. Null: all. */
  types:
    | (
        | 'balance.low'
        | 'balance.exhausted'
        | 'budget.threshold_reached'
        | 'top_up.pending'
        | 'top_up.completed'
        | 'top_up.expired'
        | 'top_up.failed'
        | 'top_up.partially_refunded'
        | 'top_up.refunded'
        | 'top_up.disputed'
        | 'top_up.charged_back'
        | 'refund.requested'
        | 'refund.made'
        | 'refund.failed'
        | 'dispute.open'
        | 'dispute.lost'
        | 'dispute.won'
        | 'warning.open'
        | 'warning.won'
        | 'charge.refunded'
        | 'hold.expired'
        | 'lease.expired'
        | 'key.created'
        | 'key.rolled'
        | 'key.revoked'
        | 'tool.price_changed'
        | 'webhook_endpoint.disabled'
        | 'webhook_endpoint.test'
      )[]
    | null;
  /** What its owner calls it. */
  description: string;
  /** Whether events are sent. */
  status: 'active' | 'disabled';
  /**
   * Why it is disabled: by its `owner`, because it was `failing` for five days, or because it responded with 410 (`gone`).
   */
  disabledReason: ('owner' | 'failing' | 'gone') | null;
  /**
   * Since when attempts fail. Null: the last one succeeded, none was made at this URL, or no event waits.
   */
  failingSince: string | null;
  /** Until then, the previous secret signs too. Null: only one secret signs. */
  previousSecretExpiresAt: string | null;
  /** When it was made, in UTC. */
  createdAt: string;
  /**
   * The signing secret. Only this response has it, and the response to a retry with the same Idempotency-Key.
   */
  secret: string;
}
export interface PlacedLeaseReply {
  /** The id of the lease. */
  id: string;
  /** The state of the lease. */
  status: 'open' | 'settled' | 'released' | 'expired';
  /** Dollars reserved. */
  amount: number;
  /** Dollars charged so far. */
  settled: number;
  /** Dollars given back to the balance. */
  released: number;
  /** Dollars still reserved. 0 once the lease is closed. */
  remaining: number;
  /** When it expires, in UTC. Until then, your server may decide calls. */
  expiresAt: string;
  /** Seconds from now until it expires, for clients whose clock may be wrong. */
  expiresIn: number;
  /** The number of the current holder. It rises with each renewal. */
  fence: number;
  /** The tools that can be called. */
  tools: {
    /** The name of the tool. */
    name: string;
    /**
     * The price of a call since the latest renewal. Calls at a higher price that the lease had before can still be settled.
     */
    price: number;
  }[];
  /** When it was made, in UTC. */
  createdAt: string;
  /** The consumer whose balance is reserved. */
  consumerId: string;
  /** The developer who holds the lease. */
  developerId: string;
  /** The consumer's balance after the lease was taken. */
  balance: number;
}
export interface PublicReceiptReply {
  /** The same payload, signed with Ed25519: `ed25519.<key id>.<payload>.<signature>`. */
  receipt: string;
}
export interface QuoteBody {
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * How many of each unit the call used: whole numbers, by the names in the tool's rate card. The amount is their cost, rounded once to the micro-dollar, half to even; at least $0.000001 unless it is 0.
   */
  units?: {
    [k: string]: number;
  };
}
export interface QuoteReply {
  /** The name of the tool. */
  tool: string;
  /** Dollars that a charge with these units would take now. */
  amount: number;
  /** The version of the rate card. Null: the price of the tool was quoted. */
  cardVersion: number | null;
}
export interface RateCardReply {
  /** Dollars per unit, by the name of the unit. */
  card: {
    [k: string]: number;
  };
  /** The version of the card, from 1. */
  cardVersion: number;
  /** When it was made, in UTC. */
  createdAt: string;
}
export interface ReceiptKeysReply {
  keys: {
    /** The id of the key, as named in receipts. */
    id: string;
    /** The HMAC-SHA-256 key, in base64url. It signs as well as it verifies: keep it secret. */
    key: string;
  }[];
}
export interface RefundBody {
  /**
   * Dollars to refund. Default: all of the charge that has not been refunded. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount?: number | string;
}
export interface RefundReply {
  /** The id of the refund. */
  id: string;
  /** The charge that was refunded. */
  chargeId: string;
  /** Dollars refunded by this refund. */
  amount: number;
  /** Dollars refunded so far by all refunds of the charge. */
  refunded: number;
  /** When it was made, in UTC. */
  createdAt: string;
}
export interface RefusalsReply {
  /** By code and tool, most frequent first, at most 200. */
  refusals: {
    /** The error code. */
    code: string;
    /** The tool, or null. `(other)` after the first 50 pairs of code and tool in an hour. */
    tool: string | null;
    /** How often. */
    count: number;
    /** When it last happened. */
    lastAt: string;
    /**
     * The ids of the last requests, newest first. Find them in the log.
     *
     * Items: A request id.
     */
    requestIds: string[];
  }[];
}
export interface RenewBody {
  /** Seconds from now until the lease expires. Default: 300. */
  expiresIn?: number;
  /** The fence that you hold. If the lease has since been renewed, the request is refused. */
  fence?: number;
}
export interface ResolveBody {
  /** What you are looking for, in words: 1 to 1,000 characters, not all blank. */
  query: string;
  /** The largest number of results. */
  topK?: number;
}
export interface ResolveReply {
  /**
   * Best match first.
   *
   * @maxItems 50
   */
  results: {
    /** The id of the agent. */
    agentId: string;
    /** How much of the query the agent matches. Its name counts most. */
    score: number;
    /** How the agent is called. */
    protocol: string;
  }[];
  intent: {
    /**
     * The registered intent or capability that matches the query best, or `unknown` when none shares a word with it.
     */
    name: string;
    /** From 0 for `unknown` to 1 for identical words. */
    confidence: number;
  };
}
export interface RevokeBody {
  /**
   * Whether open holds by these keys are released. Otherwise they can still be captured, so that a running call is paid.
   */
  releaseHolds?: boolean;
}
export interface RollBody {
  /** How many seconds the old key keeps working. */
  overlapSeconds?: number;
}
export interface RollSecretBody {
  /** For how many seconds requests are signed with both secrets. */
  overlapSeconds?: number;
}
export interface RolledSecretReply {
  /** The id of the endpoint. */
  id: string;
  /**
   * The signing secret. Only this response has it, and the response to a retry with the same Idempotency-Key.
   */
  secret: string;
  /** Until then, the previous secret signs too. Null: only one secret signs. */
  previousSecretExpiresAt: string | null;
}
export interface SessionReply {
  /** The address that signed in. */
  email: string;
  /** Your consumer id. */
  consumerId: string;
  /** Your developer id. */
  developerId: string;
  /** The prefix of every key. */
  keyPrefix: string;
  /** The URL of the API for programs. */
  apiUrl: string;
  /** Whether you are an operator. /v1/operator also requires two-factor authentication. */
  operator: boolean;
  /** Whether payments are simulated, so that no money moves. */
  simulated: boolean;
  /** Whether tax is added to top-ups. */
  taxed: boolean;
}
export interface SettlementBody {
  /**
   * The calls, in any order and with any gaps.
   *
   * @maxItems 1000
   */
  entries: SettlementEntry[];
  /** The fence that you hold. If the lease has since been renewed, the request is refused. */
  fence?: number;
  /** Whether to release what is left afterwards. Default: false. */
  final?: boolean;
}
export interface SettlementEntry {
  /**
   * The number of the call within the lease. It identifies the charge: the same number is charged once.
   */
  sequence: number;
  /** Printable text of 1 to 100 characters, not all blank. */
  tool: string;
  /**
   * Dollars to charge: at most the highest price that the tool has had in the lease. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount: number | string;
  /**
   * Up to 20 fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.
   */
  metadata?: {
    [k: string]: string | number | boolean | null;
  };
}
export interface SettlementReply {
  /** One result for each entry, in the order of the request. */
  results: (
    | {
        /**
         * The number of the call within the lease. It identifies the charge: the same number is charged once.
         */
        sequence: number;
        status: 201;
        /** The entry was settled before. */
        replayed?: true;
        /** The id of the charge. */
        id: string;
        /** The signed receipt. */
        receipt: string;
        /** The name of the tool. */
        tool: string;
        /** Dollars charged. */
        amount: number;
        /** When it was made, in UTC. */
        createdAt: string;
      }
    | {
        /** The number of the call, unless it is malformed. */
        sequence?: number;
        status: number;
        error: ErrorDetail;
      }
  )[];
  lease: LeaseReply;
}
export interface SignedInvocation {
  /** The id of the invocation. */
  id: string;
  /** The account that invoked the agent. Its key signs the receipt. */
  developerId: string;
  /** The caller named in the grant. */
  callerId: string;
  /** The agent. */
  targetAgentId: string;
  /** The grant that allowed it. */
  grantId: string;
  /** What the agent was asked to do. */
  capability: string;
  /** How it ended. */
  status: 'succeeded' | 'failed';
  /**
   * SHA-256 of the JSON of `{targetAgentId, grantId, capability, payload}`, in this order and without whitespace.
   */
  requestSha256: string;
  /** SHA-256 of the JSON of `result`, without whitespace. Null when it failed. */
  resultSha256: string | null;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it ended. */
  completedAt: string;
}
export interface SpendKeyBody {
  /** Printable text of 1 to 100 characters, not all blank. */
  name?: string;
  /** When the key stops working. Default: with its budget. */
  expiresAt?: string;
}
export interface SpendKeysReply {
  keys: KeyReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface ToolBody {
  /** Printable text of 1 to 100 characters, not all blank. */
  name: string;
  description?: string;
  /**
   * Dollars per call, as a number or a decimal string. If null, each charge must state its amount.
   */
  price?: (number | string) | null;
  /**
   * The rate card: dollars per unit, by the name of the unit, as numbers or decimal strings from 0 to 1,000 with at most twelve decimals. Charges that state `units` use it. Null: no card.
   */
  card?: {
    [k: string]: number | string;
  } | null;
}
export interface ToolChanges {
  description?: string;
  /**
   * Dollars per call, as a number or a decimal string. If null, each charge must state its amount.
   */
  price?: (number | string) | null;
  /**
   * The rate card: dollars per unit, by the name of the unit, as numbers or decimal strings from 0 to 1,000 with at most twelve decimals. Charges that state `units` use it. Null: no card.
   */
  card?: {
    [k: string]: number | string;
  } | null;
  /** True archives the tool, false restores it. */
  archived?: boolean;
}
export interface ToolReply {
  /** The id of the tool. */
  id: string;
  /** The name used in charges. */
  name: string;
  /** What it does. */
  description: string;
  /** Dollars per call. If null, each charge must state its amount. */
  price: number | null;
  /** The rate card, if the tool has one: dollars per unit, by the name of the unit. */
  card?: {
    [k: string]: number;
  };
  /** The version of the card, which receipts state. Each change makes a new one, from 1. */
  cardVersion?: number;
  /** When it was made, in UTC. */
  createdAt: string;
}
export interface ToolsReply {
  tools: {
    /** The id of the tool. */
    id: string;
    /** The name used in charges. */
    name: string;
    /** What it does. */
    description: string;
    /** Dollars per call. If null, each charge must state its amount. */
    price: number | null;
    /** The rate card, if the tool has one: dollars per unit, by the name of the unit. */
    card?: {
      [k: string]: number;
    };
    /** The version of the card, which receipts state. Each change makes a new one, from 1. */
    cardVersion?: number;
    /** How many times it has been charged. */
    totalCharges: number;
    /** Dollars it has earned, less refunds. */
    totalRevenue: number;
  }[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface TopUpBody {
  /**
   * Dollars, in whole cents, at most 999,999.99, or 750,000 where tax is added. The minimum is 0.50, or 5 through checkout. A number, or a decimal string such as "0.05". At most six decimals.
   */
  amount: number | string;
}
export interface TopUpQuoteReply {
  /** Dollars that would be credited. */
  amount: number;
  /**
   * The tax in dollars, which is paid on top of `amount`. Null while it is unknown, because the checkout has yet to ask for the address.
   */
  tax: number | null;
  /** Dollars that would be paid: `amount` plus `tax`. Null while the tax is not known. */
  total: number | null;
}
export interface TopUpRecord {
  /** The id of the top-up. */
  id: string;
  /** Dollars credited or, while it is pending, requested. */
  amount: number;
  /** Dollars of it refunded to the card so far, also by refunds in progress. */
  refunded: number;
  /**
   * The tax in dollars, which is paid on top of `amount`. Null while it is unknown, because the checkout has yet to ask for the address.
   */
  tax?: number | null;
  /** The state of the top-up. */
  status:
    | 'pending'
    | 'completed'
    | 'expired'
    | 'failed'
    | 'partially_refunded'
    | 'refunded'
    | 'disputed'
    | 'charged_back';
  /** How it is paid. */
  method: 'checkout' | 'direct' | 'manual' | 'test';
  /** Whether a charge triggered it, rather than a request. */
  automatic: boolean;
  /** When it was made, in UTC. */
  createdAt: string;
  /** When it was credited, or null. */
  completedAt: string | null;
  /** Why it failed, or null. */
  failure: {
    /** An error code. */
    code: string;
    /** The reason, for people. */
    message: string;
  } | null;
  /**
   * Where the consumer can pay or, for a direct top-up, confirm the payment at the bank. Present only while that is possible.
   */
  sessionUrl?: string;
}
export interface TopUpReply {
  /** The id of the top-up. */
  topUpId: string;
  /** Dollars credited or, while it is pending, requested. */
  amount: number;
  /** The balance when the response was sent. */
  balance: number;
  /** The state of the top-up. */
  status:
    | 'pending'
    | 'completed'
    | 'expired'
    | 'failed'
    | 'partially_refunded'
    | 'refunded'
    | 'disputed'
    | 'charged_back';
  /**
   * Send the cardholder here, because the bank wants this payment confirmed. Present only while the payment waits for that.
   */
  sessionUrl?: string;
}
export interface TopUpsReply {
  topUps: TopUpRecord[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface UsageByDayReply {
  days: {
    /** When the UTC day begins. */
    from: string;
    /** Dollars charged on that day, less refunds. */
    spent: number;
  }[];
}
export interface UsageReply {
  charges: ListedCharge[];
  /**
   * Dollars of all matching charges, not only this page, less the refunds made in the same period.
   */
  total: number;
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
export interface VerifyBody {
  /** A receipt returned by a charge or an invocation, or a public receipt. */
  receipt: string;
}
export interface VerifyReply {
  /** Whether the signature is valid and the ledger confirms the contents. */
  valid: boolean;
  /** Whether the ledger confirms the contents, to the byte. */
  recorded: boolean;
  /** The key that signed it. Null when the signature is invalid. */
  keyId: string | null;
  /** The charge that it is for. Null when the receipt is not valid. */
  charge?: {
    /** The id of the charge. */
    id: string;
    /** The consumer who was charged. */
    consumerId: string;
    /** The developer who made the charge. */
    developerId: string;
    /** The name of the tool. */
    tool: string;
    /** Dollars charged. */
    amount: number;
    /** When it was made, in UTC. */
    createdAt: string;
    /** The version of the tool's rate card that priced it, if units were charged. */
    cardVersion?: number;
    /** False: a charge of play money, by test keys. Nobody paid for it. */
    livemode: boolean;
  } | null;
  invocation?: SignedInvocation;
}
export interface WebhookEndpointBody {
  /** Where to send events: an https URL on a public address. */
  url: string;
  /** The types of events to send. Null: all. */
  types?:
    | (
        | 'balance.low'
        | 'balance.exhausted'
        | 'budget.threshold_reached'
        | 'top_up.pending'
        | 'top_up.completed'
        | 'top_up.expired'
        | 'top_up.failed'
        | 'top_up.partially_refunded'
        | 'top_up.refunded'
        | 'top_up.disputed'
        | 'top_up.charged_back'
        | 'refund.requested'
        | 'refund.made'
        | 'refund.failed'
        | 'dispute.open'
        | 'dispute.lost'
        | 'dispute.won'
        | 'warning.open'
        | 'warning.won'
        | 'charge.refunded'
        | 'hold.expired'
        | 'lease.expired'
        | 'key.created'
        | 'key.rolled'
        | 'key.revoked'
        | 'tool.price_changed'
        | 'webhook_endpoint.disabled'
        | 'webhook_endpoint.test'
      )[]
    | null;
  description?: string;
}
export interface WebhookEndpointChanges {
  /** Where to send events: an https URL on a public address. */
  url?: string;
  /** The types of events to send. Null: all. */
  types?:
    | (
        | 'balance.low'
        | 'balance.exhausted'
        | 'budget.threshold_reached'
        | 'top_up.pending'
        | 'top_up.completed'
        | 'top_up.expired'
        | 'top_up.failed'
        | 'top_up.partially_refunded'
        | 'top_up.refunded'
        | 'top_up.disputed'
        | 'top_up.charged_back'
        | 'refund.requested'
        | 'refund.made'
        | 'refund.failed'
        | 'dispute.open'
        | 'dispute.lost'
        | 'dispute.won'
        | 'warning.open'
        | 'warning.won'
        | 'charge.refunded'
        | 'hold.expired'
        | 'lease.expired'
        | 'key.created'
        | 'key.rolled'
        | 'key.revoked'
        | 'tool.price_changed'
        | 'webhook_endpoint.disabled'
        | 'webhook_endpoint.test'
      )[]
    | null;
  description?: string;
  /** True sends new events from now on. False sends none, and drops waiting deliveries. */
  enabled?: boolean;
}
export interface WebhookEndpointReply {
  /** The id of the endpoint. */
  id: string;
  /** Where to send events: an https URL on a public address. */
  url: string;
  /** The types of events to send. Null: all. */
  types:
    | (
        | 'balance.low'
        | 'balance.exhausted'
        | 'budget.threshold_reached'
        | 'top_up.pending'
        | 'top_up.completed'
        | 'top_up.expired'
        | 'top_up.failed'
        | 'top_up.partially_refunded'
        | 'top_up.refunded'
        | 'top_up.disputed'
        | 'top_up.charged_back'
        | 'refund.requested'
        | 'refund.made'
        | 'refund.failed'
        | 'dispute.open'
        | 'dispute.lost'
        | 'dispute.won'
        | 'warning.open'
        | 'warning.won'
        | 'charge.refunded'
        | 'hold.expired'
        | 'lease.expired'
        | 'key.created'
        | 'key.rolled'
        | 'key.revoked'
        | 'tool.price_changed'
        | 'webhook_endpoint.disabled'
        | 'webhook_endpoint.test'
      )[]
    | null;
  /** What its owner calls it. */
  description: string;
  /** Whether events are sent. */
  status: 'active' | 'disabled';
  /**
   * Why it is disabled: by its `owner`, because it was `failing` for five days, or because it responded with 410 (`gone`).
   */
  disabledReason: ('owner' | 'failing' | 'gone') | null;
  /**
   * Since when attempts fail. Null: the last one succeeded, none was made at this URL, or no event waits.
   */
  failingSince: string | null;
  /** Until then, the previous secret signs too. Null: only one secret signs. */
  previousSecretExpiresAt: string | null;
  /** When it was made, in UTC. */
  createdAt: string;
}
export interface WebhookEndpointsReply {
  webhookEndpoints: WebhookEndpointReply[];
  /** Whether another page follows. */
  hasMore: boolean;
  /** Send it as `cursor` to get the next page. Null on the last page. */
  nextCursor: string | null;
}
