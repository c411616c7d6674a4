/** The saved cards, for the signed-in owner alone: a key can neither see nor change them. */
import { CONSENT_TERMS } from '../../../domain/consent-terms.ts';
import { ApiError } from '../../../domain/errors.ts';
import type { CardsReply, CardSetupReply } from '../../../schemas/cards.ts';
import {
  chooseCard,
  findChosenCard,
  findProcessorCustomer,
  forgetCard,
} from '../../../store/top-ups/processor-customers.ts';
import { readConsent } from '../../../store/top-ups/monthly-ceiling.ts';
import {
  cardToCharge,
  hasCard,
  listCards,
  openCardSetup,
  removeCard,
  shownCard,
} from '../../../stripe/cards.ts';
import { withCustomer } from '../../../stripe/customer.ts';
import { isCustomerMissing } from '../../../stripe/errors.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';

/** Asks Stripe, which alone knows the cards. */
export async function getCards(
  api: Api,
  { caller }: Pick<Request, 'caller'>,
): Promise<Reply<CardsReply>> {
  const customerId = await findProcessorCustomer(api.database, caller.accountId);
  if (customerId === null) return { status: 200, body: { state: 'known', cards: [] } };
  try {
    const cards = await listCards(api.webhooks.stripe, customerId);
    const charged = cardToCharge(cards, await findChosenCard(api.database, caller.accountId));
    return {
      status: 200,
      body: {
        state: 'known',
        cards: cards.map((card) => {
          const { id, brand, lastFour, expiresOn } = shownCard(card);
          return { id, brand, lastFour, expiresOn, isCharged: card === charged };
        }),
      },
    };
  } catch (error) {
    if (isCustomerMissing(error)) return { status: 200, body: { state: 'known', cards: [] } };
    api.log.warn({ err: error }, 'could not read the saved cards');
    return { status: 200, body: { state: 'unknown', cards: [] } };
  }
}

/** The next top-ups charge this card, whichever is saved later. */
export async function postCardChoice(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<CardsReply>> {
  const cardId = await ownCard(api, caller.accountId, params['id'] ?? '');
  await chooseCard(api.database, caller.accountId, cardId);
  return getCards(api, { caller });
}

/** A payment that has started continues; no other one charges the card. */
export async function postCardRemoval(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<CardsReply>> {
  const cardId = await ownCard(api, caller.accountId, params['id'] ?? '');
  await atProcessor(() => removeCard(api.webhooks.stripe, cardId));
  await forgetCard(api.database, caller.accountId, cardId);
  return getCards(api, { caller });
}

/** Opens a page that saves a card without paying. The page shows the terms, which the owner must have accepted before. */
export async function postCardSetup(
  api: Api,
  { caller }: Request,
): Promise<Reply<CardSetupReply, 201>> {
  const { ceiling } = await readConsent(api.database, caller.consumerId);
  if (ceiling === null) {
    throw new ApiError('consent_required', 'Allow payments from your saved card first.');
  }
  const { database } = api;
  const { stripe } = api.webhooks;
  const url = await atProcessor(() =>
    withCustomer({ database, stripe }, caller.accountId, (customerId) =>
      openCardSetup(stripe, customerId, {
        returnUrl: `${api.config.consoleUrl}/console/balance`,
        terms: CONSENT_TERMS.text,
      }),
    ),
  );
  return { status: 201, body: { url } };
}

/** Throws 404 unless the card is saved for this account. */
async function ownCard(api: Api, accountId: string, cardId: string): Promise<string> {
  const customerId = await findProcessorCustomer(api.database, accountId);
  const isOwn =
    customerId !== null &&
    CARD_ID.test(cardId) &&
    (await atProcessor(() => hasCard(api.webhooks.stripe, customerId, cardId)));
  if (!isOwn) throw new ApiError('not_found', 'There is no such card.');
  return cardId;
}

const CARD_ID = /^pm_\w{1,250}$/;

async function atProcessor<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw new ApiError(
      'service_unavailable',
      'The payment processor cannot be reached. Nothing was changed. Try again shortly.',
      { retryAfterSeconds: 5 },
      error,
    );
  }
}
