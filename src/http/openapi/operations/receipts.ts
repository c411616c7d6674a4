/** The prose of the API reference for receipts. */
import type { Operation } from '../operation.ts';

export const RECEIPT_OPERATIONS = {
  verifyReceipt: {
    tag: 'Receipts',
    summary: 'Verify a receipt',
    description:
      'Tells whether a receipt is genuine and unchanged, and returns its contents. The response has no ' +
      'contents if the receipt is not valid.',
  },
  createPublicReceipt: {
    tag: 'Receipts',
    summary: 'Sign a receipt for its payer',
    description:
      'Signs the receipt of a recorded charge or invocation with Ed25519, so that anyone can verify it with ' +
      'the keys of `GET /v1/receipts/public-keys`, which needs no authentication.',
  },
  listReceiptKeys: {
    tag: 'Receipts',
    summary: 'List your receipt keys',
    description:
      'Returns the keys with which you can verify your receipts offline. Fetch them again when a receipt names a key ' +
      'that you do not know. If it is not listed then, ask `POST /v1/receipts/verify`, which compares the receipt ' +
      'with the ledger.',
  },
  listPublicReceiptKeys: {
    tag: 'Receipts',
    summary: 'List the public receipt keys',
    description:
      'Returns the keys with which anybody can verify public receipts offline, as a JSON Web Key Set. Fetch ' +
      'them again when a receipt names a key that you do not know. If it is not listed then, ask ' +
      '`POST /v1/receipts/verify`, which compares the receipt with the ledger.',
  },
} as const satisfies Record<string, Operation>;
