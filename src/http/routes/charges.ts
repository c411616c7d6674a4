/** The rows of the table of routes for charges. */
import {
  ChargeBatchBody,
  ChargeBatchEnvelope,
  ChargeBatchReply,
} from '../../schemas/charge-batches.ts';
import {
  ChargeBody,
  ChargeReply,
  ChargesFileQuery,
  ChargesQuery,
  ChargesReply,
  DeveloperChargeReply,
  RefundBody,
  RefundReply,
} from '../../schemas/charges.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { BATCH_BYTES_MAX, postChargeBatch } from '../handlers/charges/charge-batches.ts';
import { exportCharges } from '../handlers/charges/charge-files.ts';
import { postChargeRefund } from '../handlers/charges/charge-refunds.ts';
import { getCharge, listCharges, postCharge } from '../handlers/charges/charges.ts';
import { csv, get, scan } from '../read-endpoints.ts';
import { post } from '../write-endpoints.ts';

const chargeParams = { id: Id('charge', 'The id of the charge.') };

/** A hold is refused for the same reasons. */
export const CHARGE_REFUSALS = [
  'invalid_api_key',
  'invalid_amount',
  'unknown_tool',
  'tool_archived',
  'insufficient_balance',
  'spend_limit_reached',
  'tool_not_allowed',
  'developer_not_allowed',
  'account_keys_closed',
  'mode_mismatch',
  'approval_required',
  'idempotency_key_in_use',
] as const;

export const CHARGE_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/charges', {
    operation: 'createCharge',
    share: 'none',
    rate: 'none',
    role: 'developer',
    body: ChargeBody,
    replies: { 201: ChargeReply },
    errors: [...CHARGE_REFUSALS, 'outcome_unknown'],
    isIdempotent: true,
    reportsOutcome: true,
    handle: postCharge,
  }),
  post('/v1/charges/batch', {
    operation: 'createChargeBatch',
    role: 'developer',
    body: ChargeBatchBody,
    accepts: ChargeBatchEnvelope,
    bodyBytesMax: BATCH_BYTES_MAX,
    share: 'batches',
    rate: 'none',
    repliesInSlices: true,
    replies: { 200: ChargeBatchReply },
    reportsOutcome: true,
    handle: postChargeBatch,
  }),
  scan('/v1/charges', {
    operation: 'listCharges',
    role: 'developer',
    query: ChargesQuery,
    replies: { 200: ChargesReply },
    errors: ['charges_archived'],
    inSteps: true,
    handle: listCharges,
  }),
  csv('/v1/charges.csv', {
    operation: 'exportCharges',
    role: 'developer',
    query: ChargesFileQuery,
    errors: ['charges_archived'],
    handle: exportCharges,
  }),
  get('/v1/charges/:id', {
    operation: 'getCharge',
    role: 'developer',
    params: chargeParams,
    replies: { 200: DeveloperChargeReply },
    errors: ['not_found', 'charges_archived'],
    handle: getCharge,
  }),
  post('/v1/charges/:id/refund', {
    operation: 'refundCharge',
    share: 'refunds',
    rate: 'refunds',
    role: 'developer',
    params: chargeParams,
    body: RefundBody,
    replies: { 201: RefundReply },
    errors: ['invalid_amount', 'refund_exceeds_charge', 'not_found', 'charges_archived'],
    isIdempotent: true,
    handle: postChargeRefund,
  }),
];
