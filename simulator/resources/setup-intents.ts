/** Setup intents: cards saved for payments without their owner, by a session of mode `setup`, which takes no money. */
import type Stripe from 'stripe';
import type { Context } from '../context.ts';
import { record } from '../events.ts';
import { newId, randomText } from '../ids.ts';

export function newSetupIntent(
  context: Context,
  { customer, metadata }: Pick<Stripe.SetupIntent, 'customer' | 'metadata'>,
): Stripe.SetupIntent {
  const id = newId('seti');
  const intent: Stripe.SetupIntent = {
    id,
    object: 'setup_intent',
    allowed_payment_method_types: ['card'],
    application: null,
    automatic_payment_methods: null,
    cancellation_reason: null,
    client_secret: `${id}_secret_${randomText(24)}`,
    created: context.now,
    customer,
    description: null,
    excluded_payment_method_types: null,
    last_setup_error: null,
    latest_attempt: null,
    livemode: false,
    mandate: null,
    metadata,
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: null,
    payment_method_types: ['card'],
    single_use_mandate: null,
    status: 'requires_payment_method',
    usage: 'off_session',
  };
  context.store.insert(intent);
  record(context, 'setup_intent.created', intent);
  return intent;
}

export function setUp(
  context: Context,
  intent: Stripe.SetupIntent,
  method: Stripe.PaymentMethod,
): void {
  intent.status = 'succeeded';
  intent.payment_method = method.id;
  context.store.update(intent);
  record(context, 'setup_intent.succeeded', intent);
}

/** Whether the card was saved for payments without its owner, by a setup or by a payment that asked for it. */
export function isSetUp({ store }: Context, { id }: Stripe.PaymentMethod): boolean {
  const where = { payment_method: id, status: 'succeeded' };
  return (
    store.all('setup_intent', where).length > 0 ||
    store.all('payment_intent', where).some((intent) => usageOf(intent) === 'off_session')
  );
}

export function usageOf(intent: Stripe.PaymentIntent): string | null {
  return (
    intent.payment_method_options?.card?.setup_future_usage ?? intent.setup_future_usage ?? null
  );
}
