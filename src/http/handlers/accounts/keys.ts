/**
 * The keys of the account that is signed in. A key is shown once, when it is created. No key can create or revoke
 * another key of the account. Spend keys are created in handlers/budgets; they are rolled and revoked here too.
 */
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import type { KeyKind } from '../../../domain/api-keys.ts';
import { modeOf, type Mode } from '../../../domain/mode.ts';
import type {
  KeyBody,
  KeyReply,
  KeysReply,
  NewKeyReply,
  RevokeBody,
  RollBody,
  SessionReply,
} from '../../../schemas/keys.ts';
import { getAccount, lockAccount } from '../../../store/accounts/accounts.ts';
import {
  countKeys,
  expireKey,
  findKey,
  findKnownKey,
  insertKeys,
  listKeys,
  newKeyRow,
  revokeActiveKey,
  revokeKey,
  type KeyOwner,
  type KnownKey,
  type StoredKey,
  type WhichKey,
} from '../../../store/accounts/api-keys.ts';
import {
  ensureTestAccount,
  getHolder,
  type Holder,
} from '../../../store/accounts/test-accounts.ts';
import { releaseOpenHolds } from '../../../store/budgets/open-holds.ts';
import type { Transaction } from '../../../store/database.ts';
import { afterCommit } from '../../answer-errors.ts';
import { freshKey, knownKey, type KeyToShow } from '../../derived-keys.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { cannotShowAgain, keyReused, retryOf, type Repeatable } from '../../repeated-requests.ts';
import { NO_STORE, REPLAYED } from '../../respond.ts';
import type { Api } from '../../services.ts';
import { isSignedIn } from '../../callers.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { revokeIfSpendKey, rollIfSpendKey } from '../budgets/spend-keys.ts';

/** The most active keys of an account: far more than anybody needs. */
const KEYS_MAX = 100;
/** Inactive ones stay in the list. A hundred keys, each replaced every month, reach it after eight years. */
const KEYS_EVER_MAX = 10_000;

export async function getSession(api: Api, { caller }: Request): Promise<Reply<SessionReply>> {
  const account = await getAccount(api.database, caller.accountId);
  const { email, consumerId, developerId, isOperator } = account;
  return {
    status: 200,
    body: {
      email,
      consumerId: wireId('consumer', consumerId),
      developerId: wireId('developer', developerId),
      keyPrefix: api.keyPrefix,
      apiUrl: api.config.baseUrl,
      operator: isOperator,
      simulated: api.config.stripe.apiBase !== undefined,
      taxed: api.config.stripe.tax !== undefined,
    },
  };
}

/** Oldest first, including inactive keys. */
export async function getKeys(api: Api, { caller }: Request): Promise<Reply<KeysReply>> {
  await api.lastUsed.flush();
  const keys = await listKeys(api.database, caller.accountId);
  return { status: 200, body: { keys: keys.map(listed) } };
}

export async function postKey(
  api: Api,
  { caller, body, idempotencyKey }: Request<KeyBody>,
): Promise<Reply<NewKeyReply, 201>> {
  const { kind, name = null, mode } = body;
  const retry = retryOf(caller.accountId, idempotencyKey, { kind, name, mode: mode ?? 'live' });
  if (mode !== 'test') return makeAnother(api, caller, caller, { kind, name, retry });
  if (kind === 'legacy') {
    throw invalidField('kind', 'Legacy keys have no test mode, because they move no money.');
  }
  const { ledgerCount } = api.config;
  const test = await ensureTestAccount(api.database, caller.accountId, ledgerCount);
  return makeAnother(api, caller, test, { kind, name, retry });
}

/** A new key with the same kind, mode and name. The old one stops working at once, or after the overlap. */
export async function postKeyRoll(
  api: Api,
  request: Request<RollBody>,
): Promise<Reply<NewKeyReply, 201>> {
  const { caller, params, body, idempotencyKey } = request;
  const which = keyOf(caller, params);
  const { overlapSeconds = 0 } = body;
  const spendKey = await rollIfSpendKey(api, request, which.id, overlapSeconds);
  if (spendKey) return spendKey;
  if (!isSignedIn(caller)) throw noSuchKey();
  const retry = retryOf(caller.accountId, idempotencyKey, { rolls: which.id, overlapSeconds });
  return api.database.transaction(async (tx) => {
    await lockAccount(tx, caller.accountId);
    const known = await findKnownKey(tx, retry);
    if (known) return replayed(api, caller, known, retry);
    // With an overlap, both keys are active.
    await refuseTooMany(tx, caller, overlapSeconds > 0 ? 1 : 0);
    const old =
      overlapSeconds === 0
        ? await revokeActiveKey(tx, which)
        : await expireKey(tx, which, overlapSeconds);
    if (!old) throw noSuchKey();
    return makeKey(api, tx, caller, old, { kind: old.kind, name: old.name, retry });
  });
}

