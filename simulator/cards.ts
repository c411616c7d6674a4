/**
 * Stripe's documented test cards and bank accounts, and the outcome of a payment with each. The card field of the
 * hosted page takes these numbers (spaces allowed); the API takes the `pm_card_...` ids.
 *
 *   4242 4242 4242 4242   pays (pm_card_visa); 5555 5555 5555 4444 too (pm_card_mastercard)
 *   4000 0000 0000 0002   declined (pm_card_chargeDeclined); likewise 9995, 0069, 0127, 0119, 9987, 9979
 *   4000 0000 0000 0341   can be saved, every later charge is declined (pm_card_chargeCustomerFail)
 *   4000 0025 0000 3155   needs authentication, unless it was set up for payments without the customer
 *   4000 0027 6000 3184   needs authentication for each payment
 *   4000 0000 0000 0259   pays, and the payment is disputed (pm_card_createDispute); 2685 and 1976 too, the last by an inquiry
 *   4000 0000 0000 7726   pays; its refunds are pending first (pm_card_pendingRefund); those of 5126 fail later
 *   4000 0000 0000 5423   pays, and its bank warns of fraud (pm_card_createIssuerFraudRecord)
 *   000123456789          a US bank account: completes the session unpaid, the debit succeeds later
 *   000111111113          the same, and the debit fails: account closed; 000222222227: insufficient funds
 */

export interface Decline {
  readonly code: string;
  readonly declineCode: string | undefined;
  readonly message: string;
  /** The bank's advice about another attempt. */
  readonly adviceCode?: 'do_not_try_again' | undefined;
}

interface Card {
  readonly type: 'card';
  readonly number: string;
  readonly brand: string;
  /** `always`: refused when saved and when it pays; `charges`: refused only when it pays; `never`: accepted. */
  readonly declines: 'always' | 'charges' | 'never';
  readonly decline: Decline | undefined;
  /** What its bank does to a payment or a refund, a little later. */
  readonly later: Later | undefined;
  /** When the customer must confirm a payment at the bank. The hosted page counts as confirmed. */
  readonly authentication: 'never' | 'unless_set_up' | 'always';
}

export type Later =
  | { readonly kind: 'dispute'; readonly reason: string; readonly isInquiry: boolean }
  | { readonly kind: 'fraud_warning' }
  | { readonly kind: 'pending_refund' }
  | { readonly kind: 'failing_refund' };

interface BankAccount {
  readonly type: 'us_bank_account';
  readonly number: string;
  /** Why the debit fails, days later on Stripe. */
  readonly failure: Decline | undefined;
}

export type Source = Card | BankAccount;

const DECLINED = 'Your card was declined.';

const GENERIC = decline('card_declined', 'generic_decline', DECLINED);
const INSUFFICIENT = decline(
  'card_declined',
  'insufficient_funds',
  'Your card has insufficient funds.',
);
export const EXPIRED = decline('expired_card', 'expired_card', 'Your card has expired.');
const WRONG_CVC = decline(
  'incorrect_cvc',
  'incorrect_cvc',
  "Your card's security code is incorrect.",
);
const PROCESSING = decline(
  'processing_error',
  'processing_error',
  'An error occurred while processing your card. Try again in a little bit.',
);
const LOST = decline('card_declined', 'lost_card', DECLINED, 'do_not_try_again');
const STOLEN = decline('card_declined', 'stolen_card', DECLINED, 'do_not_try_again');
const NOT_A_TEST_CARD = decline(
  'card_declined',
  'test_mode_live_card',
  'Your card was declined. Your request was in test mode, but used a non test card.',
);
const WRONG_NUMBER = decline('incorrect_number', undefined, 'Your card number is incorrect.');

export const AUTHENTICATION_REQUIRED = decline(
  'authentication_required',
  'authentication_required',
  'Your card was declined. This transaction requires authentication.',
);

/** Declined permanently. */
export const LOST_CARD = '4000000000009987';

