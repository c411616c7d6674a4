/** The prose of the API reference for leases. */
import type { Operation } from '../operation.ts';

export const LEASE_OPERATIONS = {
  createLease: {
    tag: 'Leases',
    summary: 'Take a lease',
    description:
      'Reserves the amount on the balance of the consumer whose spend key is `apiKey`. Until `expiresAt`, your server ' +
      'accepts or refuses calls of these tools by itself, as long as the amount lasts, and settles them afterwards. Revocations, ' +
      'lower limits and other prices take effect at the next renewal. The budget of the key, and each one above it, ' +
      'must have `allowLeases`. Send an `Idempotency-Key` to be able to retry.',
  },
  listLeases: {
    tag: 'Leases',
    summary: 'List leases',
    description:
      'Returns leases, newest first. A secret key gets the leases that it took, a consumer key those on its balance.',
  },
  getLease: {
    tag: 'Leases',
    summary: 'Get a lease',
    description: 'Returns a lease in its current state.',
  },
  settleLease: {
    tag: 'Leases',
    summary: 'Settle calls of a lease',
    description:
      'Charges up to 1,000 calls. Each is charged or refused on its own. Each `sequence` is charged once, so send the entries again until ' +
      'you know their results. An entry is refused if it exceeds what is left, or if it is new and the lease has ' +
      'ended. With `final`, the lease then releases the rest.',
  },
  renewLease: {
    tag: 'Leases',
    summary: 'Renew a lease',
    description:
      'Extends the lease, at current prices, and gives it a new `fence`: from now on, requests with an older fence are refused. A renewal ' +
      'is refused for the same reasons as a new lease, and then changes nothing. A lease ends ' +
      'at most 24 hours after it was taken, and cannot be renewed once a window of its budget has begun since then.',
  },
  releaseLease: {
    tag: 'Leases',
    summary: 'Release a lease',
    description:
      'Returns the unspent amount to the balance and the budgets. Releasing a lease twice returns the same response.',
  },
} as const satisfies Record<string, Operation>;
