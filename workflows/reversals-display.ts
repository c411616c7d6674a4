/** What operators see of a top-up's refunds and disputes in the Temporal UI, like top-up-display.ts for the top-up itself. */
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
  return `The top-up is **${status}**. ${claimsOf(run)}No action needed.`;
}

/** What they hold, and what the consumer owes for them. */
function claimsOf({ heldDollars, debtDollars }: Displayed): string {
  const held =
    heldDollars > 0
      ? `An open dispute **holds ${escaped(formatDollarNumber(heldDollars))}** until it is decided. `
      : '';
  const debt =
    debtDollars > 0
      ? `The consumer **owes ${escaped(formatDollarNumber(debtDollars))}**, which the next credits repay. `
      : '';
  return held + debt;
}
