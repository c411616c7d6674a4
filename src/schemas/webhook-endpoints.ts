/** Schemas of webhook endpoints, their secrets and the log of their deliveries. */
import { Type, type Static } from 'typebox';
import { EVENT_TYPES } from '../domain/events.ts';
import { ANSWER_CHARACTERS_MAX, DELIVERY_STATUSES } from '../domain/webhook-delivery.ts';
import {
  DISABLED_REASONS,
  SECRET_OVERLAP_SECONDS,
  SECRET_OVERLAP_SECONDS_MAX,
  WEBHOOK_ENDPOINT_STATUSES,
  WEBHOOK_URL_MAX,
} from '../domain/webhook-endpoint.ts';
import {
  Closed,
  Count,
  Id,
  OrNull,
  pageMarks,
  pageParameters,
  PlainText,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const Url = Type.String({
  ...PlainText(WEBHOOK_URL_MAX, 'https://example.com/farebox'),
  description: 'Where to send events: an https URL on a public address.',
});
const EventTypeName = Word(EVENT_TYPES, 'A type of event.');
const types = Type.Union(
  [Type.Array(EventTypeName, { minItems: 1, uniqueItems: true }), Type.Null()],
  { description: 'The types of events to send. Null: all.', examples: [['top_up.completed']] },
);
const Description = PlainText(200, 'Billing of the shop');

export const WebhookEndpointBody = Closed({
  url: Url,
  types: Type.Optional(types),
  description: Type.Optional(Description),
});
export type WebhookEndpointBody = Static<typeof WebhookEndpointBody>;

/** Omitted members are not changed. */
export const WebhookEndpointChanges = Closed({
  url: Type.Optional(Url),
  types: Type.Optional(types),
  description: Type.Optional(Description),
  enabled: Type.Optional(
    Type.Boolean({
      description:
        'True sends new events from now on. False sends none, and drops waiting deliveries.',
      examples: [true],
    }),
  ),
});
export type WebhookEndpointChanges = Static<typeof WebhookEndpointChanges>;

const id = Id('webhookEndpoint', 'The id of the endpoint.');
const secret = Text(
  'The signing secret. Only this response has it, and the response to a retry with the same Idempotency-Key.',
  'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
);
const previousSecretExpiresAt = Type.Union([TimeOf('When the old secret stops.'), Type.Null()], {
  description: 'Until then, the previous secret signs too. Null: only one secret signs.',
  examples: [null],
});

const endpointFields = {
  id,
  url: Url,
  types,
  description: Text('What its owner calls it.', 'Billing of the shop'),
  status: Word(WEBHOOK_ENDPOINT_STATUSES, 'Whether events are sent.'),
  disabledReason: Type.Union([Word(DISABLED_REASONS, 'Why.'), Type.Null()], {
    description:
      'Why it is disabled: by its `owner`, because it was `failing` for five days, or because it responded with 410 (`gone`).',
    examples: [null],
  }),
  failingSince: Type.Union([TimeOf('Since when attempts fail.'), Type.Null()], {
    description:
      'Since when attempts fail. Null: the last one succeeded, none was made at this URL, or no event waits.',
    examples: [null],
  }),
  previousSecretExpiresAt,
  createdAt: Timestamp,
};

export const WebhookEndpointReply = Closed(endpointFields);
export type WebhookEndpointReply = Static<typeof WebhookEndpointReply>;

export const NewWebhookEndpointReply = Closed({ ...endpointFields, secret });
export type NewWebhookEndpointReply = Static<typeof NewWebhookEndpointReply>;

export const WebhookEndpointsReply = Closed({
  webhookEndpoints: Type.Array(WebhookEndpointReply),
  ...pageMarks,
});
export type WebhookEndpointsReply = Static<typeof WebhookEndpointsReply>;

export const DeletedWebhookEndpointReply = Closed({
  id,
  deleted: Type.Literal(true, { description: 'Always true.', examples: [true] }),
});
export type DeletedWebhookEndpointReply = Static<typeof DeletedWebhookEndpointReply>;

export const RollSecretBody = Closed({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: SECRET_OVERLAP_SECONDS_MAX,
      default: SECRET_OVERLAP_SECONDS,
      description: 'For how many seconds requests are signed with both secrets.',
      examples: [SECRET_OVERLAP_SECONDS],
    }),
  ),
});
export type RollSecretBody = Static<typeof RollSecretBody>;

export const RolledSecretReply = Closed({ id, secret, previousSecretExpiresAt });
export type RolledSecretReply = Static<typeof RolledSecretReply>;

export const DeliveryReply = Closed({
  eventId: Id('event', 'The id of the event: `webhook-id` in the request.'),
  status: Word(
    DELIVERY_STATUSES,
    '`waiting` for its next attempt, `delivered`, or `failed`: given up after five days, or dropped when the endpoint was disabled.',
  ),
  attempts: Count('How many attempts were made.', 1),
  payload: Closed({
    type: Text('The type of the event.', 'top_up.completed'),
    timestamp: TimeOf('When it happened.'),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description: 'As documented for the type.',
      examples: [{ id: 'tu_01a1fd6455e57aa3b31e95f51a48130e', status: 'completed' }],
    }),
  }),
  attemptedAt: OrNull(
    TimeOf('When the last attempt was made.'),
    'When the last attempt was made, or null.',
    '2026-11-21T09:16:13.900Z',
  ),
  nextAttemptAt: OrNull(
    TimeOf('When the next attempt is due.'),
    'When the next attempt is due, or null.',
    null,
  ),
  durationMs: OrNull(Type.Integer(), 'How many milliseconds the last attempt took, or null.', 87),
  responseStatus: OrNull(
    Type.Integer(),
    'The HTTP status of the last response. Null: there was none.',
    200,
  ),
  responseBody: OrNull(
    Type.String(),
    `The first ${ANSWER_CHARACTERS_MAX} characters of the last response, or null.`,
    'ok',
  ),
  failureReason: OrNull(Type.String(), 'Why the last attempt got no response, or null.', null),
});
export type DeliveryReply = Static<typeof DeliveryReply>;

export const DeliveriesQuery = Closed({
  ...pageParameters,
  status: Type.Optional(Word(DELIVERY_STATUSES, 'Only deliveries in this state.')),
});
export type DeliveriesQuery = Static<typeof DeliveriesQuery>;

export const DeliveriesReply = Closed({ deliveries: Type.Array(DeliveryReply), ...pageMarks });
export type DeliveriesReply = Static<typeof DeliveriesReply>;
