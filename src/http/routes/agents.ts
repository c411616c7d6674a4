/**
 * The rows of the table of routes for agents: registered, found, granted and invoked (legacy, specification
 * section 4.4).
 */
import { AgentBody, AgentReply, IntentBody, IntentReply } from '../../schemas/agents.ts';
import { ResolveBody, ResolveReply } from '../../schemas/agents.ts';
import { GrantBody, GrantReply } from '../../schemas/grants.ts';
import {
  InvocationBody,
  InvocationReceiptReply,
  InvocationReply,
} from '../../schemas/invocations.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { postAgent, postIntentPreview, postResolve } from '../handlers/agents/agents.ts';
import { getGrant, postGrant, postGrantRevocation } from '../handlers/agents/grants.ts';
import { getInvocationReceipt } from '../handlers/agents/invocation-receipts.ts';
import {
  getInvocation,
  INVOCATION_BYTES_MAX,
  postInvocation,
} from '../handlers/agents/invocations.ts';
import { get } from '../read-endpoints.ts';
import { act, post } from '../write-endpoints.ts';

const grantParams = { id: Id('grant', 'The id of the grant.') };
const invocationParams = { id: Id('invocation', 'The id of the invocation.') };

export const AGENT_ENDPOINTS: readonly Endpoint[] = [
  post('/register', {
    operation: 'registerAgent',
    role: 'legacy',
    body: AgentBody,
    replies: { 201: AgentReply },
    errors: ['agent_exists'],
    handle: postAgent,
  }),
  post('/resolve', {
    operation: 'resolveAgents',
    role: 'legacy',
    body: ResolveBody,
    replies: { 200: ResolveReply },
    rate: 'none',
    reportsOutcome: true,
    handle: postResolve,
  }),
  post('/intent/preview', {
    operation: 'previewIntent',
    role: 'legacy',
    body: IntentBody,
    replies: { 200: IntentReply },
    rate: 'none',
    reportsOutcome: true,
    handle: postIntentPreview,
  }),
  post('/grant', {
    operation: 'createGrant',
    role: 'legacy',
    body: GrantBody,
    replies: { 201: GrantReply },
    errors: ['not_found'],
    isIdempotent: true,
    handle: postGrant,
  }),
  get('/grant/:id', {
    operation: 'getGrant',
    role: 'legacy',
    params: grantParams,
    replies: { 200: GrantReply },
    errors: ['not_found'],
    handle: getGrant,
  }),
  act('/grant/:id/revoke', {
    operation: 'revokeGrant',
    role: 'legacy',
    params: grantParams,
    replies: { 200: GrantReply },
    errors: ['not_found', 'grant_not_active'],
    handle: postGrantRevocation,
  }),
  post('/invoke', {
    operation: 'invokeAgent',
    share: 'none',
    rate: 'none',
    role: 'legacy',
    body: InvocationBody,
    bodyBytesMax: INVOCATION_BYTES_MAX,
    replies: { 200: InvocationReply, 202: InvocationReply },
    errors: ['not_found', 'grant_not_active'],
    isIdempotent: true,
    handle: postInvocation,
  }),
  get('/invoke/:id', {
    operation: 'getInvocation',
    role: 'legacy',
    params: invocationParams,
    replies: { 200: InvocationReply },
    errors: ['not_found'],
    handle: getInvocation,
  }),
  get('/receipts/:id', {
    operation: 'getInvocationReceipt',
    role: 'legacy',
    params: invocationParams,
    replies: { 200: InvocationReceiptReply },
    errors: ['not_found'],
    handle: getInvocationReceipt,
  }),
];
