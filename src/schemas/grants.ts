/** Schemas of grants (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { GRANT_STATUSES, GRANT_TYPES } from '../domain/grant.ts';
import {
  Closed,
  Count,
  Id,
  PlainText,
  PrintableText,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const CALLER_ID_MAX = 200;
const USES_MAX = 1_000_000;
/** Longer than any agent's id, so that an unknown name is "not found" rather than malformed. */
export const AgentReference = PlainText(1_000, 'weather');

export const GrantBody = Type.Object({
  callerId: PrintableText(CALLER_ID_MAX, 'assistant-7'),
  targetAgentId: AgentReference,
  type: Word(GRANT_TYPES, 'How often the grant can be used.'),
  expiresAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'When it expires, in ISO 8601: at most 30 days ahead. Default: in one day. Required for a `session`.',
      examples: ['2026-12-01T00:00:00.000Z'],
    }),
  ),
  maxUses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: USES_MAX,
      description:
        'How many invocations may use it. Required for a `limited` grant, and not allowed for others.',
      examples: [5],
    }),
  ),
});
export type GrantBody = Static<typeof GrantBody>;

export const GrantReply = Closed({
  id: Id('grant', 'The id of the grant.'),
  callerId: Text('Who may invoke, by a name of your own.', 'assistant-7'),
  targetAgentId: Text('The agent that may be invoked.', 'weather'),
  type: Word(GRANT_TYPES, 'How often it can be used.'),
  status: Word(GRANT_STATUSES, 'The state of the grant.'),
  createdAt: Timestamp,
  expiresAt: TimeOf('When it expires.', '2026-11-22T09:16:13.669Z'),
  uses: Count('How many invocations have used it.', 0),
  maxUses: Type.Optional(Count('How many invocations may use a `limited` grant.', 5)),
});
export type GrantReply = Static<typeof GrantReply>;
