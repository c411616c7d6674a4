/** The log of what was sent to a webhook endpoint, tests of it, and sending an event again. */
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { payloadOf } from '../../../events/payload.ts';
import type {
  DeliveriesQuery,
  DeliveriesReply,
  DeliveryReply,
} from '../../../schemas/webhook-endpoints.ts';
import {
  listDeliveries,
  postTest,
  redeliver,
  type Delivery,
} from '../../../store/events/deliveries.ts';
import {
  findWebhookEndpoint,
  type WebhookEndpoint,
} from '../../../store/events/webhook-endpoints.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { known, whichOf } from './webhook-endpoints.ts';

/** Newest first. */
export async function getDeliveries(
  api: Api,
  { caller, params, query }: Request<undefined, DeliveriesQuery>,
): Promise<Reply<DeliveriesReply>> {
  const { id } = known(await findWebhookEndpoint(api.database, whichOf({ caller, params })));
  const { rows, ...marks } = await listPage(query, 'event', (page) =>
    listDeliveries(api.database, id, query.status, page),
  );
  return { status: 200, body: { deliveries: rows.map(wireDelivery), ...marks } };
}

export async function postTestEvent(
  api: Api,
  request: Request,
): Promise<Reply<DeliveryReply, 201>> {
  const endpoint = await getActive(api, request);
  const data = { id: wireId('webhookEndpoint', endpoint.id) };
  return { status: 201, body: wireDelivery(await postTest(api.database, endpoint, data)) };
}

export async function postRedelivery(api: Api, request: Request): Promise<Reply<DeliveryReply>> {
  const endpoint = await getActive(api, request);
  const eventId = uuidOf('event', request.params['event'] ?? '');
  const sent = eventId && (await redeliver(api.database, endpoint.id, eventId));
  if (!sent) throw new ApiError('not_found', 'The endpoint has no delivery of this event.');
  return { status: 200, body: wireDelivery(sent) };
}

async function getActive(api: Api, request: Request): Promise<WebhookEndpoint> {
  const endpoint = known(await findWebhookEndpoint(api.database, whichOf(request)));
  if (endpoint.status === 'active') return endpoint;
  throw new ApiError('webhook_endpoint_disabled', 'The endpoint is disabled. Enable it first.');
}

function wireDelivery(delivery: Delivery): DeliveryReply {
  return {
    eventId: wireId('event', delivery.id),
    status: delivery.status,
    attempts: delivery.attempts,
    payload: payloadOf(delivery),
    attemptedAt: delivery.attemptedAt,
    nextAttemptAt: delivery.nextAttemptAt,
    durationMs: delivery.durationMs,
    responseStatus: delivery.responseStatus,
    responseBody: delivery.responseBody,
    failureReason: delivery.error,
  };
}
