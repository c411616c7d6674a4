/**
 * Early fraud warnings: the bank suspects fraud in a payment. One is actionable until the payment is disputed
 * or refunded.
 */
import type Stripe from 'stripe';
import type { Context, Handler } from '../context.ts';
import { record } from '../events.ts';
import { ok } from '../http/answers.ts';
import { noSuch, refused } from '../http/errors.ts';
import { listPage } from '../http/lists.ts';
import { newId } from '../ids.ts';
import { succeededChargeOf } from './charges.ts';
import { getIntent } from './payment-intents.ts';

const KIND = 'radar.early_fraud_warning';

export function warn(context: Context, paymentIntent: string): Stripe.Radar.EarlyFraudWarning {
  const charge = succeededChargeOf(context, getIntent(context, paymentIntent));
  if (!charge) throw refused(`${paymentIntent} has no successful charge to warn of.`);
  const warning: Stripe.Radar.EarlyFraudWarning = {
    id: newId('issfr'),
    object: KIND,
    actionable: !charge.refunded && !charge.disputed,
    charge: charge.id,
    created: context.now,
    fraud_type: 'made_with_stolen_card',
    livemode: false,
    payment_intent: paymentIntent,
  };
  context.store.insert(warning);
  record(context, `${KIND}.created`, warning);
  return warning;
}

/** After a dispute or a refund in full, nothing can be done about it any more. */
export function endWarnings(context: Context, charge: Stripe.Charge): void {
  if (!charge.refunded && !charge.disputed) return;
  for (const warning of context.store.all(KIND, { charge: charge.id })) {
    if (!warning.actionable) continue;
    context.store.update({ ...warning, actionable: false });
    record(context, `${KIND}.updated`, { ...warning, actionable: false });
  }
}

export const retrieveFraudWarning: Handler = ({ store }, _params, id) => {
  const warning = store.find(KIND, id);
  if (!warning) throw noSuch('early fraud warning', id);
  return ok(warning);
};

export const listFraudWarnings: Handler = (context, params) => {
  const where = {
    charge: params.string('charge'),
    payment_intent: params.string('payment_intent'),
  };
  return ok(listPage(context, params, KIND, '/v1/radar/early_fraud_warnings', where));
};
