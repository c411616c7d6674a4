/** The rows of the table of routes for holds. */
import {
  CaptureBody,
  CaptureReply,
  ExtendBody,
  HoldBody,
  HoldReply,
  HoldsQuery,
  HoldsReply,
  ListedHold,
  PlacedHoldReply,
} from '../../schemas/holds.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getHold, getHolds } from '../handlers/holds/hold-lists.ts';
import { postCapture, postExtension, postHold, postRelease } from '../handlers/holds/holds.ts';
import { get } from '../read-endpoints.ts';
import { act, post } from '../write-endpoints.ts';
import { CHARGE_REFUSALS } from './charges.ts';

const holdParams = { id: Id('hold', 'The id of the hold.') };

export const HOLD_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/holds', {
    operation: 'createHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    body: HoldBody,
    replies: { 201: PlacedHoldReply },
    errors: CHARGE_REFUSALS,
    isIdempotent: true,
    handle: postHold,
  }),
  get('/v1/holds', {
    operation: 'listHolds',
    role: 'either',
    query: HoldsQuery,
    replies: { 200: HoldsReply },
    handle: getHolds,
  }),
  get('/v1/holds/:id', {
    operation: 'getHold',
    role: 'either',
    params: holdParams,
    replies: { 200: ListedHold },
    errors: ['hold_not_found'],
    handle: getHold,
  }),
  post('/v1/holds/:id/capture', {
    operation: 'captureHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    body: CaptureBody,
    replies: { 201: CaptureReply },
    errors: [
      'invalid_amount',
      'tool_archived',
      'exceeds_hold',
      'insufficient_balance',
      'spend_limit_reached',
      'hold_not_found',
      'hold_closed',
      'idempotency_key_in_use',
    ],
    isIdempotent: true,
    handle: postCapture,
  }),
  post('/v1/holds/:id/extend', {
    operation: 'extendHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    body: ExtendBody,
    replies: { 200: HoldReply },
    errors: ['hold_not_found', 'hold_closed', 'idempotency_key_in_use'],
    isIdempotent: true,
    handle: postExtension,
  }),
  act('/v1/holds/:id/release', {
    operation: 'releaseHold',
    share: 'none',
    rate: 'none',
    role: 'developer',
    params: holdParams,
    replies: { 200: HoldReply },
    errors: ['hold_not_found', 'hold_closed'],
    handle: postRelease,
  }),
];
