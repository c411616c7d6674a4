/** The part of Stripe's API that the simulator supports, one row for each route. */
import {
  listBalanceTransactions,
  retrieveBalanceTransaction,
} from '../resources/balance-transactions.ts';
import { listCharges, retrieveCharge } from '../resources/charges.ts';
import {
  createSession,
  expireSession,
  listSessions,
  retrieveSession,
} from '../resources/checkout-sessions.ts';
import type { Handler } from '../context.ts';
import {
  createCustomer,
  deleteCustomer,
  listCustomers,
  retrieveCustomer,
  updateCustomer,
} from '../resources/customers.ts';
import { listDisputes, retrieveDispute, updateDispute } from '../resources/disputes.ts';
import { listEvents, retrieveEvent } from '../events.ts';
import {
  cancelPaymentIntent,
  confirmPaymentIntent,
  createPaymentIntent,
  listPaymentIntents,
  retrievePaymentIntent,
  updatePaymentIntent,
} from '../resources/payment-intents.ts';
import {
  attachPaymentMethod,
  detachPaymentMethod,
  listCustomerPaymentMethods,
  listPaymentMethods,
  retrievePaymentMethod,
} from '../resources/payment-methods.ts';
import { listFraudWarnings, retrieveFraudWarning } from '../resources/fraud-warnings.ts';
import { createCreditNote, listCreditNotes } from '../resources/credit-notes.ts';
import {
  addLines,
  attachPayment,
  createInvoice,
  finalizeInvoice,
  listInvoices,
} from '../resources/invoices.ts';
import { createRefund, listRefunds, retrieveRefund } from '../resources/refunds.ts';
import { createCalculation, retrieveCalculation } from '../resources/tax.ts';

type Route = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, handler: Handler];

const ROUTES: readonly Route[] = [
  ['POST', '/v1/customers', createCustomer],
  ['GET', '/v1/customers', listCustomers],
  ['GET', '/v1/customers/:id', retrieveCustomer],
  ['POST', '/v1/customers/:id', updateCustomer],
  ['DELETE', '/v1/customers/:id', deleteCustomer],
  ['GET', '/v1/customers/:id/payment_methods', listCustomerPaymentMethods],
  ['GET', '/v1/payment_methods', listPaymentMethods],
  ['GET', '/v1/payment_methods/:id', retrievePaymentMethod],
  ['POST', '/v1/payment_methods/:id/attach', attachPaymentMethod],
  ['POST', '/v1/payment_methods/:id/detach', detachPaymentMethod],
  ['POST', '/v1/checkout/sessions', createSession],
  ['GET', '/v1/checkout/sessions', listSessions],
  ['GET', '/v1/checkout/sessions/:id', retrieveSession],
  ['POST', '/v1/checkout/sessions/:id/expire', expireSession],
  ['POST', '/v1/payment_intents', createPaymentIntent],
  ['GET', '/v1/payment_intents', listPaymentIntents],
  ['GET', '/v1/payment_intents/:id', retrievePaymentIntent],
  ['POST', '/v1/payment_intents/:id', updatePaymentIntent],
  ['POST', '/v1/payment_intents/:id/confirm', confirmPaymentIntent],
  ['POST', '/v1/payment_intents/:id/cancel', cancelPaymentIntent],
  ['GET', '/v1/charges', listCharges],
  ['GET', '/v1/charges/:id', retrieveCharge],
  ['GET', '/v1/balance_transactions', listBalanceTransactions],
  ['GET', '/v1/balance_transactions/:id', retrieveBalanceTransaction],
  ['POST', '/v1/refunds', createRefund],
  ['GET', '/v1/refunds', listRefunds],
  ['GET', '/v1/refunds/:id', retrieveRefund],
  ['GET', '/v1/disputes', listDisputes],
  ['GET', '/v1/disputes/:id', retrieveDispute],
  ['POST', '/v1/disputes/:id', updateDispute],
  ['GET', '/v1/radar/early_fraud_warnings', listFraudWarnings],
  ['GET', '/v1/radar/early_fraud_warnings/:id', retrieveFraudWarning],
  ['POST', '/v1/invoices', createInvoice],
  ['GET', '/v1/invoices', listInvoices],
  ['POST', '/v1/invoices/:id/add_lines', addLines],
  ['POST', '/v1/invoices/:id/finalize', finalizeInvoice],
  ['POST', '/v1/invoices/:id/attach_payment', attachPayment],
  ['POST', '/v1/credit_notes', createCreditNote],
  ['GET', '/v1/credit_notes', listCreditNotes],
  ['POST', '/v1/tax/calculations', createCalculation],
  ['GET', '/v1/tax/calculations/:id', retrieveCalculation],
  ['GET', '/v1/events', listEvents],
  ['GET', '/v1/events/:id', retrieveEvent],
];

/** `GET /v1/customers/:id`, for each route. */
export const ROUTE_NAMES = ROUTES.map(([method, path]) => `${method} ${path}`);

const COMPILED = ROUTES.map(([method, path, handler]) => ({
  method,
  handler,
  pattern: new RegExp(`^${path.replace(':id', '([^/]+)')}$`),
}));

export function findRoute(
  method: string,
  path: string,
): { handler: Handler; id: string } | undefined {
  for (const route of COMPILED) {
    const match = route.method === method ? route.pattern.exec(path) : null;
    if (match) return { handler: route.handler, id: match[1] ?? '' };
  }
  return undefined;
}
