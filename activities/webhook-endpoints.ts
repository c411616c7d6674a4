/** The step of an endpoint's workflow: sends what is due. It may run twice, as src/events/send-due.ts explains. */
import { sendDue, type SendDeps, type Sent } from '../src/events/send-due.ts';
import { rowIdOf } from './row-id.ts';

export type WebhookEndpointActivities = ReturnType<typeof createWebhookEndpointActivities>;

export function createWebhookEndpointActivities(deps: SendDeps) {
  return {
    /** Ids and counts only: histories keep neither events nor URLs. */
    sendDueEvents: (endpointId: string): Promise<Sent> =>
      sendDue(deps, rowIdOf('webhookEndpoint', endpointId)),
  };
}
