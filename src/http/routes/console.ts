/** The rows of the table of routes that only a person can ask for, signed in to the console: owners and operators. */
import {
  AuditLogReply,
  OperatorAuditLogQuery,
  OperatorAuditLogReply,
} from '../../schemas/audit-log.ts';
import { cardParams, CardSetupReply, CardsReply } from '../../schemas/cards.ts';
import { AutoTopUpBody, ConsentBody, ConsentReply } from '../../schemas/consent.ts';
import {
  KeyBody,
  KeyReply,
  KeysReply,
  NewKeyReply,
  RevokeBody,
  RollBody,
} from '../../schemas/keys.ts';
import { AccountKeysBody, AccountKeysReply, SessionReply } from '../../schemas/keys.ts';
import { AccountReply, AccountsQuery, AccountsReply } from '../../schemas/operators.ts';
import { AdjustmentBody, AdjustmentReply, MovementsReply } from '../../schemas/operators.ts';
import { OperatorChargesReply, OperatorHoldsReply } from '../../schemas/operators.ts';
import { OperatorStatusReply, OperatorTopUpsReply } from '../../schemas/operators.ts';
import { TopUpRefundBody, TopUpRefundReply } from '../../schemas/operators.ts';
import { Id, PageQuery } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getAccountKeys, patchAccountKeys } from '../handlers/accounts/account-keys.ts';
import { getKeys, getSession, postKey } from '../handlers/accounts/keys.ts';
import { postKeyRevocation, postKeyRoll } from '../handlers/accounts/keys.ts';
import { getAuditLog, getOperatorAuditLog } from '../handlers/audit/audit-log.ts';
import {
  getAccount,
  getAccounts,
  getChargesOfAccount,
  getHoldsOfAccount,
  getMovements,
  getTopUpsOfAccount,
} from '../handlers/operators/accounts.ts';
import { postAdjustment, postTopUpRefund } from '../handlers/operators/actions.ts';
import { getOperatorStatus } from '../handlers/operators/status.ts';
import {
  getCards,
  postCardChoice,
  postCardRemoval,
  postCardSetup,
} from '../handlers/top-ups/cards.ts';
import {
  getConsent,
  postAutoTopUp,
  postAutoTopUpOff,
  postConsent,
  postConsentWithdrawal,
} from '../handlers/top-ups/consent.ts';
import { get } from '../read-endpoints.ts';
import { act, patch, post } from '../write-endpoints.ts';

const accountParams = { id: Id('account', 'The id of the account.') };
const keyParams = { id: Id('key', 'The id of the key.') };
const topUpParams = { id: Id('topUp', 'The id of the top-up.') };

export const CONSOLE_ENDPOINTS: readonly Endpoint[] = [
  // The owner, signed in to the console
  get('/v1/session', {
    operation: 'getSession',
    role: 'session',
    replies: { 200: SessionReply },
    handle: getSession,
  }),
  get('/v1/audit-log', {
    operation: 'listAuditEntries',
    role: 'session',
    query: PageQuery,
    replies: { 200: AuditLogReply },
    handle: getAuditLog,
  }),
  get('/v1/cards', {
    operation: 'listCards',
    share: 'none',
    role: 'session',
    replies: { 200: CardsReply },
    handle: getCards,
  }),
  act('/v1/cards/setup', {
    operation: 'setUpCard',
    role: 'session',
    replies: { 201: CardSetupReply },
    errors: ['consent_required'],
    handle: postCardSetup,
  }),
  act('/v1/cards/:id/choose', {
    operation: 'chooseCard',
    role: 'session',
    params: cardParams,
    replies: { 200: CardsReply },
    errors: ['not_found'],
    handle: postCardChoice,
  }),
  act('/v1/cards/:id/remove', {
    operation: 'removeCard',
    role: 'session',
    params: cardParams,
    replies: { 200: CardsReply },
    errors: ['not_found'],
    handle: postCardRemoval,
  }),
  get('/v1/consent', {
    operation: 'getConsent',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: getConsent,
  }),
  post('/v1/consent', {
    operation: 'giveConsent',
    role: 'session',
    body: ConsentBody,
    replies: { 200: ConsentReply },
    errors: ['invalid_amount'],
    handle: postConsent,
  }),
  act('/v1/consent/withdraw', {
    operation: 'withdrawConsent',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: postConsentWithdrawal,
  }),
  post('/v1/auto-top-up', {
    operation: 'setAutoTopUp',
    role: 'session',
    body: AutoTopUpBody,
    replies: { 200: ConsentReply },
    errors: ['invalid_amount', 'consent_required'],
    handle: postAutoTopUp,
  }),
  act('/v1/auto-top-up/off', {
    operation: 'turnAutoTopUpOff',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: postAutoTopUpOff,
  }),
  get('/v1/account-keys', {
    operation: 'getAccountKeys',
    role: 'session',
    replies: { 200: AccountKeysReply },
    handle: getAccountKeys,
  }),
  patch('/v1/account-keys', {
    operation: 'updateAccountKeys',
    role: 'session',
    body: AccountKeysBody,
    replies: { 200: AccountKeysReply },
    errors: ['invalid_amount'],
    handle: patchAccountKeys,
  }),
  get('/v1/keys', {
    operation: 'listKeys',
    role: 'session',
    replies: { 200: KeysReply },
    handle: getKeys,
  }),
  post('/v1/keys', {
    operation: 'createKey',
    role: 'session',
    body: KeyBody,
    replies: { 201: NewKeyReply },
    isIdempotent: true,
    handle: postKey,
  }),
  post('/v1/keys/:id/roll', {
    operation: 'rollKey',
    role: 'payer',
    params: keyParams,
    body: RollBody,
    replies: { 201: NewKeyReply },
    errors: ['not_found', 'budget_closed'],
    isIdempotent: true,
    handle: postKeyRoll,
  }),
  post('/v1/keys/:id/revoke', {
    operation: 'revokeKey',
    role: 'payer',
    params: keyParams,
    body: RevokeBody,
    isBodyOptional: true,
    replies: { 200: KeyReply },
    errors: ['not_found'],
    handle: postKeyRevocation,
  }),
  // Operators
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
