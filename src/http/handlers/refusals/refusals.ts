/** What a developer's callers were refused: up to a few seconds old. */
import type { RefusalsQuery, RefusalsReply } from '../../../schemas/refusals.ts';
import { listRefusals } from '../../../store/refusals/refusals.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';

const LISTED_MAX = 200;
const HOURS_DEFAULT = 24;

export async function getRefusals(
  api: Api,
  { caller, query }: Request<undefined, RefusalsQuery>,
): Promise<Reply<RefusalsReply>> {
  const found = await listRefusals(api.database, caller.developerId, {
    hours: query.hours ?? HOURS_DEFAULT,
    limit: LISTED_MAX,
  });
  const refusals = found.map(({ code, tool, count, lastAt, requestIds }) => ({
    code,
    tool: tool === '' ? null : tool,
    count,
    lastAt,
    requestIds,
  }));
  return { status: 200, body: { refusals } };
}
