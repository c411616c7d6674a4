/** The state of a top-up's payment, as `src/stripe/verdict.ts` reads it from Stripe's objects. */
import type { Micros } from './money.ts';
import type { TopUpFailure } from './top-up.ts';

export interface SeenPayment {
  readonly paymentIntentId: string;
  /** With tax. */
  readonly paidMicros: Micros;
  readonly taxMicros: Micros;
  readonly invoiceId?: string | undefined;
  /** It has since been refunded or disputed, fully or in part. The workflow then reads the reversals. */
  readonly hasReversals: boolean;
}

export type Verdict =
  | ({ readonly kind: 'paid' } & SeenPayment)
  /** Not paid yet; it still can be. */
  | {
      readonly kind: 'open';
      /** The bank wants the cardholder to confirm the payment. */
      readonly needsPayer?: boolean;
      /** The payer has authorized it at a checkout, which is closed. The bank takes days. */
      readonly isUnderWay?: boolean;
    }
  | { readonly kind: 'expired' }
  | {
      readonly kind: 'failed';
      readonly failure: TopUpFailure;
      /** The saved card, if its bank will never accept it again. */
      readonly refusedCardId?: string;
    };
