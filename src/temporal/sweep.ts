/**
 * Once a minute: what nobody else would come back to, because a process died or a workflow was terminated.
 * Any number of relays may do it at once.
 */
import type { Logger } from 'pino';
import type { Database } from '../store/database.ts';
import { expireOverdueGrants } from '../store/agents/grants.ts';
import { noteSilentInvocations } from '../store/agents/invocations.ts';
import { noteWaitingRefunds } from '../store/top-ups/request-refund.ts';

/** A workflow that lives is heard of within two minutes; starting one that lives does nothing but cost. */
const SILENT_AFTER_MS = 180_000;
/** Its workflow writes down that a grant has expired within seconds. */
const OVERDUE_AFTER_MS = 60_000;
/** Far longer than the workflow of a refund that is stuck waits between its attempts. */
const WAITING_AFTER_MS = 3_600_000;

export async function sweep(database: Database, log: Logger): Promise<void> {
  const say = (count: number, what: string) => count > 0 && log.info({ count }, what);
  say(
    await noteSilentInvocations(database, SILENT_AFTER_MS),
    'invocations whose workflow may be gone will be started again',
  );
  say(
    await expireOverdueGrants(database, OVERDUE_AFTER_MS),
    'wrote down the expiry of grants whose workflow did not',
  );
  say(
    await noteWaitingRefunds(database, WAITING_AFTER_MS),
    'refunds without an outcome will be looked at again',
  );
}
