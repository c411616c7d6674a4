/** The Stripe dashboard that belongs to our keys. */
import type { StripeConfig } from '../config.ts';
import { isLiveKey } from './webhook.ts';

/** Null if another server replaces Stripe. */
export function dashboardUrlOf({ secretKey, apiBase }: StripeConfig): string | null {
  if (apiBase !== undefined) return null;
  return `https://dashboard.stripe.com${isLiveKey(secretKey) ? '' : '/test'}`;
}
