/** The prose of the API reference for events and the endpoints that they are sent to. */
import type { Operation } from '../operation.ts';

export const EVENT_OPERATIONS = {
  createWebhookEndpoint: {
    tag: 'Events',
    summary: 'Create a webhook endpoint',
    description:
      'Sends the events of the account to the URL from now on, signed as Standard Webhooks specifies, within a second ' +
      'of each. Farebox retries a failed delivery for five days. Only this response contains the `secret`, and the response to a retry with the same Idempotency-Key.',
  },
  listWebhookEndpoints: {
    tag: 'Events',
    summary: 'List webhook endpoints',
    description:
      "Returns a page of the account's webhook endpoints, oldest first, without their secrets.",
  },
  getWebhookEndpoint: {
    tag: 'Events',
    summary: 'Get a webhook endpoint',
    description: 'Returns a webhook endpoint, without its secret.',
  },
  updateWebhookEndpoint: {
    tag: 'Events',
    summary: 'Change a webhook endpoint',
    description:
      'Changes the fields that you send. `enabled` false stops sending and drops waiting deliveries; true starts again. ' +
      'Farebox never sends events that happen while the endpoint is disabled.',
  },
  deleteWebhookEndpoint: {
    tag: 'Events',
    summary: 'Delete a webhook endpoint',
    description: 'Stops sending events to the endpoint, and deletes it and its log.',
  },
  rollWebhookSecret: {
    tag: 'Events',
    summary: 'Roll the secret of a webhook endpoint',
    description:
      'Returns a new secret, once. Until `previousSecretExpiresAt`, each request is signed with both, so a receiver can ' +
      'switch over without missing an event.',
  },
  testWebhookEndpoint: {
    tag: 'Events',
    summary: 'Send a test event',
    description: 'Sends an event of the type `webhook_endpoint.test` to this endpoint alone.',
  },
  listDeliveries: {
    tag: 'Events',
    summary: 'List deliveries',
    description:
      'Returns the deliveries to the endpoint, newest first, each with its payload, the response to the last attempt and ' +
      'the time of the next attempt.',
  },
  redeliverEvent: {
    tag: 'Events',
    summary: 'Resend an event',
    description: 'Sends the event again now, with the same `webhook-id` and body.',
  },
  getLowBalance: {
    tag: 'Events',
    summary: 'Get the low-balance threshold',
    description: 'Returns the threshold of `balance.low`.',
  },
  updateLowBalance: {
    tag: 'Events',
    summary: 'Set the low-balance threshold',
    description:
      'The charge or hold that leaves less than `threshold` produces one `balance.low` event. You get the next event only ' +
      'after a credit has brought the balance back to the threshold. If the balance is below the threshold now, you get the first event only ' +
      'after such a credit.',
  },
} as const satisfies Record<string, Operation>;
