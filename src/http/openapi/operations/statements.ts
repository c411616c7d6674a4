/** The prose of the API reference for statements. */
import type { Operation } from '../operation.ts';

export const STATEMENT_OPERATIONS = {
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
} as const satisfies Record<string, Operation>;
