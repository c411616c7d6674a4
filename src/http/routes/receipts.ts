/** The rows of the table of routes for receipts. */
import { PublicKeysReply, PublicReceiptBody, PublicReceiptReply } from '../../schemas/receipts.ts';
import { ReceiptKeysReply, VerifyBody, VerifyReply } from '../../schemas/receipts.ts';
import type { Endpoint } from '../endpoint.ts';
import {
  getPublicKeys,
  getReceiptKeys,
  postPublicReceipt,
  verifyReceipt,
} from '../handlers/charges/receipts.ts';
import { get, open } from '../read-endpoints.ts';
import { post } from '../write-endpoints.ts';

export const RECEIPT_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/receipts/verify', {
    operation: 'verifyReceipt',
    role: 'either',
    body: VerifyBody,
    replies: { 200: VerifyReply },
    rate: 'none',
    reportsOutcome: true,
    errors: ['charges_archived'],
    handle: verifyReceipt,
  }),
  post('/v1/receipts/public', {
    operation: 'createPublicReceipt',
    role: 'either',
    body: PublicReceiptBody,
    replies: { 200: PublicReceiptReply },
    errors: ['not_found', 'charges_archived'],
    rate: 'none',
    reportsOutcome: true,
    handle: postPublicReceipt,
  }),
  get('/v1/receipts/keys', {
    operation: 'listReceiptKeys',
    role: 'developer',
    replies: { 200: ReceiptKeysReply },
    handle: getReceiptKeys,
  }),
  open('/v1/receipts/public-keys', {
    operation: 'listPublicReceiptKeys',
    replies: { 200: PublicKeysReply },
    handle: getPublicKeys,
  }),
];
