/** The step of an endpoint's workflow: sends what is due. It may run twice, as src/events/send-due.ts explains. */
import { Context } from '@temporalio/activity';
import type { SendDeps, Sent } from '../src/events/send-due.ts';
import { rowIdOf } from './row-id.ts';

export type WebhookEndpointActivities = ReturnType<typeof createWebhookEndpointActivities>;

export function createWebhookEndpointActivities(deps: SendDeps) {
  return {
    /** Ids and counts only: histories keep neither events nor URLs. */
    async sendDueEvents(endpointId: string): Promise<Sent> {
      // Loaded by the first event, with its HTTP client.
      const { sendDue } = await import('../src/events/send-due.ts');
      const { cancellationSignal } = Context.current();
      return sendDue(deps, rowIdOf('webhookEndpoint', endpointId), cancellationSignal);
    },
  };
}
