/** The state of a top-up's payment, as `src/stripe/verdict.ts` reads it from Stripe's objects. */
import type { Micros } from './money.ts';
import type { TopUpFailure } from './top-up.ts';

export type Verdict =
  | {
      readonly kind: 'paid';
      readonly paymentIntentId: string;
      readonly paidMicros: Micros;
      /** Refunded or disputed by now, in whole or in part. */
      readonly isReversed: boolean;
    }
  /** Neither paid nor certain never to be. */
  | { readonly kind: 'open' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'failed'; readonly failure: TopUpFailure };
