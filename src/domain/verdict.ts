/** The state of a top-up's payment, as `src/stripe/verdict.ts` reads it from Stripe's objects. */
import type { Micros } from './money.ts';
import type { TopUpFailure } from './top-up.ts';

export interface SeenPayment {
  readonly paymentIntentId: string;
  /** With tax. */
  readonly paidMicros: Micros;
  readonly taxMicros: Micros;
  readonly invoiceId?: string | undefined;
  /** Refunded or disputed since, fully or in part: the credit has that read. */
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
