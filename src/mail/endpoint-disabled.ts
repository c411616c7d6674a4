/** The mail to the owner of a webhook endpoint that was disabled because of its answers. */
import { wireId } from '../domain/ids.ts';
import type { DisabledReason } from '../domain/webhook-endpoint.ts';
import type { Mail } from './send.ts';

const REASONS = {
  failing: 'It has not accepted an event for five days.',
  gone: 'It answered 410 Gone, which means that it wants no more events.',
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
      `${REASONS[reason]} Events are no longer sent to ${wireId('webhookEndpoint', id)}.\n\n` +
      'You can enable it again in the console, under Webhooks, or with PATCH /v1/webhook-endpoints/:id. ' +
      'Its delivery log lists the events that were not delivered, and you can resend them from there.\n',
  };
}
