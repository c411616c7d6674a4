/** The rows of the table of routes for leases. */
import { LeaseBody, LeaseReply, LeasesReply, PlacedLeaseReply } from '../../schemas/leases.ts';
import {
  RenewBody,
  SettlementBody,
  SettlementEnvelope,
  SettlementReply,
} from '../../schemas/leases.ts';
import { Id, PageQuery } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { BATCH_BYTES_MAX } from '../handlers/charges/charge-batches.ts';
import {
  getLease,
  getLeases,
  postLease,
  postLeaseRelease,
  postRenewal,
  postSettlement,
} from '../handlers/leases/leases.ts';
import { get } from '../read-endpoints.ts';
import { act, post } from '../write-endpoints.ts';

const leaseParams = { id: Id('lease', 'The id of the lease.') };
/** A renewal is refused for the same reasons as a new lease. */
const REFUSALS = [
  'invalid_api_key',
  'unknown_tool',
  'tool_archived',
  'invalid_amount',
  'spend_limit_reached',
  'lease_not_allowed',
  'approval_required',
  'tool_not_allowed',
  'developer_not_allowed',
  'mode_mismatch',
] as const;

export const LEASE_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/leases', {
    operation: 'createLease',
    share: 'none',
    rate: 'none',
    role: 'developer',
    body: LeaseBody,
    replies: { 201: PlacedLeaseReply },
    errors: [...REFUSALS, 'insufficient_balance'],
    isIdempotent: true,
    handle: postLease,
  }),
  get('/v1/leases', {
    operation: 'listLeases',
    role: 'either',
    query: PageQuery,
    replies: { 200: LeasesReply },
    handle: getLeases,
  }),
  get('/v1/leases/:id', {
    operation: 'getLease',
    role: 'either',
    params: leaseParams,
    replies: { 200: LeaseReply },
    errors: ['lease_not_found'],
    handle: getLease,
  }),
  post('/v1/leases/:id/settle', {
    operation: 'settleLease',
    role: 'developer',
    share: 'settlements',
    rate: 'none',
    params: leaseParams,
    body: SettlementBody,
    accepts: SettlementEnvelope,
    bodyBytesMax: BATCH_BYTES_MAX,
    replies: { 200: SettlementReply },
    errors: ['lease_not_found', 'lease_fenced'],
    handle: postSettlement,
  }),
  post('/v1/leases/:id/renew', {
    operation: 'renewLease',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: leaseParams,
    body: RenewBody,
    replies: { 200: LeaseReply },
    errors: [...REFUSALS, 'lease_not_found', 'lease_closed', 'lease_fenced', 'lease_not_renewable'],
    isIdempotent: true,
    handle: postRenewal,
  }),
  act('/v1/leases/:id/release', {
    operation: 'releaseLease',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: leaseParams,
    replies: { 200: LeaseReply },
    errors: ['lease_not_found', 'lease_closed'],
    handle: postLeaseRelease,
  }),
];
