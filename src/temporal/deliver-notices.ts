/**
 * Delivers a notice by its topic: starts or nudges a workflow, or makes an automatic top-up. The relay takes
 * the notices from the outbox (relay.ts).
 */
import { findApproval } from '../store/approvals/approval.ts';
import { takeUpAutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import type { Database } from '../store/database.ts';
import { findGrant } from '../store/agents/grants.ts';
import { findInvocation } from '../store/agents/invocations.ts';
import { deleteNotices, postponeNotice, type Notice, type Topic } from '../store/outbox.ts';
import { isCredited } from '../domain/top-up.ts';
import { noteEarlyReversal } from '../store/top-ups/reversals.ts';
import { findTopUp } from '../store/top-ups/top-ups.ts';
import type { TemporalClient } from './client.ts';
import { reportApproval } from './start-approval.ts';
import { reportGrant } from './start-grant.ts';
import { startInvocation } from './start-invocation.ts';
import { reportReversal } from './start-reversals.ts';
import { reportPayment, startTopUp } from './start-top-up.ts';
import { reportWebhookEndpoint } from './start-webhook-endpoint.ts';

export interface DeliveryDeps {
  readonly database: Database;
  readonly temporal: TemporalClient;
}

/** The longest delay of notices that fail while others succeed. */
const BACKOFF_MS_MAX = 60_000;

/** Grows with each attempt. */
export function retryDelayMs(attempts: number): number {
  return Math.min(2 ** Math.min(attempts, 10) * 1_000, BACKOFF_MS_MAX);
}

/** Delivers a group of notices with one topic and subject. Throws when it cannot. */
export async function deliverNotices(deps: DeliveryDeps, group: readonly Notice[]): Promise<void> {
  const [first] = group;
  if (!first) return;
  const { topic, subjectId } = first;
  if (topic === 'auto_top_up') {
    // Replaced by a notice of `top_up` in one transaction.
    for (const notice of group) await takeUpAutoTopUp(deps.database, notice);
    return;
  }
  const delivery = await DELIVER[topic](deps, subjectId);
  if (delivery === 'delivered') {
    return deleteNotices(
      deps.database,
      group.map(({ id }) => id),
    );
  }
  for (const { id, attempts } of group) {
    await postponeNotice(deps.database, id, retryDelayMs(attempts));
  }
}

/** `not_claimed`: Temporal has the workflow but may still lose it, so the notice stays. */
type Delivery = 'delivered' | 'not_claimed';

const DELIVER: Readonly<
  Record<
    Exclude<Topic, 'auto_top_up'>,
    (deps: DeliveryDeps, subjectId: string) => Promise<Delivery>
  >
> = {
  async grant({ database, temporal }, subjectId) {
    const grant = await findGrant(database, subjectId);
    if (grant) await reportGrant(temporal, grant);
    return 'delivered';
  },

  async approval({ database, temporal }, subjectId) {
    const approval = await findApproval(database, subjectId);
    if (approval) await reportApproval(temporal, approval);
    return 'delivered';
  },

  async invocation({ database, temporal }, subjectId) {
    const invocation = await findInvocation(database, subjectId);
    if (invocation?.endedAt === null) await startInvocation(temporal, invocation);
    return 'delivered';
  },

  /** The workflow's first step deletes the notice. It is deleted here only if the top-up has already moved on. */
  async top_up({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    if (topUp?.status !== 'pending' || topUp.isClaimed) return 'delivered';
    await startTopUp(temporal, topUp);
    return 'not_claimed';
  },

  async payment_reported({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    // A credited top-up cannot become paid again; starting its workflow would only cost actions.
    if (topUp && !isCredited(topUp.status)) await reportPayment(temporal, topUp);
    return 'delivered';
  },

  async reversal_reported({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    if (!topUp) return 'delivered';
    // A reversal implies a payment. Once that is credited, its reversals are read.
    if (await noteEarlyReversal(database, topUp.id)) await reportPayment(temporal, topUp);
    else await reportReversal(temporal, topUp);
    return 'delivered';
  },

  /** Deleted ones too: their workflow then ends. */
  async webhook_endpoint({ temporal }, subjectId) {
    await reportWebhookEndpoint(temporal, subjectId);
    return 'delivered';
  },
};
