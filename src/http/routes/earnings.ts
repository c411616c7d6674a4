/** The rows of the table of routes for earnings. */
import {
  EarningsFileQuery,
  EarningsQuery,
  EarningsReply,
  LiveEarnings,
} from '../../schemas/earnings.ts';
import type { Endpoint } from '../endpoint.ts';
import { exportEarnings } from '../handlers/charges/charge-files.ts';
import { getEarnings } from '../handlers/earnings/earnings.ts';
import { streamEarnings } from '../handlers/earnings/live-earnings.ts';
import { csv, scan, stream } from '../read-endpoints.ts';

export const EARNINGS_ENDPOINTS: readonly Endpoint[] = [
  scan('/v1/earnings', {
    operation: 'getEarnings',
    role: 'developer',
    query: EarningsQuery,
    replies: { 200: EarningsReply },
    handle: getEarnings,
  }),
  stream('/v1/earnings/live', {
    operation: 'streamEarnings',
    role: 'developer',
    event: { name: 'earnings', data: LiveEarnings },
    handle: streamEarnings,
  }),
  csv('/v1/earnings.csv', {
    operation: 'exportEarnings',
    role: 'developer',
    query: EarningsFileQuery,
    handle: exportEarnings,
  }),
];
