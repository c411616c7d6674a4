/**
 * What operators see of an invocation in the Temporal UI: search attributes to filter by, and details in Markdown.
 * Neither contains the payload or the agent's answer.
 */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { changedAttribute } from './changed-attribute.ts';
import { escaped } from './markdown.ts';
import type { InvocationProgress } from './messages.ts';
import { RETRY_MS_MAX, type InvocationView } from '../src/domain/invocation.ts';
import { inWords } from '../src/domain/retries.ts';

interface Displayed extends Pick<InvocationProgress, 'waitingFor' | 'stuck'> {
  readonly view: InvocationView;
  readonly ended: boolean;
}

export function display(run: Displayed): void {
  const changed = [
    ...changedAttribute('InvocationStatus', 'KEYWORD', run.view.status),
    ...changedAttribute('WaitingFor', 'KEYWORD', run.waitingFor ?? undefined),
    ...changedAttribute('Stuck', 'BOOL', run.stuck === null ? undefined : true),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
  setCurrentDetails(detailsOf(run));
}

function detailsOf({ view, waitingFor, stuck, ended }: Displayed): string {
  const attempts = view.attempts === 1 ? '1 attempt' : `${view.attempts} attempts`;
  if (ended) {
    const why = view.error === null ? '' : ` (${view.error.code}: ${escaped(view.error.message)})`;
    return `Ended after ${attempts}: **${view.status}**${why}. No action needed.`;
  }
  if (stuck !== null) {
    return [
      `**Stuck** since ${stuck.since}: the step \`${stuck.step}\` keeps failing; ${attempts} so far.`,
      `> ${escaped(stuck.message)}`,
      `It retries automatically, at growing intervals up to ${inWords(RETRY_MS_MAX)}. To do: fix the cause, or tell` +
        ' the owner of the agent. The update `retry` tries again now; "Request Cancellation" ends the invocation as failed.',
    ].join('\n\n');
  }
  if (view.error !== null) {
    return `${attempts} so far. Last error:\n\n> ${escaped(view.error.message)}`;
  }
  return `Waiting for the ${waitingFor ?? 'worker'}.`;
}
