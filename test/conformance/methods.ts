/** The paths of Stripe's API, and the method of the `stripe` package that calls each: its file, and its name there. */

const METHODS: Readonly<Record<string, readonly [file: string, method: string]>> = {
  'POST /v1/customers': ['Customers', 'create'],
  'GET /v1/customers': ['Customers', 'list'],
  'GET /v1/customers/:id': ['Customers', 'retrieve'],
  'POST /v1/customers/:id': ['Customers', 'update'],
  'DELETE /v1/customers/:id': ['Customers', 'del'],
  'GET /v1/customers/:id/payment_methods': ['Customers', 'listPaymentMethods'],
  'GET /v1/payment_methods': ['PaymentMethods', 'list'],
  'GET /v1/payment_methods/:id': ['PaymentMethods', 'retrieve'],
  'POST /v1/payment_methods/:id/attach': ['PaymentMethods', 'attach'],
  'POST /v1/payment_methods/:id/detach': ['PaymentMethods', 'detach'],
  'POST /v1/checkout/sessions': ['Checkout/Sessions', 'create'],
  'GET /v1/checkout/sessions': ['Checkout/Sessions', 'list'],
  'GET /v1/checkout/sessions/:id': ['Checkout/Sessions', 'retrieve'],
  'POST /v1/checkout/sessions/:id/expire': ['Checkout/Sessions', 'expire'],
  'POST /v1/payment_intents': ['PaymentIntents', 'create'],
  'GET /v1/payment_intents': ['PaymentIntents', 'list'],
  'GET /v1/payment_intents/:id': ['PaymentIntents', 'retrieve'],
  'POST /v1/payment_intents/:id': ['PaymentIntents', 'update'],
  'POST /v1/payment_intents/:id/confirm': ['PaymentIntents', 'confirm'],
  'POST /v1/payment_intents/:id/cancel': ['PaymentIntents', 'cancel'],
  'GET /v1/charges': ['Charges', 'list'],
  'GET /v1/charges/:id': ['Charges', 'retrieve'],
  'GET /v1/balance_transactions': ['BalanceTransactions', 'list'],
  'GET /v1/balance_transactions/:id': ['BalanceTransactions', 'retrieve'],
  'POST /v1/refunds': ['Refunds', 'create'],
  'GET /v1/refunds': ['Refunds', 'list'],
  'GET /v1/refunds/:id': ['Refunds', 'retrieve'],
  'GET /v1/disputes': ['Disputes', 'list'],
  'GET /v1/disputes/:id': ['Disputes', 'retrieve'],
  'POST /v1/disputes/:id': ['Disputes', 'update'],
  'GET /v1/radar/early_fraud_warnings': ['Radar/EarlyFraudWarnings', 'list'],
  'GET /v1/radar/early_fraud_warnings/:id': ['Radar/EarlyFraudWarnings', 'retrieve'],
  'POST /v1/invoices': ['Invoices', 'create'],
  'GET /v1/invoices': ['Invoices', 'list'],
  'POST /v1/invoices/:id/add_lines': ['Invoices', 'addLines'],
  'POST /v1/invoices/:id/finalize': ['Invoices', 'finalizeInvoice'],
  'POST /v1/invoices/:id/attach_payment': ['Invoices', 'attachPayment'],
  'POST /v1/credit_notes': ['CreditNotes', 'create'],
  'GET /v1/credit_notes': ['CreditNotes', 'list'],
  'POST /v1/tax/calculations': ['Tax/Calculations', 'create'],
  'GET /v1/tax/calculations/:id': ['Tax/Calculations', 'retrieve'],
  'GET /v1/events': ['Events', 'list'],
  'GET /v1/events/:id': ['Events', 'retrieve'],
};

export interface Method {
  /** `GET /v1/customers/:id`. */
  readonly route: string;
  readonly file: string;
  /** `customers.retrieve`, as it is called on the client. */
  readonly call: string;
  readonly name: string;
}

const COMPILED = Object.entries(METHODS).map(([route, [file, name]]) => ({
  method: { route, file: `resources/${file}`, name, call: `${resourceOf(file)}.${name}` },
  pattern: new RegExp(`^${route.replace(':id', '[^/]+')}$`),
}));

export function findMethod(verb: string, path: string): Method | undefined {
  return COMPILED.find(({ pattern }) => pattern.test(`${verb} ${path}`))?.method;
}

/** `checkout.sessions` of `Checkout/Sessions`. */
function resourceOf(file: string): string {
  return file
    .split('/')
    .map((part) => part.charAt(0).toLowerCase() + part.slice(1))
    .join('.');
}
