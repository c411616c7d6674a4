/** Stripe's webhook events (specification section 6): stored durably, then acknowledged. */
import type { Middleware } from 'koa';
import { ApiError } from '../../../domain/errors.ts';
import { mayBeSignature, recordWebhook } from '../../../stripe/webhook.ts';
import type { Api } from '../../services.ts';
import { readBody } from '../../body.ts';
import { respondJson } from '../../respond.ts';

/** Stripe's largest events are some hundred kilobytes. */
const BODY_BYTES_MAX = 512 * 1024;

export function postStripeWebhook(api: Api): Middleware {
  return async (ctx) => {
    const signature = ctx.get('Stripe-Signature');
    if (!mayBeSignature(signature)) throw invalidSignature();
    const body = await readBody(ctx.req, BODY_BYTES_MAX);
    const result = await recordWebhook(api.stripeWebhook, body, signature);
    if (result.kind === 'invalid_signature') {
      throw invalidSignature();
    }
    if (result.kind === 'invalid_event') {
      throw new ApiError(
        'invalid_request',
        'The payload is not a Stripe event: JSON with an id and a type.',
      );
    }
    respondJson(ctx, { status: 200, body: { received: true } });
  };
}

function invalidSignature(): ApiError {
  return new ApiError(
    'invalid_signature',
    'The Stripe-Signature header does not match the payload.',
  );
}
