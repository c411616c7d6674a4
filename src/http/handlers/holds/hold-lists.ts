/** Holds as their developer and their consumer read them. */
import { HOLD_STATUSES } from '../../../domain/hold.ts';
import { uuidOf } from '../../../domain/ids.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import {
  findHold,
  listHolds,
  type HoldOwner,
  type ListedHold,
} from '../../../store/holds/list-holds.ts';
import type { Answer, Request } from '../../endpoint.ts';
import { oneOf, paged, pageOf } from '../../query.ts';
import type { Api } from '../../services.ts';
import { unknownHold, wireHold } from './holds.ts';

export async function getHolds(api: Api, { caller, query }: Request<undefined>): Promise<Answer> {
  const page = pageOf(query, 'hold');
  const status = oneOf(query, 'status', HOLD_STATUSES);
  const rows = await listHolds(api.database, ownerOf(caller), status, {
    ...page,
    limit: page.limit + 1,
  });
  const { rows: holds, ...marks } = paged(rows, page.limit, 'hold');
  return { status: 200, body: { holds: holds.map((hold) => viewOf(caller, hold)), ...marks } };
}

export async function getHold(api: Api, { caller, params }: Request<undefined>): Promise<Answer> {
  const id = uuidOf('hold', params['id'] ?? '');
  const found = id && (await findHold(api.database, ownerOf(caller), id));
  if (!found) throw unknownHold();
  return { status: 200, body: viewOf(caller, found) };
}

function ownerOf(caller: KeyOwner): HoldOwner {
  return caller.kind === 'developer'
    ? { ...caller, kind: 'developer' }
    : { ...caller, kind: 'consumer' };
}

/** What a developer noted of a hold is its own. */
function viewOf({ kind }: KeyOwner, hold: ListedHold): object {
  const view = wireHold(hold, hold.developerId);
  return kind === 'developer' ? { ...view, metadata: hold.metadata } : view;
}