export async function postKeyRevocation(
  api: Api,
  { caller, params, body }: Request<RevokeBody>,
): Promise<Reply<KeyReply>> {
  const which = keyOf(caller, params);
  const spendKey = await revokeIfSpendKey(api, caller, which.id, body);
  if (spendKey) return { status: 200, body: spendKey };
  if (!isSignedIn(caller)) throw noSuch('key');
  const key = await (body.releaseHolds === true
    ? revokeWithHolds(api, which)
    : revokeKey(api.database, which));
  if (!key) throw noSuch('key');
  return { status: 200, body: listed(key) };
}

async function revokeWithHolds({ database }: Api, which: WhichKey): Promise<StoredKey | null> {
  const found = await findKey(database, which);
  if (!found) return null;
  if (found.kind !== 'consumer') {
    throw invalidField('releaseHolds', 'Only consumer keys and spend keys have holds to release.');
  }
  const key = await revokeKey(database, which);
  return afterCommit(async () => {
    const holder = await getHolder(database, found.accountId);
    await releaseOpenHolds(database, holder, 'account_keys');
    return key;
  });
}

interface AskedKey {
  readonly kind: StoredKey['kind'];
  readonly name: string | null;
  readonly retry: Repeatable | undefined;
}

/** A key beside those that the account has. */
function makeAnother(
  api: Api,
  caller: KeyOwner,
  owner: Pick<Holder, 'accountId' | 'ledger'>,
  asked: AskedKey,
): Promise<Reply<NewKeyReply, 201>> {
  return api.database.transaction(async (tx) => {
    await lockAccount(tx, caller.accountId);
    const known = await findKnownKey(tx, asked.retry);
    if (known) return replayed(api, caller, known, asked.retry);
    await refuseTooMany(tx, caller, 1);
    return makeKey(api, tx, caller, owner, asked);
  });
}

/** Refuses if the account would have too many active keys. Call it in the transaction that has locked the account. */
async function refuseTooMany(
  tx: Transaction,
  { accountId }: KeyOwner,
  moreActive: number,
): Promise<void> {
  const { ever, active } = await countKeys(tx, accountId);
  if (ever >= KEYS_EVER_MAX) {
    throw new ApiError(
      'invalid_request',
      `An account has at most ${KEYS_EVER_MAX} keys, including revoked ones. Use another account.`,
    );
  }
  if (moreActive === 0 || active + moreActive <= KEYS_MAX) return;
  throw new ApiError(
    'invalid_request',
    `An account has at most ${KEYS_MAX} active keys. Revoke one.`,
  );
}

async function makeKey(
  api: Api,
  tx: Transaction,
  caller: KeyOwner,
  owner: Pick<Holder, 'accountId' | 'ledger'>,
  { kind, name, retry }: AskedKey,
): Promise<Reply<NewKeyReply, 201>> {
  const mode = modeOf(owner);
  const key = freshKey(api, keyToShow(caller, kind, mode), retry);
  const [id = ''] = await insertKeys(tx, [
    { ...newKeyRow(key, kind, owner.accountId, name), retry },
  ]);
  const body = { id: wireId('key', id), kind, mode, name, key };
  return { status: 201, body, headers: NO_STORE };
}

function replayed(
  api: Api,
  caller: KeyOwner,
  known: KnownKey,
  retry: Repeatable | undefined,
): Reply<NewKeyReply, 201> {
  const { kind, name } = known;
  const mode = modeOf(known);
  if (!known.isSame || !retry) throw keyReused();
  const key = knownKey(api, keyToShow(caller, kind, mode), retry, known.hash);
  if (key === undefined) throw cannotShowAgain();
  const body = { id: wireId('key', known.id), kind, mode, name, key };
  return { status: 201, body, headers: { ...NO_STORE, ...REPLAYED } };
}

function keyToShow({ accountId }: KeyOwner, kind: KeyKind, mode: Mode): KeyToShow {
  return { kind, mode, owner: `key ${accountId}` };
}

function listed(key: StoredKey): KeyReply {
  return {
    id: wireId('key', key.id),
    kind: key.kind,
    mode: modeOf(key),
    name: key.name,
    lastFour: key.lastFour,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    revokedAt: key.revokedAt,
    lastUsedAt: key.lastUsedAt,
  };
}

function keyOf({ accountId }: KeyOwner, params: Readonly<Record<string, string>>) {
  const id = idIn('key', params);
  if (id === undefined) throw noSuch('key');
  return { id, accountId };
}

function noSuchKey(): ApiError {
  return new ApiError('not_found', 'There is no such key, or it is no longer active.');
}
