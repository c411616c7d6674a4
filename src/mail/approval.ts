/** The mail that asks the owner of an account to decide about a refused call. */
import { wireId } from '../domain/ids.ts';
import { isTest } from '../domain/mode.ts';
import { formatDollars } from '../domain/money.ts';
import type { Approval } from '../store/approvals/approval.ts';
import type { Mail } from './send.ts';

/** Neither the asker nor a tool wrote any of it: mail programs turn such text into links. */
export function approvalMail(recipient: string, approval: Approval, link: string): Mail {
  const amount = formatDollars(approval.amountMicros);
  const inTestMode = isTest(approval) ? ' in test mode' : '';
  return {
    recipient,
    subject: `Approve a charge of ${amount}${inTestMode}?`,
    body:
      `Farebox refused a call for ${amount}, and the caller asks you to allow it.\n\n` +
      `${reasonOf(approval)}\n\n` +
      (isTest(approval) ? 'The call used a test key, so no real money moves.\n\n' : '') +
      `Open this link to see the request and to decide. It works until ${approval.expiresAt}.\n\n${link}\n\n` +
      'If you do nothing, the call is not allowed. Anyone with this link can decide, so do not forward this email.\n',
  };
}

function reasonOf(approval: Approval): string {
  const budget = approval.budgetId === null ? '' : wireId('budget', approval.budgetId);
  const developer = wireId('developer', approval.developerId);
  switch (approval.code) {
    case 'approval_required':
      return `The owner has not approved the developer ${developer} for the budget ${budget}.`;
    case 'spend_limit_reached':
      return `The call by the developer ${developer} exceeds a limit of the budget ${budget}.`;
    case 'insufficient_balance':
      return `The balance does not cover the call by the developer ${developer}.`;
  }
}
