/**
 * Once a minute, resumes work that nothing else would resume, because a process died or a workflow was terminated.
 * Any number of relays may sweep at once.
 */
import type { Logger } from 'pino';
import { HOUR_MS, MINUTE_MS } from '../domain/durations.ts';
import type { Database } from '../store/database.ts';
import { isDatabaseAway } from '../store/failures.ts';
import { noteUnbegunApprovals, noteUnmailedApprovals } from '../store/approvals/progress.ts';
import { settleApprovals } from '../store/approvals/settle-approvals.ts';
import { expireOverdueGrants } from '../store/agents/grants.ts';
import { noteSilentInvocations } from '../store/agents/invocations.ts';
import { noteLateDeliveries } from '../store/events/deliveries.ts';
import { noteUnmailedTopUps } from '../store/top-ups/authentication.ts';
import { noteMissingInvoices } from '../store/top-ups/invoices.ts';
import { noteWaitingRefunds } from '../store/top-ups/request-refund.ts';

/** A running workflow writes to its row at least every two minutes. Starting one that runs only costs actions. */
const SILENT_AFTER_MS = 180_000;
/** The workflow of a grant or approval records the expiry within seconds. */
const OVERDUE_AFTER_MS = MINUTE_MS;
/** Far longer than the pause between the attempts of a stuck refund or invoice. */
const WAITING_AFTER_MS = HOUR_MS;
/** Longer than the pause between the attempts of a mail, where there is a mail server. */
const UNMAILED_AFTER_MS = 900_000;
/** An endpoint's workflow looks as soon as a delivery is due; sending to slow receivers may take a minute. */
const DELIVERY_LATE_MS = 120_000;

/** Finds the work of one kind and resumes it. Returns how much it resumed. */
type Resume = (database: Database) => Promise<number>;

const KINDS: Readonly<Record<string, Resume>> = {
  'restarting invocations whose workflow may be gone': (database) =>
    noteSilentInvocations(database, SILENT_AFTER_MS),
  'recorded the expiry of grants whose workflow did not': (database) =>
    expireOverdueGrants(database, OVERDUE_AFTER_MS),
  'recorded the expiry of approvals whose workflow did not': (database) =>
    settleApprovals(database, { overdueByMs: OVERDUE_AFTER_MS }),
  'starting approvals whose workflow may be gone': (database) =>
    noteUnbegunApprovals(database, SILENT_AFTER_MS),
  'checking refunds without an outcome again': (database) =>
    noteWaitingRefunds(database, WAITING_AFTER_MS),
  'making the invoices of payments that have none': (database) =>
    noteMissingInvoices(database, WAITING_AFTER_MS),
  'restarting webhook endpoints whose workflow may be gone': (database) =>
    noteLateDeliveries(database, DELIVERY_LATE_MS),
};

/** Only in a process that can send mails: another one would resume each in vain, again and again. */
const MAILS: typeof KINDS = {
  'starting approvals without a mail whose workflow may be gone': (database) =>
    noteUnmailedApprovals(database, UNMAILED_AFTER_MS),
  'asking about top-ups whose owner got no mail': (database) =>
    noteUnmailedTopUps(database, UNMAILED_AFTER_MS),
};

/** A kind that fails, for example because its statement takes too long, keeps no other from being resumed. */
export async function sweep(database: Database, log: Logger, canMail: boolean): Promise<void> {
  for (const [what, resume] of Object.entries({ ...KINDS, ...(canMail && MAILS) })) {
    try {
      const count = await resume(database);
      if (count > 0) log.info({ count }, what);
    } catch (err) {
      if (isDatabaseAway(err)) throw err;
      log.warn({ err }, `could not look for work to resume: ${what}`);
    }
  }
}
