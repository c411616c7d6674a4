/** The `webhooks` of the OpenAPI document: what is sent for each type of event. */
import { EVENT_TYPES, type EventType } from '../../domain/events.ts';
import { EVENT_DATA } from '../../schemas/events.ts';
import { componentOf } from './components.ts';
import { exampleEvent } from './event-examples.ts';

export const EVENT_MEANINGS: Readonly<Record<EventType, string>> = {
  'balance.low': 'A charge or hold left less than your threshold',
  'balance.exhausted': 'The balance is used up, or too low for a charge or hold',
  'budget.threshold_reached': 'A budget has used 80% or 100% of a limit',
  'top_up.pending': 'A top-up waits for its payment',
  'top_up.completed':
    'A top-up was credited, or its whole amount is available again after a refund failed or a dispute was won',
  'top_up.expired': 'A top-up was not paid in time, was canceled, or is no longer needed',
  'top_up.failed': 'A payment failed',
  'top_up.partially_refunded': 'Part of a top-up was refunded',
  'top_up.refunded': 'All of a top-up was refunded',
  'top_up.disputed': 'The payment of a top-up is disputed, and its money is on hold',
  'top_up.charged_back': 'A dispute was lost, and the bank took the payment of a top-up back',
  'refund.requested': 'A refund of a top-up was requested',
  'refund.made': 'A refund of a top-up was made',
  'refund.failed': 'A refund of a top-up failed, and its money is back in the balance',
  'dispute.open': 'A dispute was opened',
  'dispute.lost': 'A dispute was lost',
  'dispute.won': 'A dispute was won',
  'warning.open': 'A bank warned of fraud, and the money of a top-up is on hold',
  'warning.won': 'A fraud warning has ended, and the money is no longer on hold',
  'charge.refunded': 'A developer refunded a charge to you',
  'hold.expired': 'A hold that you placed expired before you captured all of it',
  'lease.expired':
    'A lease that you took expired, and the money that was left went back to the consumer',
  'key.created': 'A key was created',
  'key.rolled': 'A key was rolled, and the old key stops working at `expiresAt`',
  'key.revoked': 'A key was revoked',
  'tool.price_changed': 'The price of one of your tools was changed',
  'webhook_endpoint.disabled': 'Another webhook endpoint of the account was disabled',
  'webhook_endpoint.test': 'You sent a test event',
};

const header = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
});
const HEADERS = [
  header('webhook-id', 'The id of the event, the same for each attempt.'),
  header('webhook-timestamp', 'When this attempt was made, in seconds since 1970.'),
  header('webhook-signature', '`v1,` and a signature, once for each secret, with spaces between.'),
];

export function webhooks(): Readonly<Record<EventType, unknown>> {
  return Object.fromEntries(
    EVENT_TYPES.map((type) => [type, { post: operationOf(type) }]),
  ) as Record<EventType, unknown>;
}

function operationOf(type: EventType) {
  const data = EVENT_DATA[type];
  return {
    operationId: type,
    tags: ['Events'],
    summary: EVENT_MEANINGS[type],
    description:
      'Signed as [Standard Webhooks](https://www.standardwebhooks.com) specifies. It may arrive more than once, ' +
      'with the same `webhook-id`, and before or after other events.',
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['type', 'timestamp', 'data'],
            properties: {
              type: { type: 'string', const: type },
              timestamp: { type: 'string', format: 'date-time', description: 'When it happened.' },
              data: componentOf(data),
            },
          },
          example: exampleEvent(type),
        },
      },
    },
    responses: {
      '2XX': { description: 'Received.' },
      '410': { description: 'Asks for no more events: the endpoint is disabled.' },
      default: { description: 'Not received: it is sent again.' },
    },
  };
}
