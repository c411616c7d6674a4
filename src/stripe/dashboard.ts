/** Where Stripe shows people what our keys see. */
import type { StripeConfig } from '../config.ts';
import { isLiveKey } from './webhook.ts';

/** Null when another server stands in for Stripe. */
export function dashboardUrlOf({ secretKey, apiBase }: StripeConfig): string | null {
  if (apiBase !== undefined) return null;
  return `https://dashboard.stripe.com${isLiveKey(secretKey) ? '' : '/test'}`;
}
