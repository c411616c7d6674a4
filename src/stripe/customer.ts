/** The customer of an account at Stripe, made when it is first needed, and again if Stripe does not know it. */
import type { Stripe } from 'stripe';
import type { Database } from '../store/database.ts';
import {
  findProcessorCustomer,
  recordProcessorCustomer,
  replaceProcessorCustomer,
} from '../store/top-ups/processor-customers.ts';
import { createCustomer } from './calls.ts';
import { isCustomerMissing } from './errors.ts';

interface CustomerDeps {
  readonly database: Database;
  readonly stripe: Stripe;
}

/** Replaces the customer and calls again if the processor does not know it. Its saved cards are gone with it. */
export async function withCustomer<T>(
  deps: CustomerDeps,
  accountId: string,
  call: (customerId: string) => Promise<T>,
): Promise<T> {
  const customerId = await customerOf(deps, accountId);
  try {
    return await call(customerId);
  } catch (error) {
    if (!isCustomerMissing(error)) throw error;
    const { stripe, database } = deps;
    const created = await createCustomer(stripe, accountId, customerId);
    return call(await replaceProcessorCustomer(database, accountId, customerId, created));
  }
}

async function customerOf({ database, stripe }: CustomerDeps, accountId: string): Promise<string> {
  const known = await findProcessorCustomer(database, accountId);
  if (known !== null) return known;
  const created = await createCustomer(stripe, accountId);
  return recordProcessorCustomer(database, accountId, created);
}
