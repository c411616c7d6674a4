/**
 * A webhook endpoint, for as long as it is active. Postgres has the events that it waits for and the times of
 * their next attempts, so this only remembers when to look: when an event is posted, and when an attempt is
 * due.
 */
import {
  condition,
  continueAsNew,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { WebhookEndpointActivities } from '../activities/webhook-endpoints.ts';
import { webhookTaskQueue } from '../src/domain/task-queues.ts';
import * as messages from './messages.ts';
import type { WebhookEndpointInput, WebhookEndpointView } from './messages.ts';

/** After this, the workflow continues as a new run: another worker that takes a run over replays all of it first. */
export const HISTORY_EVENTS_MAX = 500;

/** Ends when the endpoint is disabled or deleted. A notice starts it again once it is enabled. */
export async function webhookEndpoint(input: WebhookEndpointInput): Promise<WebhookEndpointView> {
  let isNudged = false;
  let view: WebhookEndpointView = { status: 'active', failingSince: null };
  setHandler(messages.webhookEndpointChanged, () => void (isNudged = true), {
    description: 'There is something to send, or the endpoint was changed: checks now.',
  });
  setHandler(messages.webhookEndpointStatus, () => view, {
    description: 'The status, and since when attempts fail.',
  });
  for (;;) {
    isNudged = false; // what was posted so far is seen below
    const { nextInMs, ...seen } = await toEndpoint().sendDueEvents(input.endpointId);
    view = seen;
    display(view);
    // The next run looks at once, so a nudge is not lost.
    if (isLong()) await continueAsNew<typeof webhookEndpoint>(input);
    if (isNudged || nextInMs === 0) continue;
    if (seen.status !== 'active') return view;
    await (nextInMs === null
      ? condition(() => isNudged)
      : condition(() => isNudged, nextInMs, { summary: 'Wait for the next attempt' }));
  }
}

function isLong(): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  // Runs that began on an earlier release have passed it and continued.
  return (
    continueAsNewSuggested || (historyLength > HISTORY_EVENTS_MAX && patched('short-histories'))
  );
}

/** Retries without limit: what fails here is the database, and receivers wait for their events. */
function toEndpoint(): WebhookEndpointActivities {
  return proxyActivities<WebhookEndpointActivities>({
    taskQueue: webhookTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1m',
    heartbeatTimeout: '5s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
    summary: 'Send due events',
  });
}

function display({ status, failingSince }: WebhookEndpointView): void {
  if (status === null) setCurrentDetails('Deleted. No action needed.');
  else if (status === 'disabled') setCurrentDetails('**Disabled**. Its owner can enable it again.');
  else if (failingSince === null) setCurrentDetails('Active. No action needed.');
  else {
    setCurrentDetails(
      `**Failing** since ${failingSince}. Attempts continue at growing intervals; the owner of the endpoint sees the responses in the ` +
        'console. No action needed.',
    );
  }
}
