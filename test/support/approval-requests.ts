/** Requests about approvals, as tests make them. */
import type { Static } from 'typebox';
import { ApprovalReply } from '../../src/schemas/approvals.ts';
import type { TestAccount } from './accounts.ts';
import { bodyOf, call, type Answer } from './http.ts';
import { until } from './stack.ts';

type Server = { readonly url: string };
type Body = Readonly<Record<string, unknown>>;
export type Approval = Static<typeof ApprovalReply>;

const WAIT_SECONDS_MAX = 50;

/** About a call of `search` by the account's own developer. */
export function tryAsk(
  server: Server,
  { developerId }: TestAccount,
  key: string,
  amount: number,
  changes: Body = {},
): Promise<Answer> {
  const body = { developerId, tool: 'search', amount, ...changes };
  return call(server, 'POST', '/v1/approvals', { key, body });
}

export async function ask(
  server: Server,
  account: TestAccount,
  key: string,
  amount: number,
  changes: Body = {},
): Promise<Approval> {
  return bodyOf(await tryAsk(server, account, key, amount, changes), 201, ApprovalReply);
}

export function tryDecide(server: Server, key: string, id: string, body: Body): Promise<Answer> {
  return call(server, 'POST', `/v1/approvals/${id}/decide`, { key, body });
}

export async function decide(
  server: Server,
  key: string,
  id: string,
  decision: string,
  more: Body = {},
): Promise<Approval> {
  return bodyOf(await tryDecide(server, key, id, { decision, ...more }), 200, ApprovalReply);
}

/** Waits for so many seconds at most. */
export async function showApproval(
  server: Server,
  key: string,
  id: string,
  wait = 0,
): Promise<Approval> {
  const query = wait === 0 ? '' : `?wait=${wait}`;
  return bodyOf(
    await call(server, 'GET', `/v1/approvals/${id}${query}`, { key }),
    200,
    ApprovalReply,
  );
}

/**
 * The answer, once every server heeds it. On a busy machine, a decision takes longer than one request waits for it:
 * then another one does, as those of clients do.
 */
export function untilDecided(server: Server, key: string, id: string): Promise<Approval> {
  return until(async () => {
    const query = `?wait=${WAIT_SECONDS_MAX}`;
    const answer = await call(server, 'GET', `/v1/approvals/${id}${query}`, { key });
    if (answer.status === 429 || answer.status === 503) return undefined;
    const approval = bodyOf(answer, 200, ApprovalReply);
    return approval.decision !== null && approval;
  });
}
