/** Balance transactions: one for each movement of money, with Stripe's fee for it. */
import type Stripe from 'stripe';
import { ok } from '../http/answers.ts';
import type { Context, Handler } from '../context.ts';
import { noSuch } from '../http/errors.ts';
import { newId } from '../ids.ts';
import { listPage } from '../http/lists.ts';

/** 2.9 % and 30 cents: Stripe's price for a card in the United States. */
const FEE_RATE = 0.029;
const FEE_FIXED_CENTS = 30;
/** Stripe's fee for a dispute in the United States, even when it is won. */
export const DISPUTE_FEE_CENTS = 1_500;

export function chargeFee(amountCents: number): number {
  return Math.round(amountCents * FEE_RATE) + FEE_FIXED_CENTS;
}

export interface Movement {
  readonly type: Extract<
    Stripe.BalanceTransaction.Type,
    'charge' | 'refund' | 'refund_failure' | 'adjustment'
  >;
  readonly category: 'charge' | 'refund' | 'refund_failure' | 'dispute' | 'dispute_reversal';
  /** Cents. Negative for outgoing money. */
  readonly amount: number;
  readonly fee: number;
  readonly source: string;
}

export function move(context: Context, movement: Movement): Stripe.BalanceTransaction {
  const { amount, fee } = movement;
  const description = 'Stripe processing fees';
  const transaction: Stripe.BalanceTransaction = {
    id: newId('txn'),
    object: 'balance_transaction',
    amount,
    available_on: context.now,
    balance_type: 'payments',
    created: context.now,
    currency: 'usd',
    description: null,
    exchange_rate: null,
    fee,
    fee_details:
      fee === 0
        ? []
        : [{ amount: fee, application: null, currency: 'usd', description, type: 'stripe_fee' }],
    net: amount - fee,
    reporting_category: movement.category,
    source: movement.source,
    status: 'available',
    type: movement.type,
  };
  context.store.insert(transaction);
  return transaction;
}

export const retrieveBalanceTransaction: Handler = ({ store }, _params, id) => {
  const transaction = store.find('balance_transaction', id);
  if (!transaction) throw noSuch('balance transaction', id);
  return ok(transaction);
};

export const listBalanceTransactions: Handler = (context, params) => {
  const where = { type: params.string('type'), source: params.string('source') };
  return ok(listPage(context, params, 'balance_transaction', '/v1/balance_transactions', where));
};
