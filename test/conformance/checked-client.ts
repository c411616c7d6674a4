/** A client of the `stripe` package that compares every request and answer with the package's own declarations. */
import { Stripe } from 'stripe';
import * as calls from '../../src/stripe/calls.ts';
import { isMissing } from '../../src/stripe/errors.ts';
import { Shapes } from './shapes.ts';

export interface CheckedClient {
  readonly stripe: Stripe;
  readonly shapes: Shapes;
  /** The customers, sessions and payment intents that were made. */
  readonly made: ReadonlyMap<string, string>;
  /** What differed from the declarations so far. */
  readonly differences: readonly string[];
}

/** `host`, `port` and `protocol` of the simulator; Stripe's without them. */
export function checkedClient(
  secretKey: string,
  address: Pick<Stripe.StripeConfig, 'host' | 'port' | 'protocol'> = {},
): CheckedClient {
  const shapes = new Shapes();
  const differences: string[] = [];
  const made = new Map<string, string>();
  const fetchAndCompare: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const copy = response.clone();
    const url = new URL(input instanceof Request ? input.url : input);
    const verb = init?.method ?? 'GET';
    const body = await copy.text();
    if (verb === 'POST') noteMade(made, body);
    differences.push(
      ...shapes.differences({
        verb,
        path: url.pathname,
        form:
          verb === 'GET' ? url.search.slice(1) : typeof init?.body === 'string' ? init.body : '',
        status: copy.status,
        body,
      }),
    );
    return response;
  };
  const stripe = new Stripe(secretKey, {
    ...address,
    apiVersion: calls.API_VERSION,
    httpClient: Stripe.createFetchHttpClient(fetchAndCompare),
    maxNetworkRetries: 0,
    timeout: 60_000,
    telemetry: false,
  });
  return { stripe, shapes, made, differences };
}

/** A declined payment is in the error. */
function noteMade(made: Map<string, string>, body: string): void {
  interface Made {
    readonly id?: string;
    readonly object?: string;
  }
  const answer = JSON.parse(body) as Made & { readonly error?: { readonly payment_intent?: Made } };
  const { id, object } = answer.error?.payment_intent ?? answer;
  if (id !== undefined && object !== undefined) made.set(id, object);
}

/**
 * Removes what the client made, as far as Stripe can: customers with their cards. Sessions expire and intents are
 * canceled, unless they were paid or belong to a session. Payments, refunds, disputes and events stay.
 */
export async function removeMade({ stripe, made }: CheckedClient): Promise<void> {
  for (const [id, object] of made) {
    if (object === 'checkout.session') await calls.expireSession(stripe, id);
    if (object === 'payment_intent') await calls.cancelIntent(stripe, id);
  }
  for (const [id, object] of made) {
    if (object !== 'customer') continue;
    await stripe.customers.del(id).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }
}
