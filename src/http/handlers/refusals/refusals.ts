/** What a developer's callers, and the keys of a budget, were refused: up to a few seconds old. */
import { wireId } from '../../../domain/ids.ts';
import type {
  BudgetRefusalsReply,
  RefusalsQuery,
  RefusalsReply,
} from '../../../schemas/refusals.ts';
import { listKeyRefusals } from '../../../store/refusals/key-refusals.ts';
import { listRefusals } from '../../../store/refusals/refusals.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { numberOfSeen, seenBy } from '../budgets/budgets.ts';

const LISTED_MAX = 200;
const HOURS_DEFAULT = 24;

export async function getRefusals(
  api: Api,
  { caller, query }: Request<undefined, RefusalsQuery>,
): Promise<Reply<RefusalsReply>> {
  const found = await listRefusals(api.database, caller.developerId, rangeOf(query));
  const refusals = found.map(({ code, tool, count, lastAt, requestIds }) => ({
    code,
    tool: tool === '' ? null : tool,
    count,
    lastAt,
    requestIds,
  }));
  return { status: 200, body: { refusals } };
}

/** A node that the caller does not see answers 404. */
export async function getBudgetRefusals(
  api: Api,
  { caller, params, query }: Request<undefined, RefusalsQuery>,
): Promise<Reply<BudgetRefusalsReply>> {
  const seen = await seenBy(api, caller);
  const budgetId = params['id'] ?? '';
  const node = { ...seen, number: await numberOfSeen(api, seen, budgetId) };
  const found = await listKeyRefusals(api.database, node, rangeOf(query));
  const refusals = found.map(({ keyId, keyName, code, count, lastAt }) => ({
    keyId: wireId('key', keyId),
    keyName,
    code,
    count,
    lastAt,
  }));
  return { status: 200, body: { budgetId, refusals } };
}

function rangeOf({ hours = HOURS_DEFAULT }: RefusalsQuery) {
  return { hours, limit: LISTED_MAX };
}