const CARDS: readonly Card[] = [
  card('4242424242424242', 'visa'),
  card('5555555555554444', 'mastercard'),
  card('4000000000000002', 'visa', 'always', GENERIC),
  card('4000000000009995', 'visa', 'always', INSUFFICIENT),
  card('4000000000000069', 'visa', 'always', EXPIRED),
  card('4000000000000127', 'visa', 'always', WRONG_CVC),
  card('4000000000000119', 'visa', 'always', PROCESSING),
  card(LOST_CARD, 'visa', 'always', LOST),
  card('4000000000009979', 'visa', 'always', STOLEN),
  card('4000000000000341', 'visa', 'charges', GENERIC),
  { ...card('4000000000000259', 'visa'), later: disputed('fraudulent') },
  { ...card('4000000000002685', 'visa'), later: disputed('product_not_received') },
  { ...card('4000000000001976', 'visa'), later: disputed('fraudulent', true) },
  { ...card('4000000000007726', 'visa'), later: { kind: 'pending_refund' } },
  { ...card('4000000000005126', 'visa'), later: { kind: 'failing_refund' } },
  { ...card('4000000000005423', 'visa'), later: { kind: 'fraud_warning' } },
  { ...card('4000002500003155', 'visa'), authentication: 'unless_set_up' },
  { ...card('4000002760003184', 'visa'), authentication: 'always' },
];

const BANK_ACCOUNTS: readonly BankAccount[] = [
  bankAccount('000123456789', undefined),
  bankAccount(
    '000111111113',
    decline('account_closed', undefined, "The customer's bank account has been closed."),
  ),
  bankAccount(
    '000222222227',
    decline('insufficient_funds', undefined, "The customer's account has insufficient funds."),
  ),
];

/** Stripe's ready-made payment methods; each use makes a new one. */
const TEST_IDS = new Map([
  ['pm_card_visa', '4242424242424242'],
  ['pm_card_mastercard', '5555555555554444'],
  ['pm_card_chargeDeclined', '4000000000000002'],
  ['pm_card_visa_chargeDeclined', '4000000000000002'],
  ['pm_card_chargeDeclinedInsufficientFunds', '4000000000009995'],
  ['pm_card_visa_chargeDeclinedInsufficientFunds', '4000000000009995'],
  ['pm_card_chargeDeclinedExpiredCard', '4000000000000069'],
  ['pm_card_chargeDeclinedIncorrectCvc', '4000000000000127'],
  ['pm_card_chargeDeclinedProcessingError', '4000000000000119'],
  ['pm_card_visa_chargeDeclinedLostCard', '4000000000009987'],
  ['pm_card_visa_chargeDeclinedStolenCard', '4000000000009979'],
  ['pm_card_chargeCustomerFail', '4000000000000341'],
  ['pm_card_createDispute', '4000000000000259'],
  ['pm_card_createDisputeProductNotReceived', '4000000000002685'],
  ['pm_card_createDisputeInquiry', '4000000000001976'],
  ['pm_card_createIssuerFraudRecord', '4000000000005423'],
  ['pm_card_pendingRefund', '4000000000007726'],
  ['pm_card_refundFail', '4000000000005126'],
  ['pm_card_authenticationRequiredOnSetup', '4000002500003155'],
  ['pm_card_authenticationRequired', '4000002760003184'],
]);

/** Maps `4242 4242…` to its test source. `undefined` for a number that is not a test number. */
export function findSource(typed: string): Source | undefined {
  const number = typed.replaceAll(/[\s-]/g, '');
  return [...CARDS, ...BANK_ACCOUNTS].find((source) => source.number === number);
}

/** Why a number that is not a test number is refused. No part of it is stored. */
export function refusalOf(typed: string): Decline {
  return isLuhn(typed.replaceAll(/[\s-]/g, '')) ? NOT_A_TEST_CARD : WRONG_NUMBER;
}

export function numberOfTestId(id: string): string | undefined {
  return TEST_IDS.get(id);
}

function isLuhn(number: string): boolean {
  if (!/^\d{12,19}$/.test(number)) return false;
  const sum = Array.from(number)
    .toReversed()
    .reduce((total, digit, index) => {
      const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return sum % 10 === 0;
}

function card(
  number: string,
  brand: string,
  declines: Card['declines'] = 'never',
  reason?: Decline,
): Card {
  return {
    type: 'card',
    number,
    brand,
    declines,
    decline: reason,
    later: undefined,
    authentication: 'never',
  };
}

function disputed(reason: string, isInquiry = false): Later {
  return { kind: 'dispute', reason, isInquiry };
}

function bankAccount(number: string, failure: Decline | undefined): BankAccount {
  return { type: 'us_bank_account', number, failure };
}

function decline(
  code: string,
  declineCode: string | undefined,
  message: string,
  adviceCode?: Decline['adviceCode'],
): Decline {
  return { code, declineCode, message, adviceCode };
}
