/** An account's saved cards at Stripe: which one a top-up charges, and what their owner may do with them. */
import type { Stripe } from 'stripe';
import { isMissing } from './errors.ts';
import { idOf } from './verdict.ts';

/** The most cards that are looked at. Stripe lists them in pages of 100. */
const CARDS_MAX = 100;

export interface SavedCard {
  /** `pm_...` */
  readonly id: string;
  readonly brand: string;
  readonly lastFour: string;
  /** `2030-11`: the last month in which it is valid. */
  readonly expiresOn: string;
}

/** Newest first. */
export async function listCards(
  stripe: Stripe,
  customerId: string,
): Promise<readonly Stripe.PaymentMethod[]> {
  const which = { customer: customerId, type: 'card', limit: CARDS_MAX } as const;
  return (await stripe.paymentMethods.list(which)).data;
}

/** The card that its owner chose; the newest one if that card is not saved (any more). */
export function cardToCharge<T extends { readonly id: string }>(
  cards: readonly T[],
  chosenId: string | null,
): T | undefined {
  return cards.find(({ id }) => id === chosenId) ?? cards[0];
}

/** The card as its owner knows it. */
export function shownCard({ id, card }: Stripe.PaymentMethod): SavedCard {
  const month = String(card?.exp_month ?? 0).padStart(2, '0');
  return {
    id,
    brand: card?.brand ?? 'unknown',
    lastFour: card?.last4 ?? '',
    expiresOn: `${card?.exp_year ?? 0}-${month}`,
  };
}

/**
 * Whether this customer has the card. `removed`: nobody has it any more, or ever had; Stripe does not say whose it was.
 * Null: there is no such card, or somebody else has it.
 */
export async function findCard(
  stripe: Stripe,
  customerId: string,
  cardId: string,
): Promise<'saved' | 'removed' | null> {
  try {
    const { customer, type } = await stripe.paymentMethods.retrieve(cardId);
    if (type !== 'card') return null;
    if (customer === null) return 'removed';
    return idOf(customer) === customerId ? 'saved' : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

export async function removeCard(stripe: Stripe, cardId: string): Promise<void> {
  await stripe.paymentMethods.detach(cardId);
}

/** The URL of a hosted page that saves a card for top-ups without its owner, and takes no money. */
export async function openCardSetup(
  stripe: Stripe,
  customerId: string,
  { returnUrl, terms }: { readonly returnUrl: string; readonly terms: string },
): Promise<string> {
  const session = await stripe.checkout.sessions.create({
    mode: 'setup',
    customer: customerId,
    currency: 'usd',
    allowed_payment_method_types: ['card'],
    custom_text: { submit: { message: terms } },
    success_url: `${returnUrl}?card=saved`,
    cancel_url: returnUrl,
  });
  if (session.url === null) throw new Error(`${session.id} came without a URL`);
  return session.url;
}
