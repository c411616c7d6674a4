/** The rows of the table of routes for events: the webhook endpoints that get them, and when a balance is low. */
import { LowBalanceBody, LowBalanceReply } from '../../schemas/balance.ts';
import { Id, PageQuery } from '../../schemas/shapes.ts';
import { DeletedWebhookEndpointReply, DeliveriesQuery } from '../../schemas/webhook-endpoints.ts';
import { DeliveriesReply, DeliveryReply } from '../../schemas/webhook-endpoints.ts';
import { NewWebhookEndpointReply, RolledSecretReply } from '../../schemas/webhook-endpoints.ts';
import { RollSecretBody, WebhookEndpointBody } from '../../schemas/webhook-endpoints.ts';
import { WebhookEndpointChanges, WebhookEndpointReply } from '../../schemas/webhook-endpoints.ts';
import { WebhookEndpointsReply } from '../../schemas/webhook-endpoints.ts';
import type { Endpoint } from '../endpoint.ts';
import { getLowBalance, patchLowBalance } from '../handlers/balance/low-balance.ts';
import { getDeliveries, postRedelivery, postTestEvent } from '../handlers/events/deliveries.ts';
import {
  deleteEndpoint,
  getEndpoint,
  getEndpoints,
  patchEndpoint,
  postEndpoint,
  postSecretRoll,
} from '../handlers/events/webhook-endpoints.ts';
import { get } from '../read-endpoints.ts';
import { act, patch, post, remove } from '../write-endpoints.ts';

const endpointParams = { id: Id('webhookEndpoint', 'The id of the webhook endpoint.') };
const deliveryParams = { ...endpointParams, event: Id('event', 'The id of the event.') };

/** Not with a consumer key: those are handed to tool servers, which must not read what happens to an account. */
export const EVENT_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/webhook-endpoints', {
    operation: 'createWebhookEndpoint',
    role: 'developer',
    body: WebhookEndpointBody,
    replies: { 201: NewWebhookEndpointReply },
    isIdempotent: true,
    handle: postEndpoint,
  }),
  get('/v1/webhook-endpoints', {
    operation: 'listWebhookEndpoints',
    role: 'developer',
    query: PageQuery,
    replies: { 200: WebhookEndpointsReply },
    handle: getEndpoints,
  }),
  get('/v1/webhook-endpoints/:id', {
    operation: 'getWebhookEndpoint',
    role: 'developer',
    params: endpointParams,
    replies: { 200: WebhookEndpointReply },
    errors: ['not_found'],
    handle: getEndpoint,
  }),
  patch('/v1/webhook-endpoints/:id', {
    operation: 'updateWebhookEndpoint',
    role: 'developer',
    params: endpointParams,
    body: WebhookEndpointChanges,
    replies: { 200: WebhookEndpointReply },
    errors: ['not_found'],
    handle: patchEndpoint,
  }),
  remove('/v1/webhook-endpoints/:id', {
    operation: 'deleteWebhookEndpoint',
    role: 'developer',
    params: endpointParams,
    replies: { 200: DeletedWebhookEndpointReply },
    errors: ['not_found'],
    handle: deleteEndpoint,
  }),
  post('/v1/webhook-endpoints/:id/roll-secret', {
    operation: 'rollWebhookSecret',
    role: 'developer',
    params: endpointParams,
    body: RollSecretBody,
    replies: { 200: RolledSecretReply },
    errors: ['not_found'],
    isIdempotent: true,
    handle: postSecretRoll,
  }),
  act('/v1/webhook-endpoints/:id/test', {
    operation: 'testWebhookEndpoint',
    role: 'developer',
    params: endpointParams,
    replies: { 201: DeliveryReply },
    errors: ['not_found', 'webhook_endpoint_disabled'],
    handle: postTestEvent,
  }),
  get('/v1/webhook-endpoints/:id/deliveries', {
    operation: 'listDeliveries',
    role: 'developer',
    params: endpointParams,
    query: DeliveriesQuery,
    replies: { 200: DeliveriesReply },
    errors: ['not_found'],
    handle: getDeliveries,
  }),
  act('/v1/webhook-endpoints/:id/deliveries/:event/redeliver', {
    operation: 'redeliverEvent',
    role: 'developer',
    params: deliveryParams,
    replies: { 200: DeliveryReply },
    errors: ['not_found', 'webhook_endpoint_disabled'],
    handle: postRedelivery,
  }),
  get('/v1/low-balance', {
    operation: 'getLowBalance',
    role: 'developer',
    replies: { 200: LowBalanceReply },
    handle: getLowBalance,
  }),
  patch('/v1/low-balance', {
    operation: 'updateLowBalance',
    role: 'developer',
    body: LowBalanceBody,
    replies: { 200: LowBalanceReply },
    errors: ['invalid_amount'],
    handle: patchLowBalance,
  }),
];
