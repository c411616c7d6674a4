/**
 * The page behind the signed link in the mail to the owner: it shows what is asked, and decides by POST alone, so that
 * nothing happens when a mail scanner opens the link. It does not sign anyone in, and knows only the one approval.
 */
import type { Context, Middleware } from 'koa';
import { canAnswer, RAISED_LIMIT_LABELS } from '../../../domain/approval.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { asMicros, formatDollars, microsOfDollars } from '../../../domain/money.ts';
import { findApproval, hasKeyEnded, type Approval } from '../../../store/approvals/approval.ts';
import { settleApprovals } from '../../../store/approvals/settle-approvals.ts';
import { readForm } from '../../body.ts';
import type { Api } from '../../services.ts';
import { BRAND, escapeHtml, respondPage, type HtmlPage } from '../html-pages.ts';
import { answerOf, decide, shortfallNow } from './decide-approval.ts';

const DECISIONS = ['once', 'always', 'raise', 'deny'] as const;

export function approvalPage(api: Api): Middleware {
  return async (ctx) => {
    const { link } = ctx.query;
    const token = typeof link === 'string' ? link : '';
    const approval = await findLinked(api, token);
    if (!approval) return respondPage(ctx, 404, EXPIRED);
    respondPage(ctx, 200, await pageOf(api, approval, token));
  };
}

export function postApprovalPage(api: Api): Middleware {
  return async (ctx) => {
    const form = await readForm(ctx.req);
    const token = form.get('link') ?? '';
    const approval = await findLinked(api, token);
    if (!approval) return respondPage(ctx, 404, EXPIRED);
    const decision = DECISIONS.find((each) => each === form.get('decision'));
    if (!decision || !canAnswer(approval.code, decision)) {
      return again(ctx, api, approval, token, 400, 'Choose one of the answers.');
    }
    const limit = dollarsIn(form.get('limit'));
    if (decision === 'raise' && limit === undefined) {
      return again(ctx, api, approval, token, 400, 'Enter the limit in dollars, such as 2.50.');
    }
    try {
      const answer = answerOf(approval, decision, limit);
      const decided = await decide(api, approval, answer, { kind: 'link', id: approval.id });
      respondPage(ctx, 200, ended(decided));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      const now = (await findApproval(api.database, approval.id)) ?? approval;
      await again(ctx, api, now, token, error.status, problemOf(error));
    }
  };
}

async function again(
  ctx: Context,
  api: Api,
  approval: Approval,
  token: string,
  status: number,
  problem: string,
): Promise<void> {
  respondPage(ctx, status, await pageOf(api, approval, token, problem));
}

/** The message of the API begins with the name of the field. */
function problemOf({ message, details }: ApiError): string {
  return details.param === 'limit' ? message.replace(/^limit/, 'The limit') : message;
}

/** The approval of a link that is ours and has not expired. */
async function findLinked(api: Api, token: string): Promise<Approval | null> {
  const read = api.approvalLinks.read(token);
  if (!read || read.expiresAtMs <= api.clock.nowMs()) return null;
  await settleApprovals(api.database, { ids: [read.approvalId] });
  return findApproval(api.database, read.approvalId);
}

/** Browsers send what was typed; a comma is not part of a number. */
function dollarsIn(text: string | null): string | undefined {
  return text === null || microsOfDollars(text) === undefined ? undefined : text;
}

const EXPIRED: HtmlPage = {
  title: 'Link expired',
  isCard: true,
  body:
    `${BRAND}<h1>This link has expired</h1><p>This request can no longer be decided here. ` +
    'Sign in to see all requests.</p><a class="button main" href="/console/approvals">Sign in</a>',
};

