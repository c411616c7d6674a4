/** The prose of the API reference for balances. */
import type { Operation } from '../operation.ts';

export const BALANCE_OPERATIONS = {
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
  listUsageByDay: {
    tag: 'Balance',
    summary: 'List usage by day',
    description:
      'Returns the amount spent on each UTC day from `from`, the beginning of a UTC day at most 100 days ago, to today.',
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
} as const satisfies Record<string, Operation>;
