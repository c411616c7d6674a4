/** Schemas of the audit log: who changed access to an account, or its money by hand. */
import { Type, type Static } from 'typebox';
import { Closed, Id, OrNull, pageMarks, pageParameters, Text, TimeOf } from './shapes.ts';

const entry = {
  number: Type.Integer({
    minimum: 1,
    description: 'The number of the entry in the log of the whole service.',
    examples: [42],
  }),
  happenedAt: TimeOf('When it happened, in UTC.'),
  action: Text('What was done.', 'key.revoked'),
  subjectId: OrNull(Type.String(), 'The id of what was changed, or null.'),
  details: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'The main fields of what was changed, amounts in dollars. `before` has the earlier values of those that changed, and `by` the key, session or emailed link that made the change. Of a list longer than 1,000 bytes, `count` and `sha256`, and the first members that were `added`, or in `before` `removed`, with their number.',
    examples: [{ kind: 'developer', lastFour: 'x7Qa' }],
  }),
  program: Text('The program that changed it.', 'farebox api'),
};

export const AuditLogReply = Closed({
  entries: Type.Array(Closed(entry), { description: 'Newest first.' }),
  ...pageMarks,
});
export type AuditLogReply = Static<typeof AuditLogReply>;

export const OperatorAuditLogQuery = Closed({
  ...pageParameters,
  accountId: Type.Optional(Id('account', 'Only the entries of this account.')),
});
export type OperatorAuditLogQuery = Static<typeof OperatorAuditLogQuery>;

export const OperatorAuditLogReply = Closed({
  entries: Type.Array(
    Closed({
      ...entry,
      accountId: OrNull(Id('account', 'The account.'), 'The account that it is about, or null.'),
      databaseRole: Text('The role of the database connection.', 'farebox'),
      hash: Text(
        'SHA-256 of this entry and the hash before it, in hex.',
        '5f2b0f3a8d7c4e61a9b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4d5e6f70',
      ),
    }),
    { description: 'Newest first.' },
  ),
  ...pageMarks,
});
export type OperatorAuditLogReply = Static<typeof OperatorAuditLogReply>;
