/** The prose of the API reference for earnings. */
import type { Operation } from '../operation.ts';

export const EARNINGS_OPERATIONS = {
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
} as const satisfies Record<string, Operation>;
