/** The rows of the table of routes for approvals. */
import { ApprovalBody, ApprovalReply } from '../../schemas/approvals.ts';
import { ApprovalsQuery, ApprovalsReply } from '../../schemas/approvals.ts';
import { DecisionBody, DecisionReply, WaitQuery } from '../../schemas/approvals.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getApproval, getApprovals } from '../handlers/approvals/approvals.ts';
import { postApproval } from '../handlers/approvals/ask-approval.ts';
import { postDecision } from '../handlers/approvals/decide-approval.ts';
import { DIRECT_TOP_UP_ERRORS } from '../handlers/top-ups/top-ups.ts';
import { get } from '../read-endpoints.ts';
import { post } from '../write-endpoints.ts';

const approvalParams = { id: Id('approval', 'The id of the approval.') };

export const APPROVAL_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/approvals', {
    operation: 'createApproval',
    role: 'asker',
    body: ApprovalBody,
    replies: { 200: ApprovalReply, 201: ApprovalReply },
    errors: [
      'invalid_amount',
      'not_found',
      'tool_not_allowed',
      'developer_not_allowed',
      'account_keys_closed',
      'mode_mismatch',
      'approval_not_needed',
      'too_many_approvals',
    ],
    handle: postApproval,
  }),
  get('/v1/approvals', {
    operation: 'listApprovals',
    role: 'payer',
    query: ApprovalsQuery,
    replies: { 200: ApprovalsReply },
    handle: getApprovals,
  }),
  get('/v1/approvals/:id', {
    operation: 'getApproval',
    role: 'asker',
    share: 'none',
    params: approvalParams,
    query: WaitQuery,
    replies: { 200: ApprovalReply },
    errors: ['not_found'],
    handle: getApproval,
  }),
  post('/v1/approvals/:id/decide', {
    operation: 'decideApproval',
    role: 'payer',
    params: approvalParams,
    body: DecisionBody,
    replies: { 200: DecisionReply },
    errors: [
      'not_found',
      'delegation_not_allowed',
      'invalid_amount',
      'approval_closed',
      'budget_closed',
      ...DIRECT_TOP_UP_ERRORS,
    ],
    isIdempotent: true,
    handle: postDecision,
  }),
];
