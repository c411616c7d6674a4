/** Spend keys of a budget: created and shown once, listed, rolled and revoked. */
import { SPEND_KEYS_MAX } from '../../../domain/budget.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { modeOf } from '../../../domain/mode.ts';
import type { SpendKeyBody, SpendKeysReply } from '../../../schemas/budgets.ts';
import type { KeyReply, NewKeyReply, RevokeBody } from '../../../schemas/keys.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import { storedOf } from '../../../store/accounts/api-keys.ts';
import type { Budget } from '../../../store/budgets/budget.ts';
import { releaseOpenHolds } from '../../../store/budgets/open-holds.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import { getBudgetOfNumber, type TreeView } from '../../../store/budgets/budgets.ts';
import {
  findKnownSpendKey,
  listSpendKeys,
  makeSpendKey,
  revokeSpendKey,
  rollSpendKey,
  type KnownSpendKey,
  type MadeSpendKey,
  type SpendKey,
} from '../../../store/budgets/spend-keys.ts';
import { afterCommit } from '../../answer-errors.ts';
import { freshKey, knownKey, type KeyToShow } from '../../derived-keys.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { cannotShowAgain, keyReused, retryOf, type Repeatable } from '../../repeated-requests.ts';
import { NO_STORE, REPLAYED } from '../../respond.ts';
import { budgetClosed, changeable, futureOf, scopeOf, seenBy, tooMany } from './budgets.ts';

export async function postSpendKey(
  api: Api,
  { caller, params, body, idempotencyKey }: Request<SpendKeyBody>,
): Promise<Reply<NewKeyReply, 201>> {
  const seen = await seenBy(api, caller);
  const { id, number } = await changeable(api, seen, params);
  const { name = null, expiresAt = null } = body;
  const retry = retryOf(scopeOf(seen), idempotencyKey, { id, name, expiresAt });
  // First: a retry gets the same key, even if `expiresAt` has passed by now.
  const known = await findKnownSpendKey(api.database, seen, retry);
  if (known) return replayed(api, caller, seen, known, retry);
  const { key, stored } = newSpendKey(api, caller, seen, retry);
  const made = await makeSpendKey(
    api.database,
    seen,
    number,
    { ...stored, name, expiresAt: expiresAt === null ? null : futureOf(api, expiresAt) },
    retry,
  );
  return made.kind === 'known' || made.kind === 'key_reused'
    ? replayed(api, caller, seen, made, retry)
    : { status: 201, body: shownOnce(caller, seen, made, key), headers: NO_STORE };
}

function replayed(
  api: Api,
  caller: KeyOwner,
  seen: TreeView,
  made: KnownSpendKey,
  retry: Repeatable | undefined,
): Reply<NewKeyReply, 201> {
  if (made.kind !== 'known' || !retry) throw keyReused();
  const key = knownKey(api, spendKeyOf(caller, seen), retry, made.hash);
  if (key === undefined) throw cannotShowAgain();
  const body = keyReply(caller, made.id, made.budget, made.name, key);
  return { status: 201, body, headers: { ...NO_STORE, ...REPLAYED } };
}

/** Newest first, including those that have ended. */
export async function getSpendKeys(
  api: Api,
  { caller, params, query }: Request<undefined, PageQuery>,
): Promise<Reply<SpendKeysReply>> {
  const seen = await seenBy(api, caller);
  const budget = await changeable(api, seen, params);
  await api.lastUsed.flush();
  const { rows, ...marks } = await listPage(query, 'key', (page) =>
    listSpendKeys(api.database, seen, budget.number, page),
  );
  return {
    status: 200,
    body: { keys: rows.map((key) => listed(caller, key, budget.id)), ...marks },
  };
}

/** Undefined unless the caller sees this key and it is active. */
export async function rollIfSpendKey(
  api: Api,
  { caller, idempotencyKey }: Request,
  id: string,
  overlapSeconds: number,
): Promise<Reply<NewKeyReply, 201> | undefined> {
  const seen = await seenBy(api, caller);
  const retry = retryOf(scopeOf(seen), idempotencyKey, { rolls: id, overlapSeconds });
  const { key, stored } = newSpendKey(api, caller, seen, retry);
  const made = await rollSpendKey(api.database, seen, id, overlapSeconds, stored, retry);
  if (made.kind === 'unknown_key') return undefined;
  if (made.kind === 'known' || made.kind === 'key_reused') {
    return replayed(api, caller, seen, made, retry);
  }
  const body = shownOnce(caller, seen, made, key);
  return { status: 201, body, headers: NO_STORE };
}

/** Undefined unless the caller sees this key. */
export async function revokeIfSpendKey(
  api: Api,
  caller: KeyOwner,
  id: string,
  { releaseHolds = false }: RevokeBody,
): Promise<KeyReply | undefined> {
  const seen = await seenBy(api, caller);
  const key = await revokeSpendKey(api.database, seen, id, { endsHolds: releaseHolds });
  if (!key) return undefined;
  return afterCommit(async () => {
    if (releaseHolds) await releaseOpenHolds(api.database, seen, { keyId: id });
    return listed(caller, key, (await getBudgetOfNumber(api.database, seen, key.budget)).id);
  });
}

function newSpendKey(api: Api, caller: KeyOwner, seen: TreeView, retry: Repeatable | undefined) {
  const key = freshKey(api, spendKeyOf(caller, seen), retry);
  const { accountId } = caller;
  return { key, stored: { ...storedOf(key), accountId } };
}

/**
 * Callers that see different parts of a tree may use the same idempotency key for the same request, and get
 * different keys.
 */
function spendKeyOf(caller: KeyOwner, { root }: TreeView): KeyToShow {
  const scope = root ? ` ${root.number}` : '';
  const owner = `spend key ${caller.consumerId}${scope}`;
  return { kind: 'consumer', mode: modeOf(caller), owner };
}

function shownOnce(
  caller: KeyOwner,
  seen: TreeView,
  made: Exclude<MadeSpendKey, KnownSpendKey>,
  key: string,
): NewKeyReply {
  switch (made.kind) {
    case 'made':
      return keyReply(caller, made.id, made.budget, made.name, key);
    case 'closed':
      throw budgetClosed();
    case 'too_many':
      throw new ApiError('invalid_request', tooMany('spend keys', 'revoked', seen, SPEND_KEYS_MAX));
  }
}

function keyReply(
  caller: KeyOwner,
  id: string,
  budget: Budget,
  name: string | null,
  key: string,
): NewKeyReply {
  const budgetId = wireId('budget', budget.id);
  return { id: wireId('key', id), kind: 'consumer', mode: modeOf(caller), budgetId, name, key };
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
