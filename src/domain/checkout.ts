/** The hosted checkout: its smallest amount, and when it expires. */
import { asMicros, MICROS_PER_DOLLAR } from './money.ts';

/** $5.00 (specification section 8). */
export const CHECKOUT_MICROS_MIN = asMicros(5 * MICROS_PER_DOLLAR);

/** How long it can be paid, `CHECKOUT_MINUTES`: Stripe allows 30 minutes to 24 hours. */
export const CHECKOUT_MINUTES_MIN = 30;
export const CHECKOUT_MINUTES_MAX = 24 * 60;
