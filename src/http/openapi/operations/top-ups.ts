/** The prose of the API reference for top-ups. */
import type { Operation } from '../operation.ts';

export const TOP_UP_OPERATIONS = {
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
  quoteTopUp: {
    tag: 'Top-ups',
    summary: 'Get the price of a top-up',
    description: 'Returns what a top-up would cost, with tax if the operator charges it.',
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
} as const satisfies Record<string, Operation>;
