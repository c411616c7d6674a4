/**
 * A grant, for as long as it can be used. Postgres decides uses and revocations and, by its own clock, whether the
 * grant has expired. The workflow records the expiry and shows the grant in the UI.
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
import { UNTIL_IT_SUCCEEDS } from './until-it-succeeds.ts';

// There is nothing else to do, and the grant expires without it too.
const { settleGrant } = proxyActivities<GrantActivities>({
  ...UNTIL_IT_SUCCEEDS,
  summary: 'Read the grant',
});

export async function grant({ grantId }: GrantInput): Promise<GrantView> {
  let isNudged = false;
  let view: GrantView = { status: 'active', uses: 0 };
  setHandler(messages.grantUsed, () => void (isNudged = true), {
    description: 'The grant is used up: reads it now.',
  });
  setHandler(messages.grantRevoked, () => void (isNudged = true), {
    description: 'The grant was revoked: reads it now.',
  });
  setHandler(messages.grantStatus, () => view, {
    description: 'The status and the number of uses when the grant was last read.',
  });
  for (;;) {
    isNudged = false; // the read below sees everything signaled so far
    const seen = await settleGrant(grantId);
    view = { status: seen.status, uses: seen.uses };
    display(seen);
    if (seen.status !== 'active') return view;
    await condition(() => isNudged, seen.expiresInMs, { summary: 'Wait for the expiry' });
  }
}

function display({ type, status, uses }: SeenGrant): void {
  const changed = changedAttribute('GrantStatus', 'KEYWORD', status);
  if (changed.length > 0) upsertSearchAttributes(changed);
  setCurrentDetails(
    status === 'active'
      ? `A \`${type}\` grant, **active**. No action needed: it ends when it is used up, is revoked or expires.`
      : `Ended: **${status}** after ${uses === 1 ? '1 use' : `${uses} uses`}. No action needed.`,
  );
}