async function pageOf(
  api: Api,
  approval: Approval,
  token: string,
  problem?: string,
): Promise<HtmlPage> {
  if (approval.status !== 'pending') return ended(approval);
  const { amountMicros, tool, developerId, keyId, keyName, reason, askedBy, expiresAt } = approval;
  const key = keyName ?? (keyId === null ? 'a consumer key' : wireId('key', keyId));
  const asker = askedBy === 'developer' ? 'The developer' : 'The holder of the key';
  return {
    title: 'Approve a call',
    isCard: true,
    body:
      `${BRAND}<h1>Allow a call for ${usd(amountMicros)}${isTest(approval) ? ' of play money' : ''}?</h1><p>${escapeHtml(questionOf(approval))}</p>` +
      (problem === undefined ? '' : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`) +
      `<dl><dt>Tool</dt><dd><bdi>${escapeHtml(tool)}</bdi></dd>` +
      `<dt>Developer</dt><dd><code>${wireId('developer', developerId)}</code></dd>` +
      `<dt>Key</dt><dd><bdi>${escapeHtml(key)}</bdi></dd>` +
      (reason === '' ? '' : `<dt>${asker} wrote</dt><dd><bdi>${escapeHtml(reason)}</bdi></dd>`) +
      `<dt>Answer before</dt><dd><time datetime="${expiresAt}">${minuteOf(expiresAt)}</time></dd></dl>` +
      (await answersOf(api, approval, token)) +
      '<p class="quiet">This link can only decide this request. It does not sign anyone in.</p>',
  };
}

/** `Nov 24, 2026, 3:39 AM UTC`: the page has no script, so it cannot know the reader's zone. */
function minuteOf(iso: string): string {
  const text = new Date(iso).toLocaleString('en-US', {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  });
  return `${text} UTC`;
}

function questionOf({ code, budgetName, scope, limitMicros }: Approval): string {
  const budget = `the budget "${budgetName ?? ''}"`;
  if (code === 'insufficient_balance') return 'The balance does not cover this call.';
  if (code === 'approval_required') {
    return `This developer is not approved for ${budget} and asks to charge it.`;
  }
  const limit = usd(limitMicros ?? 0);
  if (scope === 'per_call') return `At most ${limit} is allowed for one call from ${budget}.`;
  return scope === 'window'
    ? `This call costs more than ${budget} has left in its current window, which allows ${limit}.`
    : `This call costs more than what is left of the total limit (${limit}) of ${budget}.`;
}

async function answersOf(api: Api, approval: Approval, token: string): Promise<string> {
  const form =
    '<form method="post" action="/approval">' +
    `<input type="hidden" name="link" value="${escapeHtml(token)}">`;
  const button = (decision: string, label: string, main = '') =>
    `${form}<p><button${main} name="decision" value="${decision}">${label}</button></p></form>`;
  const deny = button('deny', 'Deny');
  const MAIN = ' class="main"';
  if (approval.code === 'insufficient_balance') {
    const { consumerId, developerId } = approval;
    const url = api.topUpLinks.urlFor(consumerId, developerId, await shortfallNow(api, approval));
    return `<p><a class="button main" href="${escapeHtml(url)}">Top up</a></p>${deny}`;
  }
  const once = button('once', 'Allow this call once', MAIN);
  if (approval.code === 'approval_required') {
    return `${once}${button('always', 'Always allow this developer')}${deny}`;
  }
  return (
    `${once}${button('always', 'Raise the limit just enough')}${form}` +
    `<label for="limit">${RAISED_LIMIT_LABELS[approval.scope ?? 'total']}</label><div class="row">` +
    '<input id="limit" name="limit" type="number" inputmode="decimal" min="0" step="any" required>' +
    `<button name="decision" value="raise">Raise</button></div></form>${deny}`
  );
}

function ended(approval: Approval): HtmlPage {
  const { status, decision, raisedToMicros, amountMicros } = approval;
  const raised = raisedToMicros === null ? '' : ` The limit is now ${usd(raisedToMicros)}.`;
  const text = {
    approved:
      decision === 'once'
        ? `One call for up to ${usd(amountMicros)} is allowed within 24 hours.`
        : `The call is allowed.${raised}`,
    denied: 'The call stays refused.',
    expired: hasKeyEnded(approval)
      ? 'The key that asked has ended, or its budget was closed. The call stays refused.'
      : 'The request expired without a decision. The call stays refused.',
    pending: '',
  }[status];
  const title = {
    approved: 'Allowed',
    denied: 'Denied',
    expired: hasKeyEnded(approval) ? 'No longer needed' : 'Expired',
    pending: '',
  }[status];
  return {
    title,
    isCard: true,
    body: `${BRAND}<h1>${title}</h1><p role="status">${text} You can close this page.</p>`,
  };
}

function usd(micros: number): string {
  return formatDollars(asMicros(micros));
}
