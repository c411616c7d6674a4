/** The prose of the API reference for accounts. */
import type { Operation } from '../operation.ts';

export const ACCOUNT_OPERATIONS = {
  getSession: {
    tag: 'Keys',
    summary: 'Get the session',
    description: 'Returns the account that is signed in.',
  },
  listAuditEntries: {
    tag: 'Keys',
    summary: "List your account's audit log",
    description:
      'Returns the changes of access to your account and the manual changes of its money, with who made them, newest first. Charges and payments are not in it.',
  },
} as const satisfies Record<string, Operation>;
