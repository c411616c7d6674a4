/** The prose of the API reference for agents. */
import type { Operation } from '../operation.ts';

export const AGENT_OPERATIONS = {
  registerAgent: {
    tag: 'Agents (legacy)',
    summary: 'Register an agent',
    description:
      'Registers an agent under an id of your choice, or updates one of your own. An invocation calls it at its `endpoint`: ' +
      'an `http` agent gets a POST with `{invocationId, callerId, capability, payload}`, an `mcp` server a call of ' +
      'the tool that `capability` names, with `payload` as its arguments, and an `a2a` agent a message with `payload` as its ' +
      'data. A call that fails, or that does not end in time, is made again with the same `Idempotency-Key`, the id of ' +
      'the invocation, until the invocation ends. Do not do the same work twice under one key. While you still work ' +
      'on it, answer with 409 and `Retry-After`. An `a2a` agent that returns a task is asked for that task instead.',
  },
  resolveAgents: {
    tag: 'Agents (legacy)',
    summary: 'Find agents',
    description: 'Finds agents by keywords, best match first.',
  },
  previewIntent: {
    tag: 'Agents (legacy)',
    summary: 'Preview an intent',
    description: 'Returns the intent that `POST /resolve` would find, without the agents.',
  },
  createGrant: {
    tag: 'Agents (legacy)',
    summary: 'Create a grant',
    description:
      'Allows a caller to invoke one agent. Your account can use the grant, and the account that has registered an agent ' +
      'under the id `callerId` before, if there is one.',
  },
  getGrant: {
    tag: 'Agents (legacy)',
    summary: 'Get a grant',
    description: 'Returns a grant that your account created or can use.',
  },
  revokeGrant: {
    tag: 'Agents (legacy)',
    summary: 'Revoke a grant',
    description:
      'Revokes a grant. Invocations in progress continue. Revoking it again changes nothing.',
  },
  invokeAgent: {
    tag: 'Agents (legacy)',
    summary: 'Invoke an agent',
    description:
      'Calls an agent under a grant, which counts as used even if the agent fails. Agents of other protocols than `http`, ' +
      '`mcp` and `a2a` are refused and use no grant. The status is 200 when it has ended ' +
      'within two seconds, otherwise 202: get the invocation later to see how it ended.',
  },
  getInvocation: {
    tag: 'Agents (legacy)',
    summary: 'Get an invocation',
    description: 'Returns an invocation that your account made.',
  },
  getInvocationReceipt: {
    tag: 'Agents (legacy)',
    summary: 'Get the receipt of an invocation',
    description: 'Returns the signed receipt of an invocation that has ended.',
  },
} as const satisfies Record<string, Operation>;
