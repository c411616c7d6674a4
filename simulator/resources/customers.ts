/** Customers: the owners of saved cards. */
import type Stripe from 'stripe';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { noSuch } from '../http/errors.ts';
import { record } from '../events.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';
import type { Params } from '../http/params.ts';

/** `fill` sets the known details of the customer. */
export function newCustomer(
  context: Context,
  fill: (customer: Stripe.Customer) => void,
): Stripe.Customer {
  const customer: Stripe.Customer = {
    id: newId('cus'),
    object: 'customer',
    address: null,
    balance: 0,
    created: context.now,
    currency: null,
    default_source: null,
    delinquent: false,
    description: null,
    discount: null,
    email: null,
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: false,
    metadata: {},
    name: null,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  };
  fill(customer);
  context.store.insert(customer);
  record(context, 'customer.created', customer);
  return customer;
}

export function getCustomer(context: Context, id: string, param?: string): Stripe.Customer {
  const customer = context.store.find('customer', id);
  if (!customer || isDeleted(context, id)) throw noSuch('customer', id, param);
  return customer;
}

/** A deleted customer is shown by its id only, and cannot be used. */
function isDeleted(context: Context, id: string): boolean {
  return context.store.notesOf(id)['deleted'] === true;
}

export const deleteCustomer: Handler = (context, _params, id) => {
  const customer = getCustomer(context, id);
  for (const method of context.store.all('payment_method', { customer: id })) {
    context.store.update({ ...method, customer: null });
  }
  context.store.note(id, { deleted: true });
  record(context, 'customer.deleted', customer);
  return ok({ id, object: 'customer', deleted: true });
};

export const createCustomer: Handler = (context, params) =>
  ok(newCustomer(context, (customer) => assign(customer, params)));

export const retrieveCustomer: Handler = (context, _params, id) =>
  ok(isDeleted(context, id) ? { id, object: 'customer', deleted: true } : getCustomer(context, id));

export const updateCustomer: Handler = (context, params, id) => {
  const customer = getCustomer(context, id);
  assign(customer, params);
  const settings = params.object('invoice_settings');
  const method = settings?.string('default_payment_method');
  if (method !== undefined) {
    if (context.store.find('payment_method', method)?.customer !== id) {
      throw noSuch('PaymentMethod', method, 'invoice_settings[default_payment_method]');
    }
    customer.invoice_settings.default_payment_method = method;
  }
  context.store.update(customer);
  record(context, 'customer.updated', customer);
  return ok(customer);
};

export const listCustomers: Handler = (context, params) =>
  ok(listPage(context, params, 'customer', '/v1/customers', { email: params.string('email') }));

function assign(customer: Stripe.Customer, params: Params): void {
  customer.email = params.string('email') ?? customer.email;
  customer.name = params.string('name') ?? customer.name ?? null;
  customer.phone = params.string('phone') ?? customer.phone ?? null;
  customer.description = params.string('description') ?? customer.description;
  customer.metadata = params.metadata(customer.metadata);
  const address = params.object('address');
  if (!address) return;
  const part = (name: string) => address.string(name) ?? null;
  customer.address = {
    city: part('city'),
    country: part('country'),
    line1: part('line1'),
    line2: part('line2'),
    postal_code: part('postal_code'),
    state: part('state'),
  };
}
