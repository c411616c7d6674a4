/** Spend keys of a budget: made and shown once, listed, rolled and revoked. */
import { SPEND_KEYS_MAX } from '../../../domain/budget.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { modeOf } from '../../../domain/mode.ts';
import type { SpendKeyBody, SpendKeysReply } from '../../../schemas/budgets.ts';
import type { KeyReply, NewKeyReply } from '../../../schemas/keys.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import { hashOfKey, newKey } from '../../../store/accounts/accounts.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import { getBudgetOfNumber } from '../../../store/budgets/budgets.ts';
import {
  listSpendKeys,
  makeSpendKey,
  revokeSpendKey,
  rollSpendKey,
  type MadeSpendKey,
  type SpendKey,
} from '../../../store/budgets/spend-keys.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { budgetClosed, changeable, futureOf, seenBy } from './budgets.ts';

export async function postSpendKey(
  api: Api,
  { caller, params, body }: Request<SpendKeyBody>,
): Promise<Reply<NewKeyReply, 201>> {
  const seen = await seenBy(api, caller);
  const budget = await changeable(api, seen, params);
  const { name = null, expiresAt } = body;
  const { key, stored } = freshKey(api, caller);
  const made = await makeSpendKey(api.database, seen, budget.number, {
    ...stored,
    name,
    expiresAt: expiresAt === undefined ? null : futureOf(expiresAt),
  });
  return { status: 201, body: shownOnce(caller, made, name, key), headers: NO_STORE };
}

/** Newest first, those that have ended too. */
export async function getSpendKeys(
  api: Api,
  { caller, params, query }: Request<undefined, PageQuery>,
): Promise<Reply<SpendKeysReply>> {
  const seen = await seenBy(api, caller);
  const budget = await changeable(api, seen, params);
  const { rows, ...marks } = await listPage(query, 'key', (page) =>
    listSpendKeys(api.database, seen, budget.number, page),
  );
  return {
    status: 200,
    body: { keys: rows.map((key) => listed(caller, key, budget.id)), ...marks },
  };
}

/** Undefined unless the caller sees this key and it is active. */
export async function rolled(
  api: Api,
  caller: KeyOwner,
  id: string,
  overlapSeconds: number,
): Promise<NewKeyReply | undefined> {
  const seen = await seenBy(api, caller);
  const { key, stored } = freshKey(api, caller);
  const { name = null, ...made } = await rollSpendKey(
    api.database,
    seen,
    id,
    overlapSeconds,
    stored,
  );
  return made.kind === 'unknown_key' ? undefined : shownOnce(caller, made, name, key);
}

/** Undefined unless the caller sees this key and it is active. */
export async function revoked(
  api: Api,
  caller: KeyOwner,
  id: string,
): Promise<KeyReply | undefined> {
  const seen = await seenBy(api, caller);
  const key = await revokeSpendKey(api.database, seen, id);
  if (!key) return undefined;
  return listed(caller, key, (await getBudgetOfNumber(api.database, seen, key.budget)).id);
}

/** A key must be in no cache, the browser's own among them. */
export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

function freshKey({ keyPrefix }: Api, caller: KeyOwner) {
  const { accountId } = caller;
  const key = newKey(keyPrefix, 'consumer', modeOf(caller));
  return { key, stored: { hash: hashOfKey(key), lastFour: key.slice(-4), accountId } };
}

function shownOnce(
  caller: KeyOwner,
  made: MadeSpendKey,
  name: string | null,
  key: string,
): NewKeyReply {
  const mode = modeOf(caller);
  switch (made.kind) {
    case 'made': {
      const budgetId = wireId('budget', made.budget.id);
      return { id: wireId('key', made.id), kind: 'consumer', mode, budgetId, name, key };
    }
    case 'closed':
      throw budgetClosed();
    case 'too_many':
      throw new ApiError('invalid_request', `An account has at most ${SPEND_KEYS_MAX} spend keys.`);
  }
}

function listed(caller: KeyOwner, key: SpendKey, budgetId: string): KeyReply {
  return {
    id: wireId('key', key.id),
    kind: 'consumer',
    mode: modeOf(caller),
    budgetId: wireId('budget', budgetId),
    name: key.name,
    lastFour: key.lastFour,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    revokedAt: key.revokedAt,
    lastUsedAt: key.lastUsedAt,
  };
}
