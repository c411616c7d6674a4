/** The rows of the table of routes that only an operator can ask for, signed in to the console. */
import { OperatorAuditLogQuery, OperatorAuditLogReply } from '../../schemas/audit-log.ts';
import {
  AccountReply,
  AccountsQuery,
  AccountsReply,
  AdjustmentBody,
  AdjustmentReply,
  MovementsReply,
  OperatorChargeReply,
  OperatorChargesReply,
  OperatorHoldsReply,
  OperatorStatusReply,
  OperatorTopUpsReply,
  TopUpRefundBody,
  TopUpRefundReply,
} from '../../schemas/operators.ts';
import { Id, PageQuery } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getOperatorAuditLog } from '../handlers/audit/audit-log.ts';
import {
  getAccount,
  getAccounts,
  getChargeOfAny,
  getChargesOfAccount,
  getHoldsOfAccount,
  getMovements,
  getTopUpsOfAccount,
} from '../handlers/operators/accounts.ts';
import { postAdjustment, postTopUpRefund } from '../handlers/operators/actions.ts';
import { getOperatorStatus } from '../handlers/operators/status.ts';
import { get } from '../read-endpoints.ts';
import { post } from '../write-endpoints.ts';

const topUpParams = { id: Id('topUp', 'The id of the top-up.') };
const chargeParams = { id: Id('charge', 'The id of the charge.') };
const accountParams = { id: Id('account', 'The id of the account.') };

export const OPERATOR_ENDPOINTS: readonly Endpoint[] = [
  get('/v1/operator/status', {
    operation: 'getOperatorStatus',
    role: 'operator',
    replies: { 200: OperatorStatusReply },
    handle: getOperatorStatus,
  }),
  get('/v1/operator/audit-log', {
    operation: 'listAllAuditEntries',
    role: 'operator',
    query: OperatorAuditLogQuery,
    replies: { 200: OperatorAuditLogReply },
    handle: getOperatorAuditLog,
  }),
  get('/v1/operator/accounts', {
    operation: 'findAccounts',
    role: 'operator',
    query: AccountsQuery,
    replies: { 200: AccountsReply },
    handle: getAccounts,
  }),
  get('/v1/operator/accounts/:id', {
    operation: 'getAccount',
    role: 'operator',
    params: accountParams,
    replies: { 200: AccountReply },
    errors: ['not_found'],
    handle: getAccount,
  }),
  get('/v1/operator/accounts/:id/movements', {
    operation: 'listMovements',
    role: 'operator',
    params: accountParams,
    query: PageQuery,
    replies: { 200: MovementsReply },
    errors: ['not_found'],
    handle: getMovements,
  }),
  get('/v1/operator/accounts/:id/top-ups', {
    operation: 'listTopUpsOfAccount',
    role: 'operator',
    params: accountParams,
    query: PageQuery,
    replies: { 200: OperatorTopUpsReply },
    errors: ['not_found'],
    handle: getTopUpsOfAccount,
  }),
  get('/v1/operator/accounts/:id/charges', {
    operation: 'listChargesOfAccount',
    role: 'operator',
    params: accountParams,
    query: PageQuery,
    replies: { 200: OperatorChargesReply },
    errors: ['not_found'],
    handle: getChargesOfAccount,
  }),
  get('/v1/operator/charges/:id', {
    operation: 'getChargeOfAny',
    role: 'operator',
    params: chargeParams,
    replies: { 200: OperatorChargeReply },
    errors: ['not_found'],
    handle: getChargeOfAny,
  }),
  get('/v1/operator/accounts/:id/holds', {
    operation: 'listHoldsOfAccount',
    role: 'operator',
    params: accountParams,
    query: PageQuery,
    replies: { 200: OperatorHoldsReply },
    errors: ['not_found'],
    handle: getHoldsOfAccount,
  }),
  post('/v1/operator/accounts/:id/adjustments', {
    operation: 'adjustBalance',
    role: 'operator',
    params: accountParams,
    body: AdjustmentBody,
    replies: { 201: AdjustmentReply },
    errors: ['not_found', 'invalid_amount', 'insufficient_balance'],
    isIdempotent: true,
    handle: postAdjustment,
  }),
  post('/v1/operator/top-ups/:id/refund', {
    operation: 'refundTopUp',
    role: 'operator',
    params: topUpParams,
    body: TopUpRefundBody,
    replies: { 201: TopUpRefundReply },
    errors: ['not_found', 'invalid_amount', 'top_up_not_refundable'],
    isIdempotent: true,
    handle: postTopUpRefund,
  }),
];
