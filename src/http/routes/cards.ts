/** The rows of the table of routes for saved cards, and for the consent and the automatic top-ups that use them. */
import { cardParams, CardSetupReply, CardsReply } from '../../schemas/cards.ts';
import { AutoTopUpBody, ConsentBody, ConsentReply } from '../../schemas/consent.ts';
import type { Endpoint } from '../endpoint.ts';
import {
  getCards,
  postCardChoice,
  postCardRemoval,
  postCardSetup,
} from '../handlers/top-ups/cards.ts';
import {
  getConsent,
  postAutoTopUp,
  postAutoTopUpOff,
  postConsent,
  postConsentWithdrawal,
} from '../handlers/top-ups/consent.ts';
import { get } from '../read-endpoints.ts';
import { act, post } from '../write-endpoints.ts';

export const CARD_ENDPOINTS: readonly Endpoint[] = [
  get('/v1/cards', {
    operation: 'listCards',
    share: 'none',
    role: 'session',
    replies: { 200: CardsReply },
    handle: getCards,
  }),
  act('/v1/cards/setup', {
    operation: 'setUpCard',
    role: 'session',
    replies: { 201: CardSetupReply },
    errors: ['consent_required'],
    handle: postCardSetup,
  }),
  act('/v1/cards/:id/choose', {
    operation: 'chooseCard',
    role: 'session',
    params: cardParams,
    replies: { 200: CardsReply },
    errors: ['not_found'],
    handle: postCardChoice,
  }),
  act('/v1/cards/:id/remove', {
    operation: 'removeCard',
    role: 'session',
    params: cardParams,
    replies: { 200: CardsReply },
    errors: ['not_found'],
    handle: postCardRemoval,
  }),
  get('/v1/consent', {
    operation: 'getConsent',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: getConsent,
  }),
  post('/v1/consent', {
    operation: 'giveConsent',
    role: 'session',
    body: ConsentBody,
    replies: { 200: ConsentReply },
    errors: ['invalid_amount'],
    handle: postConsent,
  }),
  act('/v1/consent/withdraw', {
    operation: 'withdrawConsent',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: postConsentWithdrawal,
  }),
  post('/v1/auto-top-up', {
    operation: 'setAutoTopUp',
    role: 'session',
    body: AutoTopUpBody,
    replies: { 200: ConsentReply },
    errors: ['invalid_amount', 'consent_required'],
    handle: postAutoTopUp,
  }),
  act('/v1/auto-top-up/off', {
    operation: 'turnAutoTopUpOff',
    role: 'session',
    replies: { 200: ConsentReply },
    handle: postAutoTopUpOff,
  }),
];
