/** The prose of the API reference for charges. */
import type { Operation } from '../operation.ts';

export const CHARGE_OPERATIONS = {
  createCharge: {
    tag: 'Charges',
    summary: 'Charge a consumer',
    description:
      'Takes the amount from the balance of the consumer whose key is `apiKey`. The charge is durable ' +
      'when the response arrives; run the tool then. A refusal takes nothing. Send an `Idempotency-Key` to ' +
      'be able to retry: the same key and body return the same charge. Keys are kept for 60 days.',
  },
  createChargeBatch: {
    tag: 'Charges',
    summary: 'Charge many consumers in one request',
    description:
      'Runs up to 1,000 operations. The `op` of an operation is `charge` (the default), `hold`, `capture` or `release`. ' +
      'Each operation is accepted or refused on its own, in order. Its result has the status and the body that the single ' +
      'request would have returned; a hold that was placed, captured or released is in `hold`. The batch takes no ' +
      '`Idempotency-Key`: give each operation an `idempotencyKey`.',
  },
  listCharges: {
    tag: 'Charges',
    summary: 'List your charges',
    description: 'Returns the charges that you made, newest first.',
  },
  exportCharges: {
    tag: 'Charges',
    summary: 'Download your charges as CSV',
    description:
      'Returns all charges that match, newest first, but no archived ones. Columns: `id`, `createdAt`, `tool`, `amount`, ' +
      '`refunded`, `consumerId`, `metadata`.',
  },
  getCharge: {
    tag: 'Charges',
    summary: 'Get a charge',
    description: 'Returns a charge that you made.',
  },
  refundCharge: {
    tag: 'Charges',
    summary: 'Refund a charge',
    description:
      'Refunds a charge to its consumer, in full or in part, until nothing is left. The ' +
      'consumer can spend the money at once. Send `{}` to refund all that is left.',
  },
} as const satisfies Record<string, Operation>;
