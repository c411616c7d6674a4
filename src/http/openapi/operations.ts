/**
 * The prose of the API reference, by operation id: what each endpoint does, from the caller's point of view. Each row
 * of the table of routes names its operation; a row without prose does not compile.
 */
import { APPROVAL_OPERATIONS } from './approval-operations.ts';
import { BUDGET_OPERATIONS } from './budget-operations.ts';
import { EVENT_OPERATIONS } from './event-operations.ts';
import { HOLD_OPERATIONS } from './hold-operations.ts';
import { LEASE_OPERATIONS } from './lease-operations.ts';
import type { Operation } from './operation.ts';
import { OPERATOR_OPERATIONS } from './operator-operations.ts';

export const OPERATIONS = {
  ...APPROVAL_OPERATIONS,
  ...BUDGET_OPERATIONS,
  ...EVENT_OPERATIONS,
  createCharge: {
    tag: 'Charges',
    summary: 'Charge a consumer',
    description:
      'Takes the amount from the balance of the consumer whose key is `apiKey`. The charge is durable ' +
      'when the response arrives; run the tool then. A refusal takes nothing. Send an `Idempotency-Key` to ' +
      'be able to retry: the same key and body return the same charge. Keys are kept for 60 days.',
  },
  createChargeBatch: {
    tag: 'Charges',
    summary: 'Charge many consumers in one request',
    description:
      'Runs up to 1,000 operations. The `op` of an operation is `charge` (the default), `hold`, `capture` or `release`. ' +
      'Each operation is accepted or refused on its own, in order. Its result has the status and the body that the single ' +
      'request would have returned; a hold that was placed, captured or released is in `hold`. The batch takes no ' +
      '`Idempotency-Key`: give each operation an `idempotencyKey`.',
  },
  listCharges: {
    tag: 'Charges',
    summary: 'List your charges',
    description: 'Returns the charges that you made, newest first.',
  },
  exportCharges: {
    tag: 'Charges',
    summary: 'Download your charges as CSV',
    description:
      'Returns all charges that match, newest first, but no archived ones. Columns: `id`, `createdAt`, `tool`, `amount`, ' +
      '`refunded`, `consumerId`, `metadata`.',
  },
  getCharge: {
    tag: 'Charges',
    summary: 'Get a charge',
    description: 'Returns a charge that you made.',
  },
  refundCharge: {
    tag: 'Charges',
    summary: 'Refund a charge',
    description:
      'Refunds a charge to its consumer, in full or in part, until nothing is left. The ' +
      'consumer can spend the money at once. Send `{}` to refund all that is left.',
  },
  ...LEASE_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...HOLD_OPERATIONS,
  verifyReceipt: {
    tag: 'Receipts',
    summary: 'Verify a receipt',
    description:
      'Tells whether a receipt is genuine and unchanged, and returns its contents. The response has no ' +
      'contents if the receipt is not valid.',
  },
  createPublicReceipt: {
    tag: 'Receipts',
    summary: 'Sign a receipt for its payer',
    description:
      'Signs the receipt of a recorded charge or invocation with Ed25519, so that anyone can verify it with ' +
      'the keys of `GET /v1/receipts/public-keys`, which needs no authentication.',
  },
  listReceiptKeys: {
    tag: 'Receipts',
    summary: 'List your receipt keys',
    description:
      'Returns the keys with which you can verify your receipts offline. Fetch them again when a receipt names a key ' +
      'that you do not know. If it is not listed then, ask `POST /v1/receipts/verify`, which compares the receipt ' +
      'with the ledger.',
  },
  listPublicReceiptKeys: {
    tag: 'Receipts',
    summary: 'List the public receipt keys',
    description:
      'Returns the keys with which anybody can verify public receipts offline, as a JSON Web Key Set. Fetch ' +
      'them again when a receipt names a key that you do not know. If it is not listed then, ask ' +
      '`POST /v1/receipts/verify`, which compares the receipt with the ledger.',
  },
  getBalance: {
    tag: 'Balance',
    summary: 'Get your balance',
    description: 'Returns your balance and the state of automatic top-ups.',
  },
  listUsage: {
    tag: 'Balance',
    summary: 'List your usage',
    description:
      'Returns the charges to your balance, newest first. `total` covers all matching charges, not only this page, less ' +
      'the refunds made in the same period.',
  },
  getUsageCharge: {
    tag: 'Balance',
    summary: 'Get a charge to your balance',
    description:
      'Returns a charge to your balance with the credits that paid for it, such as top-ups. The oldest credit is spent first.',
  },
  exportUsage: {
    tag: 'Balance',
    summary: 'Download your usage as CSV',
    description:
      'Returns all charges that match, newest first, but no archived ones. Columns: `id`, `createdAt`, `tool`, `amount`, ' +
      '`refunded`, `developerId`.',
  },
  createTopUp: {
    tag: 'Top-ups',
    summary: 'Top up from the saved card',
    description:
      'Charges the saved card and credits the balance. The status is 201 if the balance is credited. It is ' +
      '202 if the payment takes longer than 10 seconds: get the top-up later to see how it ended. The owner ' +
      'of the account must have consented to direct top-ups.',
  },
  listTopUps: {
    tag: 'Top-ups',
    summary: 'List your top-ups',
    description: 'Returns your top-ups, newest first.',
  },
  getTopUp: {
    tag: 'Top-ups',
    summary: 'Get a top-up',
    description: 'Returns one of your top-ups.',
  },
  createCheckout: {
    tag: 'Top-ups',
    summary: 'Create a checkout session',
    description:
      'Creates a hosted checkout page for a top-up of at least $5.00. Send the consumer to ' +
      '`sessionUrl`. Farebox credits the balance when the payment succeeds. The status is 202, without a ' +
      '`sessionUrl`, when the payment processor takes longer than 10 seconds: repeat the request with ' +
      'the same `Idempotency-Key`.',
  },
  getEarnings: {
    tag: 'Earnings',
    summary: 'Get your earnings',
    description:
      'Returns what your tools earned, less refunds. `from` and `to` must be the beginning of a UTC ' +
      'hour; with `interval=day`, of a UTC day. A series has up to 1,000 intervals. With `tool`, all sums are for that tool.',
  },
  streamEarnings: {
    tag: 'Earnings',
    summary: 'Stream your earnings',
    description:
      'Keeps the response open and sends an event `earnings` at the start and whenever your earnings have changed, at most ' +
      'once a second. Its data is JSON as in `LiveEarnings`. A comment every 15 seconds keeps the stream alive. ' +
      'The stream ends when its key or session ends, and when the server stops. Then connect ' +
      'again: the next stream begins with the current state, so no change is lost. An account may have 50 streams ' +
      'open on each server.',
  },
  exportEarnings: {
    tag: 'Earnings',
    summary: 'Download your earnings as CSV',
    description:
      'Returns a row for each tool and UTC day, or UTC hour, that has earnings. Columns: `tool`, ' +
      '`from`, `charges`, `amount`.',
  },
  getDeveloper: {
    tag: 'Earnings',
    summary: 'Get your developer settings',
    description: 'Returns your settings.',
  },
  updateDeveloper: {
    tag: 'Earnings',
    summary: 'Change your developer settings',
    description:
      'Changes the fields that you send. `returnUrl` is an https page of yours: people who top up through ' +
      'the `topUpUrl` of one of your refusals can return to it. Add `&returnUrl=` to a link to name another ' +
      'page of the same origin.',
  },
  listUsageByDay: {
    tag: 'Balance',
    summary: 'List usage by day',
    description:
      'Returns the amount spent on each UTC day from `from`, the beginning of a UTC day at most 100 days ago, to today.',
  },
  listRefusals: {
    tag: 'Charges',
    summary: 'List refused requests',
    description:
      'Returns how often your requests were refused, by error code and tool, with the ids of the last requests. ' +
      'Each refused entry of a settlement counts too. ' +
      'Farebox keeps these figures for 30 days, by the hour. They may be a few seconds old.',
  },
  listAuditEntries: {
    tag: 'Keys',
    summary: "List your account's audit log",
    description:
      'Returns the changes of access to your account and the manual changes of its money, with who made them, newest first. Charges and payments are not in it.',
  },
  getSession: {
    tag: 'Keys',
    summary: 'Get the session',
    description: 'Returns the account that is signed in.',
  },
  quoteTopUp: {
    tag: 'Top-ups',
    summary: 'Get the price of a top-up',
    description: 'Returns what a top-up would cost, with tax if the operator charges it.',
  },
  listCards: {
    tag: 'Top-ups',
    summary: 'List your saved cards',
    description: 'Returns the saved cards, and which one direct and automatic top-ups charge.',
  },
  setUpCard: {
    tag: 'Top-ups',
    summary: 'Save a card',
    description:
      'Returns the URL of a page that saves a card, so that top-ups can charge it without you. The page takes no money. You must have given your consent first.',
  },
  chooseCard: {
    tag: 'Top-ups',
    summary: 'Choose a saved card',
    description:
      'Direct and automatic top-ups charge this card from now on. Automatic top-ups that pause after a decline of another card continue.',
  },
  removeCard: {
    tag: 'Top-ups',
    summary: 'Remove a saved card',
    description:
      'From now on, no top-up charges this card. If it was the chosen card, top-ups charge the newest one. Removing it again has the same result.',
  },
  getConsent: {
    tag: 'Top-ups',
    summary: 'Get your consent',
    description:
      'Returns how much may be taken from the saved card in a month, the terms, and the automatic top-ups.',
  },
  giveConsent: {
    tag: 'Top-ups',
    summary: 'Allow payments from your saved card',
    description:
      'Direct and automatic top-ups may take up to `ceiling` in a UTC month. Farebox records the terms that you ' +
      'agreed to. Send it again to change the ceiling. A top-up that was requested before and exceeds a lower ceiling ' +
      'fails with `consent_ceiling_reached`, unless the card is being charged already.',
  },
  withdrawConsent: {
    tag: 'Top-ups',
    summary: 'Withdraw your consent',
    description:
      'From now on, no direct or automatic top-up starts. One that was requested before fails with `consent_required`, ' +
      'unless the card is being charged already.',
  },
  setAutoTopUp: {
    tag: 'Top-ups',
    summary: 'Turn automatic top-ups on',
    description:
      'A charge that leaves less than `threshold` starts a top-up from the saved card. If something else is credited ' +
      'before the card is charged, and the balance is at the threshold again, it expires and takes no money. A repeated call ' +
      'replaces the settings and turns automatic top-ups on again if they turned themselves off.',
  },
  turnAutoTopUpOff: {
    tag: 'Top-ups',
    summary: 'Turn automatic top-ups off',
    description:
      'From now on, no automatic top-up starts. One that has begun expires, unless the card is being charged already.',
  },
  listKeys: {
    tag: 'Keys',
    summary: 'List your keys',
    description: 'Returns all keys of the account, oldest first, including inactive keys.',
  },
  createKey: {
    tag: 'Keys',
    summary: 'Create a key',
    description:
      'Creates a key. Only this response contains the key, and the response to a retry with the same Idempotency-Key. An account has at most 100 active keys.',
  },
  rollKey: {
    tag: 'Keys',
    summary: 'Roll a key',
    description:
      'Creates a key with the same kind and name. The old key stops working after the overlap.',
  },
  getAccountKeys: {
    tag: 'Keys',
    summary: 'Get the limits of your consumer keys',
    description:
      'Returns whether consumer keys of the account can be charged, and how much by each developer in a day.',
  },
  updateAccountKeys: {
    tag: 'Keys',
    summary: 'Change the limits of your consumer keys',
    description:
      'Closes the consumer keys of the account to charges, or sets what each developer can charge to them in a UTC day. ' +
      'The first charge of a developer creates a budget for that developer, which you can change like any other. Spend keys still work. ' +
      'Takes effect everywhere within a second.',
  },
  revokeKey: {
    tag: 'Keys',
    summary: 'Revoke a key',
    description:
      'The key stops working everywhere within a second. You cannot undo this. Developers can still extend open holds by the key, and ' +
      'capture what they reserve. With `releaseHolds`, those of a spend key are released instead; for a consumer key of the account, those of all ' +
      'its consumer keys, since a hold does not say which of them placed it. Revoking a key again changes nothing, but can release holds later.',
  },
  createTool: {
    tag: 'Earnings',
    summary: 'Register a tool',
    description:
      'Registers a tool under a name of your choice. Charges for a tool with a price need no amount.',
  },
  listTools: {
    tag: 'Earnings',
    summary: 'List your tools',
    description: 'Returns your tools in use, oldest first, each with its charges and revenue.',
  },
  getTool: {
    tag: 'Earnings',
    summary: 'Get a tool',
    description: 'Returns one tool, in use or archived.',
  },
  getRateCard: {
    tag: 'Earnings',
    summary: 'Get a rate card of a tool',
    description:
      'Returns the card with this version, as receipts name it, even if the tool has another one or none now.',
  },
  updateTool: {
    tag: 'Earnings',
    summary: 'Change or archive a tool',
    description: 'Changes the fields that you send. The name of a tool cannot be changed.',
  },
  quoteCharge: {
    tag: 'Charges',
    summary: 'Quote a charge',
    description:
      "Returns what a charge of the tool would take now: the cost of `units` by the tool's rate card or, without `units`, its " +
      'price. A charge that costs $0 is refused, but can be quoted. Takes and reserves nothing.',
  },
  listDeveloperTopUps: {
    tag: 'Earnings',
    summary: 'List the top-ups that paid for your charges',
    description:
      'Returns the top-ups that were at least partly spent on your tools, newest first. A balance spends its ' +
      'oldest top-up first.',
  },
  exportStatement: {
    tag: 'Earnings',
    summary: 'Download a monthly statement as CSV',
    description:
      'Returns a row for each entry. The amounts of all rows but the last add up to the last. Columns: `date`, ' +
      '`entry`, `tool`, `topUpId`, `reason`, `count`, `amount`, `tax`, which is beside the amount, and `complete`, which is ' +
      '`false` in every row while the statement is not final. If the month has more than 1,000 entries of a kind, there is one ' +
      'row for each UTC day.',
  },
  getStatement: {
    tag: 'Earnings',
    summary: 'Get a monthly statement',
    description:
      'Returns the statement of a UTC month. A consumer key gets the statement of the balance, a ' +
      'secret key that of the earnings.',
  },
  registerAgent: {
    tag: 'Agents (legacy)',
    summary: 'Register an agent',
    description:
      'Registers an agent under an id of your choice, or updates one of your own. An invocation calls it at its `endpoint`: ' +
      'an `http` agent gets a POST with `{invocationId, callerId, capability, payload}`, an `mcp` server a call of ' +
      'the tool that `capability` names, with `payload` as its arguments, and an `a2a` agent a message with `payload` as its ' +
      'data. A call that fails, or that does not end in time, is made again with the same `Idempotency-Key`, the id of ' +
      'the invocation, until the invocation ends. Do not do the same work twice under one key. While you still work ' +
      'on it, answer with 409 and `Retry-After`. An `a2a` agent that returns a task is asked for that task instead.',
  },
  resolveAgents: {
    tag: 'Agents (legacy)',
    summary: 'Find agents',
    description: 'Finds agents by keywords, best match first.',
  },
  previewIntent: {
    tag: 'Agents (legacy)',
    summary: 'Preview an intent',
    description: 'Returns the intent that `POST /resolve` would find, without the agents.',
  },
  createGrant: {
    tag: 'Agents (legacy)',
    summary: 'Create a grant',
    description:
      'Allows a caller to invoke one agent. Your account can use the grant, and the account that has registered an agent ' +
      'under the id `callerId` before, if there is one.',
  },
  getGrant: {
    tag: 'Agents (legacy)',
    summary: 'Get a grant',
    description: 'Returns a grant that your account created or can use.',
  },
  revokeGrant: {
    tag: 'Agents (legacy)',
    summary: 'Revoke a grant',
    description:
      'Revokes a grant. Invocations in progress continue. Revoking it again changes nothing.',
  },
  invokeAgent: {
    tag: 'Agents (legacy)',
    summary: 'Invoke an agent',
    description:
      'Calls an agent under a grant, which counts as used even if the agent fails. Agents of other protocols than `http`, ' +
      '`mcp` and `a2a` are refused and use no grant. The status is 200 when it has ended ' +
      'within two seconds, otherwise 202: get the invocation later to see how it ended.',
  },
  getInvocation: {
    tag: 'Agents (legacy)',
    summary: 'Get an invocation',
    description: 'Returns an invocation that your account made.',
  },
  getInvocationReceipt: {
    tag: 'Agents (legacy)',
    summary: 'Get the receipt of an invocation',
    description: 'Returns the signed receipt of an invocation that has ended.',
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof OPERATIONS;
