/** Every route of tenancy.spec.ts: who may call it, with what, and which object its path names. */
import { CONSENT_TERMS } from '../../src/domain/consent-terms.ts';
import type { Role } from '../../src/http/authenticate.ts';
import type { TestAccount } from '../support/accounts.ts';

interface Row {
  readonly role: Role;
  /** A valid body, so that only the key can be at fault. */
  readonly body?: (account: TestAccount) => object;
  /** The key that the route requires. */
  readonly query?: string;
  /** The object that the id or the cursor of the path names. */
  readonly names?: keyof Owned;
}

/** The owner's data, which a stranger must never see. */
export interface Owned {
  readonly charge: string;
  readonly hold: string;
  readonly lease: string;
  readonly topUp: string;
  readonly grant: string;
  readonly invocation: string;
  readonly tool: string;
  readonly key: string;
  readonly account: string;
  readonly budget: string;
  readonly spendKey: string;
  readonly approval: string;
  readonly webhookEndpoint: string;
}

const chargeBody = ({ consumerKey: apiKey }: TestAccount) => ({
  apiKey,
  tool: 'theirs',
  amount: 1,
});

export const approvalBody = ({ developerId }: TestAccount) => ({
  developerId,
  tool: 'owned tool',
  amount: 1_000,
  reason: 'an owned reason',
});

export const agentBody = {
  id: 'their-agent',
  name: 'Agent',
  protocol: 'http',
  endpoint: 'https://example.com',
};
export const grantBody = { callerId: 'owned caller', targetAgentId: agentBody.id, type: 'session' };
export const invocationBody = (grantId: string) => ({
  targetAgentId: agentBody.id,
  grantId,
  capability: 'owned capability',
  payload: {},
});

