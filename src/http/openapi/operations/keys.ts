/** The prose of the API reference for keys. */
import type { Operation } from '../operation.ts';

export const KEY_OPERATIONS = {
  getAccountKeys: {
    tag: 'Keys',
    summary: 'Get the limits of your consumer keys',
    description:
      'Returns whether consumer keys of the account can be charged, and how much by each developer in a day.',
  },
  updateAccountKeys: {
    tag: 'Keys',
    summary: 'Change the limits of your consumer keys',
    description:
      'Closes the consumer keys of the account to charges, or sets what each developer can charge to them in a UTC day. ' +
      'The first charge of a developer creates a budget for that developer, which you can change like any other. Spend keys still work. ' +
      'Takes effect everywhere within a second.',
  },
  listKeys: {
    tag: 'Keys',
    summary: 'List your keys',
    description: 'Returns all keys of the account, oldest first, including inactive keys.',
  },
  createKey: {
    tag: 'Keys',
    summary: 'Create a key',
    description:
      'Creates a key. Only this response contains the key, and the response to a retry with the same Idempotency-Key. An account has at most 100 active keys.',
  },
  rollKey: {
    tag: 'Keys',
    summary: 'Roll a key',
    description:
      'Creates a key with the same kind and name. The old key stops working after the overlap.',
  },
  revokeKey: {
    tag: 'Keys',
    summary: 'Revoke a key',
    description:
      'The key stops working everywhere within a second. You cannot undo this. Developers can still extend open holds by the key, and ' +
      'capture what they reserve. With `releaseHolds`, those of a spend key are released instead; for a consumer key of the account, those of all ' +
      'its consumer keys, since a hold does not say which of them placed it. Revoking a key again changes nothing, but can release holds later.',
  },
} as const satisfies Record<string, Operation>;
