/** The prose of the API reference for holds. */
import type { Operation } from '../operation.ts';

export const HOLD_OPERATIONS = {
  createHold: {
    tag: 'Holds',
    summary: 'Place a hold',
    description:
      'Reserves the amount on the balance of the consumer whose key is `apiKey`, so that nothing else ' +
      'can spend it. Capture the hold when you know what the call cost, or release it when the call ' +
      'failed. Otherwise it expires after `expiresIn` seconds. Send an ' +
      '`Idempotency-Key` to be able to retry: the same key and body return the same hold, in its current state.',
  },
  listHolds: {
    tag: 'Holds',
    summary: 'List holds',
    description:
      'Returns holds, newest first. A secret key gets the holds that it placed, a consumer key ' +
      'those on its balance. Only the developer sees `metadata`.',
  },
  getHold: {
    tag: 'Holds',
    summary: 'Get a hold',
    description: 'Returns a hold that you placed, or one on your balance.',
  },
  captureHold: {
    tag: 'Holds',
    summary: 'Capture a hold',
    description:
      'Charges what the call cost and releases the rest. Send `{}` to charge all that is left. Send ' +
      '`"final": false` to leave the rest reserved and capture again later. A capture is a charge in ' +
      'every respect: it has a receipt, counts as earnings and can be refunded.',
  },
  extendHold: {
    tag: 'Holds',
    summary: 'Extend a hold',
    description:
      'Makes a hold expire later: `expiresIn` seconds from now, and at most 24 hours after it was ' +
      'placed. Never shortens a hold.',
  },
  releaseHold: {
    tag: 'Holds',
    summary: 'Release a hold',
    description:
      'Releases the amount that the hold still reserves. Releasing it again changes nothing and returns the same response.',
  },
} as const satisfies Record<string, Operation>;