export const ROUTES: Readonly<Record<string, Row>> = {
  'POST /v1/charges': { role: 'developer', body: chargeBody },
  'POST /v1/charges/batch': {
    role: 'developer',
    body: (account) => ({ charges: [chargeBody(account)] }),
  },
  'GET /v1/charges': { role: 'developer', names: 'charge' },
  'GET /v1/charges.csv': { role: 'developer' },
  'GET /v1/charges/:id': { role: 'developer', names: 'charge' },
  'POST /v1/charges/:id/refund': { role: 'developer', body: () => ({}), names: 'charge' },
  'POST /v1/holds': { role: 'developer', body: chargeBody },
  'GET /v1/holds': { role: 'either', names: 'hold' },
  'GET /v1/holds/:id': { role: 'either', names: 'hold' },
  'POST /v1/holds/:id/capture': { role: 'developer', body: () => ({}), names: 'hold' },
  'POST /v1/holds/:id/extend': {
    role: 'developer',
    body: () => ({ expiresIn: 60 }),
    names: 'hold',
  },
  'POST /v1/holds/:id/release': { role: 'developer', names: 'hold' },
  'POST /v1/leases': {
    role: 'developer',
    body: ({ consumerKey: apiKey }) => ({
      apiKey,
      tools: [{ name: 'theirs', price: 1 }],
      amount: 1,
    }),
  },
  'GET /v1/leases': { role: 'either', names: 'lease' },
  'GET /v1/leases/:id': { role: 'either', names: 'lease' },
  'POST /v1/leases/:id/settle': {
    role: 'developer',
    body: () => ({ entries: [{ sequence: 1, tool: 'search', amount: 0.02 }] }),
    names: 'lease',
  },
  'POST /v1/leases/:id/renew': { role: 'developer', body: () => ({}), names: 'lease' },
  'POST /v1/leases/:id/release': { role: 'developer', names: 'lease' },
  'POST /v1/receipts/verify': { role: 'either', body: () => ({ receipt: 'none' }) },
  'POST /v1/receipts/public': { role: 'either', body: () => ({ receipt: 'none' }) },
  'GET /v1/receipts/keys': { role: 'developer' },
  'GET /v1/balance': { role: 'consumer' },
  'GET /v1/top-up/quote': { role: 'consumer', query: '?amount=5' },
  'GET /v1/usage': { role: 'consumer', names: 'charge' },
  'GET /v1/usage/daily': {
    role: 'consumer',
    query: `?from=${new Date().toISOString().slice(0, 10)}`,
  },
  'GET /v1/usage/:id': { role: 'consumer', names: 'charge' },
  'GET /v1/usage.csv': { role: 'consumer' },
  'POST /v1/top-up': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/top-up': { role: 'consumer', names: 'topUp' },
  'GET /v1/top-up/:id': { role: 'consumer', names: 'topUp' },
  'POST /v1/checkout': { role: 'consumer', body: () => ({ amount: 10 }) },
  'GET /v1/earnings': { role: 'developer' },
  'GET /v1/earnings/live': { role: 'developer' },
  'GET /v1/earnings.csv': { role: 'developer' },
  'GET /v1/statements/:month.csv': { role: 'either' },
  'GET /v1/statements/:month': { role: 'either' },
  'POST /v1/quote': { role: 'developer', body: () => ({ tool: 'owned tool', units: { call: 1 } }) },
  'POST /v1/tools': { role: 'developer', body: () => ({ name: 'new', price: 1 }) },
  'GET /v1/tools': { role: 'developer' },
  'GET /v1/tools/:id': { role: 'developer', names: 'tool' },
  'GET /v1/tools/:id/cards/:version': { role: 'developer', names: 'tool' },
  'PATCH /v1/tools/:id': { role: 'developer', body: () => ({ price: 1 }), names: 'tool' },
  'GET /v1/top-ups': { role: 'developer', names: 'topUp' },
  'GET /v1/refusals': { role: 'developer' },
  'GET /v1/developer': { role: 'developer' },
  'PATCH /v1/developer': { role: 'developer', body: () => ({ returnUrl: null }) },
  'GET /v1/low-balance': { role: 'developer' },
  'PATCH /v1/low-balance': { role: 'developer', body: () => ({ threshold: null }) },
  'POST /v1/webhook-endpoints': { role: 'developer', body: () => ({ url: 'https://example.com' }) },
  'GET /v1/webhook-endpoints': { role: 'developer' },
  'GET /v1/webhook-endpoints/:id': { role: 'developer', names: 'webhookEndpoint' },
  'PATCH /v1/webhook-endpoints/:id': {
    role: 'developer',
    body: () => ({ enabled: false }),
    names: 'webhookEndpoint',
  },
  'DELETE /v1/webhook-endpoints/:id': { role: 'developer', names: 'webhookEndpoint' },
  'POST /v1/webhook-endpoints/:id/roll-secret': {
    role: 'developer',
    body: () => ({}),
    names: 'webhookEndpoint',
  },
  'POST /v1/webhook-endpoints/:id/test': { role: 'developer', names: 'webhookEndpoint' },
  'GET /v1/webhook-endpoints/:id/deliveries': { role: 'developer', names: 'webhookEndpoint' },
  'POST /v1/webhook-endpoints/:id/deliveries/:event/redeliver': {
    role: 'developer',
    names: 'webhookEndpoint',
  },
  'GET /v1/session': { role: 'session' },
  'GET /v1/audit-log': { role: 'session' },
  'GET /v1/cards': { role: 'session' },
  'POST /v1/cards/setup': { role: 'session' },
  'POST /v1/cards/:id/choose': { role: 'session' },
  'POST /v1/cards/:id/remove': { role: 'session' },
  'GET /v1/consent': { role: 'session' },
  'POST /v1/consent': {
    role: 'session',
    body: () => ({ ceiling: 50, termsVersion: CONSENT_TERMS.version }),
  },
  'POST /v1/consent/withdraw': { role: 'session' },
  'POST /v1/auto-top-up': {
    role: 'session',
    body: () => ({ threshold: 5, amount: 10, ceiling: 50 }),
  },
  'POST /v1/auto-top-up/off': { role: 'session' },
  'GET /v1/account-keys': { role: 'session' },
  'PATCH /v1/account-keys': { role: 'session', body: () => ({ charge: 'open' }) },
  'GET /v1/keys': { role: 'session' },
  'POST /v1/keys': { role: 'session', body: () => ({ kind: 'consumer' }) },
  'POST /v1/keys/:id/roll': { role: 'payer', body: () => ({}), names: 'spendKey' },
  'POST /v1/keys/:id/revoke': { role: 'payer', names: 'spendKey' },
  'POST /v1/budgets': { role: 'payer', body: () => ({ name: 'new' }) },
  'GET /v1/budgets': { role: 'payer', names: 'budget' },
  'GET /v1/budgets/:id': { role: 'payer', names: 'budget' },
  'PATCH /v1/budgets/:id': { role: 'payer', body: () => ({ limit: 1 }), names: 'budget' },
  'POST /v1/budgets/:id/close': { role: 'payer', names: 'budget' },
  'POST /v1/budgets/:id/reopen': { role: 'session', names: 'budget' },
  'GET /v1/budgets/:id/usage': { role: 'payer', names: 'budget' },
  'GET /v1/budgets/:id/refusals': { role: 'payer', names: 'budget' },
  'GET /v1/budgets/:id/usage.csv': { role: 'payer', names: 'budget' },
  'POST /v1/budgets/:id/keys': { role: 'payer', body: () => ({}), names: 'budget' },
  'GET /v1/budgets/:id/keys': { role: 'payer', names: 'budget' },
  'POST /v1/approvals': { role: 'asker', body: approvalBody },
  'GET /v1/approvals': { role: 'payer', names: 'approval' },
  'GET /v1/approvals/:id': { role: 'asker', names: 'approval' },
  'POST /v1/approvals/:id/decide': {
    role: 'payer',
    body: () => ({ decision: 'deny' }),
    names: 'approval',
  },
  'GET /v1/operator/status': { role: 'operator' },
  'GET /v1/operator/audit-log': { role: 'operator' },
  'GET /v1/operator/accounts': { role: 'operator', query: '?query=nobody' },
  'GET /v1/operator/accounts/:id': { role: 'operator', names: 'account' },
  'GET /v1/operator/accounts/:id/movements': { role: 'operator', names: 'account' },
  'GET /v1/operator/accounts/:id/top-ups': { role: 'operator', names: 'account' },
  'GET /v1/operator/accounts/:id/charges': { role: 'operator', names: 'account' },
  'GET /v1/operator/accounts/:id/holds': { role: 'operator', names: 'account' },
  'GET /v1/operator/charges/:id': { role: 'operator', names: 'charge' },
  'POST /v1/operator/accounts/:id/adjustments': {
    role: 'operator',
    body: () => ({ amount: 5, reason: 'a test' }),
    names: 'account',
  },
  'POST /v1/operator/top-ups/:id/refund': {
    role: 'operator',
    body: () => ({ reason: 'a test' }),
    names: 'topUp',
  },
  'POST /register': {
    role: 'legacy',
    body: () => ({ id: 'agent', name: 'Agent', protocol: 'http', endpoint: 'https://example.com' }),
  },
  'POST /resolve': { role: 'legacy', body: () => ({ query: 'otters' }) },
  'POST /intent/preview': { role: 'legacy', body: () => ({ query: 'otters' }) },
  'POST /grant': { role: 'legacy', body: () => grantBody },
  'GET /grant/:id': { role: 'legacy', names: 'grant' },
  'POST /grant/:id/revoke': { role: 'legacy', names: 'grant' },
  'POST /invoke': { role: 'legacy', body: () => invocationBody(`gnt_${'0'.repeat(32)}`) },
  'GET /invoke/:id': { role: 'legacy', names: 'invocation' },
  'GET /receipts/:id': { role: 'legacy', names: 'invocation' },
};
