/** The state of every part, what is stuck, what differs, and the last results of doctor and reconcile. */
import { differenceText, paymentToOpen } from '../../../domain/difference.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import { LISTED_MAX } from '../../../domain/operators.ts';
import type { OperatorStatusReply } from '../../../schemas/operators.ts';
import { readBacklog } from '../../../store/operators/backlog.ts';
import { findWalkedUntil, listExaminations } from '../../../store/doctor/last-findings.ts';
import { listDifferences, type Difference } from '../../../store/top-ups/reconciliation.ts';
import { listStuck, type Stuck } from '../../../store/operators/stuck.ts';
import { listWaiting } from '../../../store/operators/waiting.ts';
import type { Reply } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { reversalsWorkflowId } from '../../../temporal/start-reversals.ts';
import { topUpWorkflowId } from '../../../temporal/start-top-up.ts';
import { linksOf } from './links.ts';
import { wireWaiting } from './waiting.ts';

/** The most waiting items of each kind. Most of them need nobody. */
const WAITING_LISTED_MAX = 20;

export async function getOperatorStatus(api: Api): Promise<Reply<OperatorStatusReply>> {
  const { database } = api;
  const [readiness, backlog, things, stuck, differences, reconciledUntil, examinations] =
    await Promise.all([
      api.readiness.check(),
      readBacklog(database),
      listWaiting(database, WAITING_LISTED_MAX),
      listStuck(database, LISTED_MAX),
      listDifferences(database, LISTED_MAX),
      findWalkedUntil(database),
      listExaminations(database),
    ]);
  return {
    status: 200,
    body: {
      postgres: readiness.postgres,
      temporal: readiness.temporal,
      waiting: wireWaiting(api, backlog.waiting, things),
      stuck: stuck.map((each) => wireStuck(api, each)),
      differences: differences.map((difference) => wireDifference(api, difference)),
      reconciledUntil,
      examinations: examinations.map(({ part, endedAt, findings }) => ({
        part,
        endedAt,
        findings,
      })),
    },
  };
}

function wireDifference(
  api: Api,
  difference: Difference,
): OperatorStatusReply['differences'][number] {
  const { topUpId, kind, processorMicros, ledgerMicros, since } = difference;
  const { paymentIntentIds, creditedPaymentIntentId } = difference;
  return {
    topUpId: wireId('topUp', topUpId),
    kind,
    text: differenceText(kind, processorMicros, ledgerMicros),
    processor: dollarsOf(processorMicros),
    ledger: dollarsOf(ledgerMicros),
    since,
    paymentIntentIds,
    creditedPaymentIntentId,
    ...linksOf(api, workflowIdOf(api, topUpId, kind === 'reversals'), {
      paymentIntentId: paymentToOpen(kind, paymentIntentIds, creditedPaymentIntentId),
    }),
  };
}

/** The workflow of the top-up's payment, or that of its refunds and disputes. */
function workflowIdOf({ config }: Api, topUpId: string, isReversal: boolean): string {
  return (isReversal ? reversalsWorkflowId : topUpWorkflowId)(config.temporal, topUpId);
}

function wireStuck(api: Api, stuck: Stuck): OperatorStatusReply['stuck'][number] {
  const { kind, detail, subjectId, accountId, amountMicros, since } = stuck;
  // A notice may be about something else than a top-up, which then has no account here.
  const isTopUp = accountId !== null;
  const isReversal = kind === 'refund' || detail === 'reversal_reported';
  return {
    kind,
    detail,
    topUpId: isTopUp ? wireId('topUp', subjectId) : null,
    accountId: accountId && wireId('account', accountId),
    amount: amountMicros === null ? null : dollarsOf(amountMicros),
    since,
    ...(isTopUp
      ? linksOf(api, workflowIdOf(api, subjectId, isReversal), stuck)
      : { temporalUrl: null, processorUrl: null }),
  };
}
