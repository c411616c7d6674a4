/** What the API reference says about an operation, and the groups that it shows operations in. */
export const TAGS = {
  Charges: 'Charge a consumer before the work is done, list charges and refund them.',
  Holds: 'Reserve money before a call, and charge what the call cost.',
  Leases:
    'Reserve money that your server spends by itself, call by call, and settle the calls in batches.',
  Balance: 'Read the balance and what was spent.',
  Approvals: 'Ask the owner after a refusal, wait for the decision, and decide as the owner.',
  Budgets:
    'Limit what an agent, a project or a session may spend, and hand it a key that can only spend from its budget.',
  'Top-ups': 'Add money to a balance.',
  Earnings: 'Read earnings and statements, and manage tools.',
  Events: 'Receive a signed webhook when something happens to the account.',
  Keys: 'Manage the keys of an account, as its owner in the console.',
  Operators: 'Inspect accounts and correct balances, as an operator in the console.',
  Receipts: 'Check that a signed receipt is genuine.',
  'Agents (legacy)':
    'Register, find and invoke agents. These endpoints remain available; new tools use charges.',
} as const;

export interface Operation {
  readonly tag: keyof typeof TAGS;
  /** A title, without a full stop. */
  readonly summary: string;
  readonly description: string;
}
