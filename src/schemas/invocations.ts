/** Schemas of invocations and their receipts (legacy, specification section 4.4). */
import { Type, type Static } from 'typebox';
import { INVOCATION_ERRORS, INVOCATION_STATUSES } from '../domain/invocation.ts';
import { AgentReference } from './grants.ts';
import {
  Closed,
  Count,
  FreeObject,
  Id,
  Patterned,
  PrintableText,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const CAPABILITY_MAX = 200;

export const InvocationBody = Type.Object({
  targetAgentId: AgentReference,
  grantId: Text('The grant to use.', 'gnt_01a1fd6455e57aa3b31e95f51a48130e'),
  capability: PrintableText(CAPABILITY_MAX, 'weather.forecast'),
  payload: FreeObject(
    'The input of the capability. The agent receives it, with numbers in double precision: send longer ones as strings.',
    { city: 'Oslo' },
  ),
});
export type InvocationBody = Static<typeof InvocationBody>;

const Failure = Closed({
  code: Text(`One of ${Object.keys(INVOCATION_ERRORS).join(', ')}.`, 'agent_unavailable'),
  message: Text('The reason, for people.', 'The agent did not respond in time.'),
});
const Sha256 = (description: string) =>
  Patterned('^[0-9a-f]{64}$', '64 hexadecimal digits in lower case', {
    description,
    examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
  });

export const InvocationReply = Closed({
  id: Id('invocation', 'The id of the invocation.'),
  status: {
    ...Word(INVOCATION_STATUSES, 'The state of the invocation.'),
    examples: ['succeeded'],
  },
  targetAgentId: Text('The agent.', 'weather'),
  grantId: Id('grant', 'The grant that allowed it.'),
  capability: Text('What the agent was asked to do.', 'weather.forecast'),
  attempts: Count('How many times the agent was called.', 1),
  result: Type.Optional(
    Type.Unknown({
      description:
        "The agent's answer, once the invocation has `succeeded`, with numbers in double precision. Absent once an " +
        'operator has archived the month in which the invocation was made; the receipt still has its hash.',
      examples: [{ forecast: 'sunny' }],
    }),
  ),
  error: Type.Optional({ ...Failure, description: 'Why it failed, once it has `failed`.' }),
  lastError: Type.Optional({
    ...Failure,
    description: 'The error of the last attempt, while the invocation continues.',
  }),
  createdAt: Timestamp,
  completedAt: Type.Union([TimeOf('When it ended.'), Type.Null()], {
    description: 'When it ended, or null.',
    examples: ['2026-11-21T09:16:14.021Z'],
  }),
});
export type InvocationReply = Static<typeof InvocationReply>;

const receiptFields = {
  developerId: Id('developer', 'The account that invoked the agent. Its key signs the receipt.'),
  callerId: Text('The caller named in the grant.', 'assistant-7'),
  targetAgentId: Text('The agent.', 'weather'),
  grantId: Id('grant', 'The grant that allowed it.'),
  capability: Text('What the agent was asked to do.', 'weather.forecast'),
  status: Word(['succeeded', 'failed'], 'How it ended.'),
  requestSha256: Sha256(
    'SHA-256 of the JSON of `{targetAgentId, grantId, capability, payload}`, in this order and without whitespace.',
  ),
  resultSha256: Type.Union([Sha256('SHA-256 of the result.'), Type.Null()], {
    description: 'SHA-256 of the JSON of `result`, without whitespace. Null when it failed.',
    examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
  }),
  createdAt: Timestamp,
  completedAt: TimeOf('When it ended.', '2026-11-21T09:16:14.021Z'),
};

/** The contents of an invocation receipt, as returned by /v1/receipts/verify. */
export const SignedInvocation = Closed({
  id: Id('invocation', 'The id of the invocation.'),
  ...receiptFields,
});

export const InvocationReceiptReply = Closed({
  invocationId: Id('invocation', 'The id of the invocation.'),
  receipt: Text(
    'The signed receipt. Verify it with `POST /v1/receipts/verify`.',
    'hmac_sha256.1.eyJpZCI6Imludl8wMWEx.S_fwtwsOLfxpQ8Dt',
  ),
  ...receiptFields,
});
export type InvocationReceiptReply = Static<typeof InvocationReceiptReply>;
