/** The waiting work that operators see: a count of each kind, and its oldest items with links to their details. */
import { wireId, type IdKind } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { OperatorStatusReply } from '../../../schemas/operators.ts';
import type { Waiting } from '../../../store/operators/backlog.ts';
import type { WaitingThing } from '../../../store/operators/waiting.ts';
import type { Topic } from '../../../store/outbox.ts';
import type { Deployed } from '../../../temporal/client.ts';
import { approvalWorkflowId } from '../../../temporal/start-approval.ts';
import { grantWorkflowId } from '../../../temporal/start-grant.ts';
import { invocationWorkflowId } from '../../../temporal/start-invocation.ts';
import { reversalsWorkflowId } from '../../../temporal/start-reversals.ts';
import { topUpWorkflowId } from '../../../temporal/start-top-up.ts';
import { webhookWorkflowId } from '../../../temporal/start-webhook-endpoint.ts';
import type { Api } from '../../services.ts';
import { linksOf } from './links.ts';

type WireWaiting = OperatorStatusReply['waiting'][number];

/** What a notice is about, and the workflow that it is for. An automatic top-up has none before it is made. */
const SUBJECTS: Readonly<
  Record<Topic, readonly [IdKind, ((temporal: Deployed, id: string) => string) | null]>
> = {
  grant: ['grant', grantWorkflowId],
  invocation: ['invocation', invocationWorkflowId],
  auto_top_up: ['consumer', null],
  top_up: ['topUp', topUpWorkflowId],
  payment_reported: ['topUp', topUpWorkflowId],
  reversal_reported: ['topUp', reversalsWorkflowId],
  approval: ['approval', approvalWorkflowId],
  webhook_endpoint: ['webhookEndpoint', webhookWorkflowId],
};

export function wireWaiting(
  api: Api,
  waiting: readonly Waiting[],
  things: readonly WaitingThing[],
): WireWaiting[] {
  return waiting.map(({ what, count, ageSeconds }) => ({
    what,
    count,
    ageSeconds,
    oldest: things
      .filter((thing) => thing.what === what)
      .map((thing): WireWaiting['oldest'][number] => wireThing(api, thing)),
  }));
}

function wireThing(api: Api, thing: WaitingThing): WireWaiting['oldest'][number] {
  const { topic, subjectId, accountId, detail, url, amountMicros, since } = thing;
  const [kind, workflowIdOf] = SUBJECTS[topic];
  return {
    id: wireId(kind, subjectId),
    accountId: accountId && wireId('account', accountId),
    detail,
    // The rest of the URL may be a secret of the owner's.
    host: url && new URL(url).host,
    amount: amountMicros === null ? null : dollarsOf(amountMicros),
    since,
    ...(workflowIdOf
      ? linksOf(api, workflowIdOf(api.config.temporal, subjectId), thing)
      : { temporalUrl: null, processorUrl: null }),
  };
}
