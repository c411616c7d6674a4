/** The prose of the API reference for operators. */
import type { Operation } from '../operation.ts';

export const OPERATOR_OPERATIONS = {
  getOperatorStatus: {
    tag: 'Operators',
    summary: 'Get the state of the service',
    description:
      'Returns which parts of the service respond, what is waiting or stuck, what differs from the books of the payment processor, and ' +
      'the last results of `farebox doctor`. Each count of waiting work lists its oldest items, with links to the Temporal UI and to Stripe.',
  },
  listAllAuditEntries: {
    tag: 'Operators',
    summary: 'List the audit log',
    description:
      'Returns the changes of access and the manual changes of money, with who made them, newest first: of all accounts, or of one. ' +
      '`farebox doctor` verifies the chain of hashes.',
  },
  findAccounts: {
    tag: 'Operators',
    summary: 'Find accounts',
    description: 'Returns at most 20 accounts, by email address.',
  },
  getAccount: {
    tag: 'Operators',
    summary: 'Get an account',
    description: 'Returns the balance and its parts: `credited` less `spent` less what is held.',
  },
  listMovements: {
    tag: 'Operators',
    summary: "List an account's movements",
    description: 'Returns every change of `credited`, newest first.',
  },
  listTopUpsOfAccount: {
    tag: 'Operators',
    summary: "List an account's top-ups",
    description:
      'Returns the top-ups of the account, newest first, with links to the Temporal UI and to Stripe.',
  },
  listChargesOfAccount: {
    tag: 'Operators',
    summary: "List an account's charges",
    description: 'Returns the charges that the account paid, newest first.',
  },
  getChargeOfAny: {
    tag: 'Operators',
    summary: 'Get any charge',
    description:
      'Returns a charge of any consumer by any developer. A charge that is archived, or of play money, is not found.',
  },
  listHoldsOfAccount: {
    tag: 'Operators',
    summary: "List an account's holds",
    description: 'Returns the holds on the balance of the account, newest first.',
  },
  adjustBalance: {
    tag: 'Operators',
    summary: 'Adjust a balance',
    description:
      'Credits or debits a balance, and records the reason and the operator. Send an `Idempotency-Key`: the ' +
      'same key and body change the balance once.',
  },
  refundTopUp: {
    tag: 'Operators',
    summary: 'Refund a top-up',
    description:
      'Takes the unspent part of a top-up, or `amount` of it, out of the balance and returns it to the card. ' +
      'If Stripe refuses the refund, Farebox credits the amount again. Send an `Idempotency-Key` to be able to retry.',
  },
} as const satisfies Record<string, Operation>;
