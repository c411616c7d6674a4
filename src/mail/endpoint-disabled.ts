/** The mail to the owner of a webhook endpoint that was disabled because of its responses. */
import { wireId } from '../domain/ids.ts';
import type { DisabledReason } from '../domain/webhook-endpoint.ts';
import type { Mail } from './send.ts';

const REASONS = {
  failing: 'has not accepted an event for five days',
  gone: 'responded with 410 Gone, which means that it wants no more events',
} as const;

export function endpointDisabledMail(
  recipient: string,
  { id, url }: { readonly id: string; readonly url: string },
  reason: Exclude<DisabledReason, 'owner'>,
): Mail {
  return {
    recipient,
    subject: `Your webhook endpoint at ${new URL(url).host} was disabled`,
    body:
      `Your webhook endpoint ${wireId('webhookEndpoint', id)} ${REASONS[reason]}. Farebox no longer sends events to it.\n\n` +
      'You can enable it again in the console, under Webhooks, or with PATCH /v1/webhook-endpoints/:id. ' +
      'Its delivery log lists the events that were not delivered, and lets you send them again.\n',
  };
}
