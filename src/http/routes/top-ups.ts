/** The rows of the table of routes for top-ups. Those for the saved cards are in cards.ts. */
import { Id, PageQuery } from '../../schemas/shapes.ts';
import {
  CheckoutBody,
  CheckoutReply,
  TopUpBody,
  TopUpQuoteQuery,
  TopUpQuoteReply,
  TopUpRecord,
  TopUpReply,
  TopUpsReply,
} from '../../schemas/top-ups.ts';
import type { Endpoint } from '../endpoint.ts';
import { getTopUpQuote } from '../handlers/top-ups/quote.ts';
import {
  DIRECT_TOP_UP_ERRORS,
  getTopUp,
  listTopUps,
  postCheckout,
  postTopUp,
} from '../handlers/top-ups/top-ups.ts';
import { get } from '../read-endpoints.ts';
import { post } from '../write-endpoints.ts';

const topUpParams = { id: Id('topUp', 'The id of the top-up.') };

export const TOP_UP_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/top-up', {
    operation: 'createTopUp',
    share: 'none',
    role: 'consumer',
    body: TopUpBody,
    replies: { 201: TopUpReply, 202: TopUpReply },
    errors: DIRECT_TOP_UP_ERRORS,
    isIdempotent: true,
    handle: postTopUp,
  }),
  get('/v1/top-up', {
    operation: 'listTopUps',
    role: 'consumer',
    query: PageQuery,
    replies: { 200: TopUpsReply },
    handle: listTopUps,
  }),
  get('/v1/top-up/quote', {
    operation: 'quoteTopUp',
    share: 'none',
    role: 'consumer',
    query: TopUpQuoteQuery,
    replies: { 200: TopUpQuoteReply },
    errors: ['invalid_amount'],
    handle: getTopUpQuote,
  }),
  get('/v1/top-up/:id', {
    operation: 'getTopUp',
    role: 'consumer',
    params: topUpParams,
    replies: { 200: TopUpRecord },
    errors: ['not_found'],
    handle: getTopUp,
  }),
  post('/v1/checkout', {
    operation: 'createCheckout',
    share: 'none',
    role: 'consumer',
    body: CheckoutBody,
    replies: { 201: CheckoutReply, 202: CheckoutReply },
    errors: ['invalid_amount', 'payment_failed', 'consent_required'],
    isIdempotent: true,
    handle: postCheckout,
  }),
];
