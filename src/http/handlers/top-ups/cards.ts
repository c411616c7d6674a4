/** The saved cards, for the signed-in owner alone: a key can neither see nor change them. */
import { CONSENT_TERMS } from '../../../domain/consent-terms.ts';
import { ApiError } from '../../../domain/errors.ts';
import type { CardsReply, CardSetupReply } from '../../../schemas/cards.ts';
import { chooseCard } from '../../../store/top-ups/auto-top-ups.ts';
import {
  findChosenCard,
  findProcessorCustomer,
  forgetCard,
} from '../../../store/top-ups/processor-customers.ts';
import { readConsent } from '../../../store/top-ups/monthly-ceiling.ts';
import {
  cardToCharge,
  findCard,
  listCards,
  openCardSetup,
  removeCard,
  shownCard,
} from '../../../stripe/cards.ts';
import { withCustomer } from '../../../stripe/customer.ts';
import { isCustomerMissing, mayHaveTakenEffect } from '../../../stripe/errors.ts';
import { afterCommit } from '../../answer-errors.ts';
import { authenticateAgain } from '../../authenticate.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { noSuch } from '../../look-ups.ts';
import type { Api } from '../../services.ts';

export async function getCards(
  api: Api,
  { caller }: Pick<Request, 'caller'>,
): Promise<Reply<CardsReply>> {
  const { accountId } = caller;
  // While Stripe hangs, the account's other reads do not wait.
  return api.shares.oneByOne.run(`cards-${accountId}`, 1, async () => {
    await authenticateAgain(api.database, caller, 'consumer');
    const customerId = await findProcessorCustomer(api.database, accountId);
    if (customerId === null) return { status: 200, body: { state: 'known', cards: [] } };
    return listed(api, customerId, await findChosenCard(api.database, accountId));
  });
}

/** Asks Stripe, which alone knows the cards. Never fails, so that it can follow a change. */
async function listed(
  api: Api,
  customerId: string,
  chosenId: string | null,
): Promise<Reply<CardsReply>> {
  try {
    const cards = await listCards(api.stripe, customerId);
    const charged = cardToCharge(cards, chosenId);
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

/**
 * The next top-ups charge this card, whichever is saved later. After failures of another one, they do not
 * wait any longer.
 */
export async function postCardChoice(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<CardsReply>> {
  const { customerId, cardId, state } = await findOwn(api, caller.accountId, params['id'] ?? '');
  if (state !== 'saved') throw noSuch('card');
  await chooseCard(api.database, caller, cardId);
  return listed(api, customerId, cardId);
}

/**
 * A payment that has started continues; no other one charges the card. Removing it again, after a lost reply,
 * has the same result.
 */
export async function postCardRemoval(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<CardsReply>> {
  const { accountId } = caller;
  const { customerId, cardId, state } = await findOwn(api, accountId, params['id'] ?? '');
  if (state === 'saved') {
    await atProcessor(() => removeCard(api.stripe, cardId).catch(orUnknown));
  }
  const chosenId = await afterCommit(() =>
    api.database.transaction(async (tx) => {
      await forgetCard(tx, accountId, cardId);
      return findChosenCard(tx, accountId);
    }),
  );
  return listed(api, customerId, chosenId);
}

function orUnknown(error: unknown): never {
  if (!mayHaveTakenEffect(error)) throw error;
  throw new ApiError(
    'outcome_unknown',
    'The payment processor did not answer, so the card may have been removed. Remove it again to be sure.',
    {},
    error,
  );
}

/**
 * Opens a page that saves a card without paying. The page shows the terms, which the owner must have accepted
 * before.
 */
export async function postCardSetup(
  api: Api,
  { caller }: Request,
): Promise<Reply<CardSetupReply, 201>> {
  const { ceilingMicros } = await readConsent(api.database, caller.consumerId);
  if (ceilingMicros === null) {
    throw new ApiError('consent_required', 'Allow payments from your saved card first.');
  }
  const { database, stripe } = api;
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

interface OwnCard {
  readonly customerId: string;
  readonly cardId: string;
  readonly state: 'saved' | 'removed';
}

/** Throws 404 unless the card is saved for this account, or was and is nobody's now. */
async function findOwn(api: Api, accountId: string, cardId: string): Promise<OwnCard> {
  const customerId = await findProcessorCustomer(api.database, accountId);
  if (customerId === null || !CARD_ID.test(cardId)) throw noSuch('card');
  const found = await atProcessor(() => findCard(api.stripe, customerId, cardId));
  if (found !== null) return { customerId, cardId, state: found };
  // The processor has forgotten it, for example in another of its accounts.
  if ((await findChosenCard(api.database, accountId)) !== cardId) throw noSuch('card');
  return { customerId, cardId, state: 'removed' };
}

const CARD_ID = /^pm_\w{1,250}$/;

async function atProcessor<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(
      'service_unavailable',
      'The payment processor cannot be reached. Nothing was changed. Try again shortly.',
      { retryAfterSeconds: 5 },
      error,
    );
  }
}
