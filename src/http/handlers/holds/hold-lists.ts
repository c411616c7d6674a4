/** Holds as their developer and their consumer see them. */
import type { HoldsQuery, HoldsReply, ListedHold } from '../../../schemas/holds.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import {
  findHold,
  listHolds,
  type HoldOwner,
  type StoredHold,
} from '../../../store/holds/list-holds.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { idIn } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { unknownHold, wireHold } from './holds.ts';

export async function getHolds(
  api: Api,
  { caller, query }: Request<undefined, HoldsQuery>,
): Promise<Reply<HoldsReply>> {
  const { rows, ...marks } = await listPage(query, 'hold', (page) =>
    listHolds(api.database, ownerOf(caller), query.status, page),
  );
  return { status: 200, body: { holds: rows.map((hold) => viewOf(caller, hold)), ...marks } };
}

export async function getHold(api: Api, { caller, params }: Request): Promise<Reply<ListedHold>> {
  const id = idIn('hold', params);
  const found = id && (await findHold(api.database, ownerOf(caller), id));
  if (!found) throw unknownHold();
  return { status: 200, body: viewOf(caller, found) };
}

function ownerOf(caller: KeyOwner): HoldOwner {
  return caller.kind === 'developer'
    ? { ...caller, kind: 'developer' }
    : { ...caller, kind: 'consumer' };
}

/** Only the developer sees its metadata. */
function viewOf({ kind }: KeyOwner, hold: StoredHold): ListedHold {
  const view = wireHold(hold, hold.developerId);
  return kind === 'developer' ? { ...view, metadata: hold.metadata } : view;
}
