/** Tax by the payer's address, as Stripe Tax calculates it: on a checkout page, or for a payment without a page. */
import type Stripe from 'stripe';
import type { Context, Handler } from '../context.ts';
import { ok } from '../http/answers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { newId } from '../ids.ts';
import { getCustomer } from './customers.ts';

/** Percent. An address that is not listed has no tax. */
const RATES: Readonly<Record<string, number>> = { 'US-NY': 8.875, 'US-CA': 7.25, DE: 19, GB: 20 };

const EXPIRES_AFTER_SECONDS = 90 * 24 * 60 * 60;

export function taxOf(cents: number, address: Stripe.Address): number {
  return Math.round((cents * rateOf(address)) / 100);
}

function rateOf({ country, state }: Stripe.Address): number {
  return RATES[`${country}-${state}`] ?? RATES[country ?? ''] ?? 0;
}

export function addressOf(country: string, state: string | null): Stripe.Address {
  return { city: null, country, line1: null, line2: null, postal_code: null, state };
}

export function addressOfCustomer(context: Context, customer: unknown): Stripe.Address | undefined {
  return context.store.follow('customer', customer)?.address ?? undefined;
}

export const createCalculation: Handler = (context, params) => {
  params.currency();
  const customer = getCustomer(context, params.required('customer'), 'customer');
  const amounts = params.list('line_items').map((item) => {
    item.ignore('quantity', 'tax_code');
    item.required('reference');
    if (item.oneOf('tax_behavior', ['exclusive', 'inclusive']) !== 'exclusive') {
      throw refused('The simulator knows tax_behavior exclusive only.');
    }
    return item.integer('amount', { min: 1 }) ?? 0;
  });
  const { address } = customer;
  if (!address) {
    throw refused(
      "We could not determine the customer's tax location based on the provided customer address.",
      'customer_tax_location_invalid',
      'customer_details[address]',
    );
  }
  const amount = amounts.reduce((sum, each) => sum + each, 0);
  const tax = taxOf(amount, address);
  const calculation: Stripe.Tax.Calculation & { id: string } = {
    id: newId('taxcalc'),
    object: 'tax.calculation',
    amount_total: amount + tax,
    currency: 'usd',
    customer: customer.id,
    customer_details: {
      address,
      address_source: 'billing',
      ip_address: null,
      tax_ids: [],
      taxability_override: 'none',
    },
    expires_at: context.now + EXPIRES_AFTER_SECONDS,
    livemode: false,
    ship_from_details: null,
    shipping_cost: null,
    tax_amount_exclusive: tax,
    tax_amount_inclusive: 0,
    tax_breakdown: breakdownOf(amount, tax, address),
    tax_date: context.now,
  };
  context.store.insert(calculation);
  return ok(calculation);
};

export const retrieveCalculation: Handler = (context, _params, id) => {
  const calculation = context.store.find('tax.calculation', id);
  if (!calculation) throw noSuch('tax calculation', id);
  return ok(calculation);
};

function breakdownOf(
  cents: number,
  tax: number,
  address: Stripe.Address,
): Stripe.Tax.Calculation.TaxBreakdown[] {
  const { country, state } = address;
  const rate = rateOf(address);
  const isTaxed = rate > 0;
  return [
    {
      amount: tax,
      inclusive: false,
      tax_rate_details: {
        country,
        flat_amount: null,
        percentage_decimal: String(rate),
        rate_type: isTaxed ? 'percentage' : null,
        state,
        tax_type: isTaxed ? (country === 'US' ? 'sales_tax' : 'vat') : null,
      },
      taxability_reason: isTaxed ? 'standard_rated' : 'not_collecting',
      taxable_amount: isTaxed ? cents : 0,
    },
  ];
}

/** An intent that names a calculation is for its total. */
export function checkCalculation(context: Context, id: string, cents: number): void {
  const calculation = context.store.find('tax.calculation', id);
  if (!calculation) throw noSuch('tax calculation', id, 'hooks[inputs][tax][calculation]');
  if (calculation.amount_total !== cents) {
    throw refused(`The amount must equal amount_total of ${id}, ${calculation.amount_total}.`);
  }
}
