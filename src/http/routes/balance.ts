/** The rows of the table of routes for a balance and what was charged to it. */
import {
  BalanceReply,
  UsageByDayQuery,
  UsageByDayReply,
  UsageReply,
} from '../../schemas/balance.ts';
import { ConsumerChargeReply, UsageFileQuery, UsageQuery } from '../../schemas/charges.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import {
  getBalance,
  getUsage,
  getUsageByDay,
  getUsageCharge,
} from '../handlers/balance/balance-and-usage.ts';
import { exportUsage } from '../handlers/charges/charge-files.ts';
import { csv, get, scan } from '../read-endpoints.ts';

const chargeParams = { id: Id('charge', 'The id of the charge.') };

export const BALANCE_ENDPOINTS: readonly Endpoint[] = [
  get('/v1/balance', {
    operation: 'getBalance',
    role: 'consumer',
    replies: { 200: BalanceReply },
    handle: getBalance,
  }),
  scan('/v1/usage', {
    operation: 'listUsage',
    role: 'consumer',
    query: UsageQuery,
    replies: { 200: UsageReply },
    errors: ['charges_archived'],
    inSteps: true,
    handle: getUsage,
  }),
  scan('/v1/usage/daily', {
    operation: 'listUsageByDay',
    role: 'consumer',
    query: UsageByDayQuery,
    replies: { 200: UsageByDayReply },
    handle: getUsageByDay,
  }),
  get('/v1/usage/:id', {
    operation: 'getUsageCharge',
    role: 'consumer',
    params: chargeParams,
    replies: { 200: ConsumerChargeReply },
    errors: ['not_found', 'charges_archived'],
    handle: getUsageCharge,
  }),
  csv('/v1/usage.csv', {
    operation: 'exportUsage',
    role: 'consumer',
    query: UsageFileQuery,
    errors: ['charges_archived'],
    handle: exportUsage,
  }),
];
