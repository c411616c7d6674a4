/**
 * What operators see of a top-up's refunds and disputes in the Temporal UI, like top-up-display.ts for the
 * top-up itself.
 */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { TopUpState } from '../activities/top-ups.ts';
import { formatDollarNumber } from '../src/domain/money.ts';
import { changedAttribute } from './changed-attribute.ts';
import { escaped } from './markdown.ts';
import type { ReversalsProgress } from './messages.ts';
import { stuckDetails, subjectOf } from './top-up-display.ts';

interface Displayed extends ReversalsProgress {
  readonly topUpId: string;
  readonly topUp: TopUpState | undefined;
  readonly ended: boolean;
}

export function display(run: Displayed): void {
  const { topUpId, topUp, status, waitingFor, stuck } = run;
  const changed = [
    ...(status === null ? [] : changedAttribute('TopUpStatus', 'KEYWORD', status)),
    ...changedAttribute('WaitingFor', 'KEYWORD', waitingFor ?? undefined),
    ...changedAttribute('Stuck', 'BOOL', stuck === null ? undefined : true),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
  const subject = topUp ? subjectOf({ ...topUp, topUpId }) : `Top-up \`${topUpId}\`.`;
  setCurrentDetails([stateOf(run), subject].join('\n\n'));
}

function stateOf(run: Displayed): string {
  const { status, stuck, ended } = run;
  if (stuck !== null) {
    return stuckDetails(stuck, 'Requested refunds are not made twice.');
  }
  if (!ended) return 'Reading the refunds and disputes of the top-up at the processor.';
  const state = `The top-up is **${status}**. ${claimsOf(run)}`;
  const toDo = toDoOf(run);
  return toDo.length === 0 ? `${state}No action needed.` : [state.trim(), ...toDo].join('\n\n');
}

/** What they hold, and what the consumer owes for them. */
function claimsOf({ heldDollars, debtDollars }: Displayed): string {
  const held = heldDollars > 0 ? `**${dollars(heldDollars)} is on hold**. ` : '';
  const debt =
    debtDollars > 0
      ? `The consumer **owes ${dollars(debtDollars)}**, which the next credits repay. `
      : '';
  return held + debt;
}

/** What waits for an operator. Steps of earlier releases do not return it. */
function toDoOf(run: Displayed): readonly string[] {
  const { topUpId, open = [], failedRefund, unnoted = [], invoiceRefusal } = run;
  const toDo: string[] = [];
  if (open.includes('warning')) {
    toDo.push(
      'The bank suspects **fraud**. To do: refund the top-up, or dismiss the warning with' +
        ` \`farebox dismiss-warning ${topUpId}\`.`,
    );
  }
  if (open.includes('dispute')) {
    toDo.push(
      "A **dispute** is open. To do: respond in the processor's dashboard before its deadline.",
    );
  }
  if (failedRefund) {
    toDo.push(
      `A **refund of ${dollars(failedRefund.dollars)} failed**, and the amount was credited again:`,
      `> ${escaped(failedRefund.message)}`,
      'To do: if the refund is still due, request it again or pay it in another way.',
    );
  }
  if (invoiceRefusal) {
    toDo.push(
      'The **invoice could not be made**:',
      `> ${escaped(invoiceRefusal)}`,
      "Farebox will try again later. To do: correct the cause in the processor's dashboard.",
    );
  }
  if (unnoted.length > 0) {
    const refunds = unnoted.map((id) => `\`${id}\``).join(', ');
    toDo.push(
      `The processor refused a credit note for ${refunds}. To do: correct the invoice in its dashboard.`,
    );
  }
  return toDo;
}

const dollars = (amount: number): string => escaped(formatDollarNumber(amount));
