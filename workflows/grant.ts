/**
 * A grant, for as long as it can be used. Postgres decides about uses and revocations and, by its own clock,
 * whether the grant has expired; this writes the expiry down when it comes and shows the grant in the UI.
 */
import {
  condition,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { GrantActivities, SeenGrant } from '../activities/grants.ts';
import { changedAttribute } from './changed-attribute.ts';
import * as messages from './messages.ts';
import type { GrantInput, GrantView } from './messages.ts';

// Without end: there is nothing else to do, and without it the grant expires all the same.
const { settleGrant } = proxyActivities<GrantActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  summary: 'Look at the grant',
});

export async function grant({ grantId }: GrantInput): Promise<GrantView> {
  let isNudged = false;
  let view: GrantView = { status: 'active', uses: 0 };
  setHandler(messages.grantUsed, () => void (isNudged = true), {
    description: 'The grant has been used up: look at it now.',
  });
  setHandler(messages.grantRevoked, () => void (isNudged = true), {
    description: 'The grant has been revoked: look at it now.',
  });
  setHandler(messages.grantStatus, () => view, {
    description: 'The status when it was last looked at, and how often it had been used.',
  });
  for (;;) {
    isNudged = false; // whatever was said until now, this look sees
    const seen = await settleGrant(grantId);
    view = { status: seen.status, uses: seen.uses };
    display(seen);
    if (seen.status !== 'active') return view;
    await condition(() => isNudged, seen.expiresInMs, { summary: 'Until it expires' });
  }
}

function display({ type, status, uses }: SeenGrant): void {
  const changed = changedAttribute('GrantStatus', 'KEYWORD', status);
  if (changed.length > 0) upsertSearchAttributes(changed);
  setCurrentDetails(
    status === 'active'
      ? `A \`${type}\` grant, **active**. Nothing to do: it ends when it is used up, revoked or expired.`
      : `Ended: **${status}** after ${uses === 1 ? '1 use' : `${uses} uses`}. Nothing to do.`,
  );
}
