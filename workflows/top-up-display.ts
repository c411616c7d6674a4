/**
 * What operators see of a top-up in the Temporal UI: search attributes to filter by, and details in Markdown that say
 * what it waits for, since when, and what to do. Neither contains personal data.
 */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { formatDollarNumber } from '../src/domain/money.ts';
import { inWords } from '../src/domain/retries.ts';
import { ASK_MS_MAX, type AutoTopUpState, type TopUpMethod } from '../src/domain/top-up.ts';
import { changedAttribute } from './changed-attribute.ts';
import { escaped } from './markdown.ts';
import type { Stuck, TopUpProgress } from './messages.ts';
import { RETRY_MS_MAX } from './processor-steps.ts';

export interface Displayed extends TopUpProgress {
  readonly consumerId: string | undefined;
  readonly amountDollars: number | undefined;
  readonly ended: boolean;
  /** Whether the update `cancel` is accepted. */
  readonly mayCancel: boolean;
  readonly autoTopUp: AutoTopUpState | null;
  readonly topUpId: string;
  readonly method: TopUpMethod | undefined;
  readonly dashboardUrl: string | null;
  readonly needsPayer: boolean;
  readonly isUnderWay: boolean;
}

export function display(topUp: Displayed): void {
  const changed = [
    ...changedAttribute('TopUpStatus', 'KEYWORD', topUp.status),
    ...changedAttribute('ConsumerId', 'KEYWORD', topUp.consumerId),
    ...changedAttribute('AmountDollars', 'DOUBLE', topUp.amountDollars),
    ...changedAttribute('WaitingFor', 'KEYWORD', topUp.waitingFor ?? undefined),
    ...changedAttribute('Stuck', 'BOOL', topUp.stuck === null ? undefined : true),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
  setCurrentDetails([stateOf(topUp), subjectOf(topUp)].join('\n\n'));
}

/** The error, and what to do, with one more sentence. */
export function stuckDetails({ since, step, message }: Stuck, more: string): string {
  return [
    `**Stuck** since ${since}: the step \`${step}\` keeps failing.`,
    `> ${escaped(message)}`,
    `It retries automatically, at growing intervals up to ${inWords(RETRY_MS_MAX)}. To do: fix the cause,` +
      ` then send the update \`retry\`. ${more}`,
  ].join('\n\n');
}

interface Subject extends Pick<Displayed, 'topUpId' | 'method' | 'amountDollars' | 'consumerId'> {
  readonly sessionId: string | null;
  readonly paymentIntentId: string | null;
  /** The URL of the processor's dashboard; null if it has none. */
  readonly dashboardUrl: string | null;
}

/** Repeats the static details, which a continued run does not have, and adds the processor's ids. */
export function subjectOf(topUp: Subject): string {
  const { topUpId, method, amountDollars, consumerId, sessionId, paymentIntentId } = topUp;
  const what =
    method === undefined || amountDollars === undefined
      ? ''
      : `: ${escaped(formatDollarNumber(amountDollars))}, ${method}, for \`${consumerId}\``;
  const links = [
    linkTo(topUp, 'payments/', paymentIntentId),
    linkTo(topUp, 'search?query=', sessionId),
  ].flatMap((link) => link ?? []);
  const there = links.length === 0 ? '' : ` At the processor: ${links.join(', ')}.`;
  return `Top-up \`${topUpId}\`${what}.${there}`;
}

function linkTo({ dashboardUrl }: Subject, page: string, id: string | null): string | undefined {
  if (id === null) return undefined;
  return dashboardUrl === null ? `\`${id}\`` : `[${id}](${dashboardUrl}/${page}${id})`;
}

function stateOf(topUp: Displayed): string {
  if (topUp.stuck !== null) {
    return stuckDetails(
      topUp.stuck,
      topUp.mayCancel
        ? 'The update `cancel` ends the top-up unless it was paid.'
        : 'It can no longer be canceled.',
    );
  }
  if (topUp.ended) {
    const why =
      topUp.failure === null ? '' : ` (${topUp.failure.code}: ${escaped(topUp.failure.message)})`;
    return `Ended: **${topUp.status}**${why}. ${nextOf(topUp.autoTopUp)}`;
  }
  if (topUp.waitingFor === 'payment' && topUp.needsPayer) {
    return (
      'Waiting for the **payer**, whose bank wants this payment confirmed. No action needed: the API and the console' +
      ' give the payer a link, and without a confirmation the top-up expires after 24 hours. The update `retry` asks' +
      ' now; `cancel` ends it.'
    );
  }
  if (topUp.waitingFor === 'payment' && topUp.isUnderWay) {
    return (
      'Waiting for the **bank**, which takes days: the payer has authorized a debit. No action needed: the processor' +
      ' reports whether it succeeds. The update `retry` asks now; `cancel` no longer stops the debit.'
    );
  }
  if (topUp.waitingFor === 'payment') {
    return (
      'Waiting for the **payment**. No action needed: the processor reports it, and the workflow also asks at growing' +
      ` intervals up to ${inWords(ASK_MS_MAX)}. The update \`retry\` asks now; \`cancel\` closes the checkout.`
    );
  }
  return `Waiting for the ${topUp.waitingFor ?? 'worker'}.`;
}

function nextOf(autoTopUp: AutoTopUpState | null): string {
  if (autoTopUp?.status === 'off') {
    return (
      'Automatic top-ups of this consumer **turned themselves off**: the card was declined too often, or permanently, or a' +
      ' payment was disputed or reported as fraud.' +
      ' Only the owner can turn them on again (`farebox account auto-top-up`).'
    );
  }
  return autoTopUp?.status === 'waiting'
    ? 'No action needed: automatic top-ups pause before they charge the card again.'
    : 'No action needed.';
}
