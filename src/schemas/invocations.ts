/** Wire shapes of invocations and their receipts (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { INVOCATION_ERRORS, INVOCATION_STATUSES } from '../domain/invocation.ts';
import { AgentReference } from './grants.ts';
import { PrintableText, Timestamp } from './shapes.ts';

const CAPABILITY_MAX = 200;

export const InvocationBody = Type.Object({
  targetAgentId: AgentReference,
  grantId: Type.String(),
  capability: PrintableText(CAPABILITY_MAX),
  payload: Type.Record(Type.String(), Type.Unknown(), {
    description: 'What the capability takes; goes to the agent as it is',
  }),
});
export type InvocationBody = Static<typeof InvocationBody>;

const Failure = Type.Object({
  code: Type.String({ description: `One of ${Object.keys(INVOCATION_ERRORS).join(', ')}` }),
  message: Type.String(),
});
const Sha256 = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

export const InvocationAnswer = Type.Object({
  id: Type.String(),
  status: Type.Enum(INVOCATION_STATUSES),
  targetAgentId: Type.String(),
  grantId: Type.String(),
  capability: Type.String(),
  attempts: Type.Integer({ minimum: 0, description: 'How often the agent was called' }),
  result: Type.Optional(Type.Unknown({ description: 'What the agent answered; once `succeeded`' })),
  error: Type.Optional(Failure),
  lastError: Type.Optional({ ...Failure, description: 'What the last attempt met, while it runs' }),
  createdAt: Timestamp,
  completedAt: Type.Union([Timestamp, Type.Null()]),
});

const receiptFields = {
  developerId: Type.String({ description: 'Whose key signs: of the account that invoked' }),
  callerId: Type.String({ description: 'As the grant names the caller' }),
  targetAgentId: Type.String(),
  grantId: Type.String(),
  capability: Type.String(),
  status: Type.Enum(['succeeded', 'failed']),
  requestSha256: Sha256(
    'Of the JSON of {targetAgentId, grantId, capability, payload}, in this order and without blanks',
  ),
  resultSha256: Type.Union([Sha256('Of the JSON of `result`, without blanks'), Type.Null()], {
    description: 'Null for one that failed',
  }),
  createdAt: Timestamp,
  completedAt: Timestamp,
};

/** What a receipt of an invocation says, as /v1/receipts/verify shows it. */
export const SignedInvocation = Type.Object({ id: Type.String(), ...receiptFields });

export const InvocationReceiptAnswer = Type.Object({
  invocationId: Type.String(),
  receipt: Type.String({ description: 'Signed; /v1/receipts/verify says whether it holds' }),
  ...receiptFields,
});
