/** The step of an endpoint's workflow: sends what is due. It may run twice, as src/events/send-due.ts explains. */
import { Context } from '@temporalio/activity';
import type { SharedPlaces } from '../src/agents/shared-places.ts';
import type { SendDeps, Sent } from '../src/events/send-due.ts';
import { findWebhookEndpoint } from '../src/store/events/webhook-endpoints.ts';
import { rowIdOf } from './row-id.ts';

export interface WebhookEndpointDeps extends SendDeps {
  readonly places: SharedPlaces;
}

export type WebhookEndpointActivities = ReturnType<typeof createWebhookEndpointActivities>;

export function createWebhookEndpointActivities(deps: WebhookEndpointDeps) {
  return {
    /** Ids and counts only: histories keep neither events nor URLs. */
    sendDueEvents(endpointId: string): Promise<Sent> {
      const { cancellationSignal } = Context.current();
      return sendInPlace(deps, rowIdOf('webhookEndpoint', endpointId), cancellationSignal);
    },
  };
}

/** Twice what an endpoint that answers takes. One that hangs takes at least `ANSWER_TIMEOUT_MS`. */
const HUNG_AFTER_MS = 10_000;
/** When an endpoint without a place asks again. */
const NO_PLACE_MS = 30_000;

/** Without a place for the account, sends nothing, and the events stay due. */
export async function sendInPlace(
  { places, ...deps }: WebhookEndpointDeps,
  endpointId: string,
  signal?: AbortSignal,
): Promise<Sent> {
  // Loaded by the first event, with its HTTP client.
  const { sendDue } = await import('../src/events/send-due.ts');
  const endpoint = await findWebhookEndpoint(deps.database, { id: endpointId });
  if (endpoint?.status !== 'active') return sendDue(deps, endpointId, signal);
  const { accountId, status, failingSince } = endpoint;
  if (!places.take(accountId)) return { status, failingSince, nextInMs: NO_PLACE_MS };
  const takenAtMs = performance.now();
  try {
    return await sendDue(deps, endpointId, signal);
  } finally {
    places.giveBack(accountId, { hung: performance.now() - takenAtMs > HUNG_AFTER_MS });
  }
}
