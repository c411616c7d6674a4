/** Wire shapes of grants (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { GRANT_STATUSES, GRANT_TYPES } from '../domain/grant.ts';
import { PlainText, PrintableText, Timestamp } from './shapes.ts';

const CALLER_ID_MAX = 200;
const USES_MAX = 1_000_000;
/** Longer than any agent's id: what names nothing is not found, rather than malformed. */
export const AgentReference = PlainText(1_000);

export const GrantBody = Type.Object({
  callerId: PrintableText(CALLER_ID_MAX),
  targetAgentId: AgentReference,
  type: Type.Enum(GRANT_TYPES),
  expiresAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'ISO 8601, at most 30 days ahead; left out, a day ahead. A `session` needs it',
    }),
  ),
  maxUses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: USES_MAX,
      description: 'For `limited` alone, which needs it',
    }),
  ),
});
export type GrantBody = Static<typeof GrantBody>;

export const GrantAnswer = Type.Object({
  id: Type.String(),
  callerId: Type.String(),
  targetAgentId: Type.String(),
  type: Type.Enum(GRANT_TYPES),
  status: Type.Enum(GRANT_STATUSES),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  uses: Type.Integer({ minimum: 0, description: 'How many invocations it has let through' }),
  maxUses: Type.Optional(Type.Integer({ description: 'Of a `limited` grant' })),
});
