/** Stripe's tax on top-ups: a hosted page calculates it; for payments without one, it is calculated here. */
import { Stripe } from 'stripe';
import { centsOf, microsOfCents, type Micros } from '../domain/money.ts';

export interface TaxSettings {
  /** Stripe's tax code of a balance; undefined: the one preset in Stripe's dashboard. */
  readonly code: string | undefined;
}

export interface TaxCalculation {
  readonly calculationId: string;
  readonly micros: Micros;
}

/**
 * For a checkout: the page asks for the address and shows the tax before it is paid; the invoice shows both. Without a
 * customer, Stripe makes one for the invoice, with the address of this payment.
 */
export function taxingOf(customerId: string | null): Partial<Stripe.Checkout.SessionCreateParams> {
  return {
    automatic_tax: { enabled: true },
    tax_id_collection: { enabled: true },
    ...(customerId !== null && { customer_update: { address: 'auto', name: 'auto' } }),
    invoice_creation: { enabled: true },
  };
}

/** Undefined: Stripe does not know the customer's address, which a checkout asks for. */
export async function calculateTax(
  stripe: Stripe,
  customerId: string,
  amountMicros: Micros,
  { code }: TaxSettings,
): Promise<TaxCalculation | undefined> {
  const amount = centsOf(amountMicros);
  try {
    const { id, tax_amount_exclusive: cents } = await stripe.tax.calculations.create({
      currency: 'usd',
      customer: customerId,
      line_items: [
        {
          amount,
          reference: 'balance',
          tax_behavior: 'exclusive',
          ...(code !== undefined && { tax_code: code }),
        },
      ],
    });
    if (id === null) throw new Error('Stripe returned a tax calculation without an id');
    return { calculationId: id, micros: microsOfCents(cents) };
  } catch (error) {
    if (isAddressMissing(error)) return undefined;
    throw error;
  }
}

const ADDRESS_CODES: ReadonlySet<string | undefined> = new Set([
  'customer_tax_location_invalid',
  'invalid_tax_location',
]);

function isAddressMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeInvalidRequestError && ADDRESS_CODES.has(error.code);
}
