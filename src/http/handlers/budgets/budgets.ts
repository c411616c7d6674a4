/**
 * Budgets over HTTP. The owner and keys of the account see the whole tree. A spend key sees its own node, and the
 * nodes below it when its node may delegate. A node that a key does not see answers 404.
 */
import { BUDGET_DEPTH_MAX, BUDGETS_MAX, type WindowUnit } from '../../../domain/budget.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId, uuidTime } from '../../../domain/ids.ts';
import { parseTime } from '../../../domain/iso-time.ts';
import { dollarsOf, LARGEST_AMOUNT, type Dollars, type Micros } from '../../../domain/money.ts';
import type {
  BudgetBody,
  BudgetChanges,
  BudgetReply,
  BudgetsQuery,
  BudgetsReply,
  CloseBudgetBody,
} from '../../../schemas/budgets.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import type { Budget } from '../../../store/budgets/budget.ts';
import {
  findBudget,
  findBudgetNumber,
  getBudgetOfNumber,
  lastNumberFor,
  listBudgets,
  type TreeView,
} from '../../../store/budgets/budgets.ts';
import {
  changeBudget,
  closeBudget,
  findKnownBudget,
  makeBudget,
  NO_LIMITS,
  type BudgetSettings,
} from '../../../store/budgets/change-budgets.ts';
import { releaseOpenHolds } from '../../../store/budgets/open-holds.ts';
import { reopenBudget } from '../../../store/budgets/reopen-budget.ts';
import { credentialOf } from '../../authenticate.ts';
import { afterCommit } from '../../answer-errors.ts';
import { amountOf, CHARGEABLE, type AmountRule } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { noSuch } from '../../look-ups.ts';
import { invalidCursor, listPage } from '../../pagination.ts';
import { keyReused, retryOf } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import type { Api } from '../../services.ts';

/** The largest possible balance. */
export const LIMIT: AmountRule = {
  accepts: (amount) => amount >= 0,
  says: `at least 0 and at most ${LARGEST_AMOUNT}, with at most six decimals`,
};

/** What the caller sees, and the node of its spend key. */
interface Seen extends TreeView {
  readonly own: Budget | null;
}

/** A spend key whose budget has ended can no longer do anything. */
export async function seenBy(api: Api, caller: KeyOwner): Promise<Seen> {
  const { ledger, consumerId, spend } = caller;
  const number = spend?.path.at(-1);
  const by = credentialOf(caller);
  if (number === undefined) return { ledger, consumerId, root: null, own: null, by };
  const own = await getBudgetOfNumber(api.database, caller, number);
  if (own.status !== 'active') {
    throw new ApiError('invalid_api_key', `The budget of this key is ${own.status}.`);
  }
  return { ledger, consumerId, root: { number, withBelow: own.mayDelegate }, own, by };
}

/** A caller with a node of its own may change the budgets below that node, if the node may delegate. */
export async function changeable(api: Api, seen: Seen, params: Request['params']): Promise<Budget> {
  const budget = await getSeen(api, seen, params['id'] ?? '');
  if (seen.own && (!seen.own.mayDelegate || budget.id === seen.own.id)) throw notDelegated();
  return budget;
}

export async function getBudgets(
  api: Api,
  { caller, query }: Request<undefined, BudgetsQuery>,
): Promise<Reply<BudgetsReply>> {
  const seen = await seenBy(api, caller);
  const { parentId } = query;
  const parent = parentId === undefined ? undefined : await numberOfSeen(api, seen, parentId);
  const { rows, ...marks } = await listPage(query, 'budget', (page) =>
    listBudgets(api.database, seen, parent, page),
  );
  // The cursor of another account shows nothing, which must not look like the end of the list.
  const after = rows.length === 0 && query.cursor ? uuidOf('budget', query.cursor) : undefined;
  if (after && !(await findBudget(api.database, seen, after))) throw invalidCursor();
  return { status: 200, body: { budgets: rows.map((found) => wireBudget(seen, found)), ...marks } };
}

export async function getBudget(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<BudgetReply>> {
  const seen = await seenBy(api, caller);
  return { status: 200, body: wireBudget(seen, await getSeen(api, seen, params['id'] ?? '')) };
}

export async function postBudget(
  api: Api,
  { caller, body, idempotencyKey }: Request<BudgetBody>,
): Promise<Reply<BudgetReply, 201>> {
  const seen = await seenBy(api, caller);
  if (seen.own && !seen.own.mayDelegate) throw notDelegated();
  const parentId = body.parentId ? idOf(body.parentId) : (seen.own?.id ?? null);
  const retry = retryOf(scopeOf(seen), idempotencyKey, comparable(body, parentId));
  // First: a retry gets the same budget, even if `expiresAt` has passed by now.
  const known = await findKnownBudget(api.database, seen, retry);
  const settings = () => ({ ...NO_LIMITS, ...settingsOf(api, body), name: body.name });
  const made = known ?? (await makeBudget(api.database, seen, parentId, settings(), retry));
  switch (made.kind) {
    case 'made':
    case 'known':
      return {
        status: 201,
        body: wireBudget(seen, made.budget),
        ...(made.kind === 'known' && { headers: REPLAYED }),
      };
    case 'key_reused':
      throw keyReused();
    case 'unknown_parent':
      throw noSuch('budget', 'parentId');
    case 'closed':
      throw budgetClosed();
    case 'too_deep':
      throw invalidField(
        'parentId',
        `parentId is already at the deepest level, ${BUDGET_DEPTH_MAX} below the account.`,
      );
    case 'too_many':
      throw new ApiError('invalid_request', tooMany('budgets', 'closed', seen, BUDGETS_MAX));
  }
}

/** A retry may leave out what is a default. Stored hashes depend on the order of the members. */
function comparable(body: BudgetBody, parentId: string | null) {
  const { limit = null, window = null, maxPerCall = null, tools = null, developers = null } = body;
  const { mayDelegate = false, expiresAt = null, metadata = null, name } = body;
  const { allowLeases = false, maxLease = null } = body;
  const { approveDevelopers = false, approvedDevelopers = [] } = body;
  return {
    name,
    parentId,
    limit,
    window,
    maxPerCall,
    tools,
    developers,
    mayDelegate,
    expiresAt,
    metadata,
    approveDevelopers,
    approvedDevelopers,
    allowLeases,
    maxLease,
  };
}

export function tooMany(what: string, ended: string, seen: TreeView, max: number): string {
  const last = lastNumberFor(seen, max);
  return `You can create ${what} until the account has ${last} of them, including ${ended} ones.`;
}

export async function patchBudget(
  api: Api,
  { caller, params, body }: Request<BudgetChanges>,
): Promise<Reply<BudgetReply>> {
  const seen = await seenBy(api, caller);
  const { id } = await changeable(api, seen, params);
  return changed(api, seen, await changeBudget(api.database, seen, id, settingsOf(api, body)));
}

/** Closes all that is below too; closing it again answers the same, and releases what is left to release. */
export async function postBudgetClosing(
  api: Api,
  { caller, params, body }: Request<CloseBudgetBody>,
): Promise<Reply<BudgetReply>> {
  const seen = await seenBy(api, caller);
  const { id, number } = await changeable(api, seen, params);
  const closed = await closeBudget(api.database, seen, id);
  if (closed.kind === 'for_owner') throw onlyByOwner();
  const reply = changed(api, seen, closed);
  if (body.releaseHolds !== true) return reply;
  return afterCommit(async () => {
    await releaseOpenHolds(api.database, seen, { number });
    return { status: 200, body: wireBudget(seen, await getSeen(api, seen, params['id'] ?? '')) };
  });
}

/** Only a budget that limits a single developer. Keys of any other budget were handed out, and stay ended. */
export async function postBudgetReopening(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<BudgetReply>> {
  const seen = await seenBy(api, caller);
  const { accountId } = caller;
  const reopened = await reopenBudget(
    api.database,
    { ...seen, accountId },
    idOf(params['id'] ?? ''),
  );
  if (reopened.kind === 'not_reopenable') throw notReopenable();
  return changed(api, seen, reopened);
}

function changed(
  api: Api,
  seen: Seen,
  result: Awaited<ReturnType<typeof changeBudget>>,
): Reply<BudgetReply> {
  switch (result.kind) {
    case 'changed':
      api.budgets.forget({ consumerId: seen.consumerId, number: result.budget.number });
      return { status: 200, body: wireBudget(seen, result.budget) };
    case 'unknown_budget':
      throw noSuch('budget');
    case 'closed':
      throw budgetClosed();
  }
}

export async function getSeen(api: Api, seen: Seen, wire: string): Promise<Budget> {
  const budget = await findBudget(api.database, seen, idOf(wire));
  if (!budget) throw noSuch('budget');
  return budget;
}

/** When its number is all that is needed. */
export async function numberOfSeen(api: Api, seen: Seen, wire: string): Promise<number> {
  const number = await findBudgetNumber(api.database, seen, idOf(wire));
  if (number === null) throw noSuch('budget');
  return number;
}

function idOf(wire: string): string {
  const id = uuidOf('budget', wire);
  if (id === undefined) throw noSuch('budget');
  return id;
}

/** Callers that see different parts of a tree have different idempotency keys. */
export function scopeOf({ root }: Seen): string {
  return String(root?.number ?? 0);
}

/** Contains only the settings that the body contains. */
function settingsOf(api: Api, body: BudgetChanges): Partial<BudgetSettings> {
  const { name, limit, window, maxPerCall, tools, developers, mayDelegate, metadata, expiresAt } =
    body;
  const { approveDevelopers, approvedDevelopers } = body;
  const { allowLeases, maxLease } = body;
  return {
    ...(name !== undefined && { name }),
    ...(limit !== undefined && { limitMicros: limitOf('limit', limit, LIMIT) }),
    ...(window !== undefined && { window: window && windowOf(window) }),
    ...(maxPerCall !== undefined && {
      maxPerCallMicros: limitOf('maxPerCall', maxPerCall, CHARGEABLE),
    }),
    ...(allowLeases !== undefined && { allowLeases }),
    ...(maxLease !== undefined && { maxLeaseMicros: limitOf('maxLease', maxLease, CHARGEABLE) }),
    ...(tools !== undefined && { tools }),
    ...(developers !== undefined && {
      developers: developers && developers.map((id) => uuidOf('developer', id) ?? ''),
    }),
    ...(approveDevelopers !== undefined && { approveDevelopers }),
    ...(approvedDevelopers !== undefined && {
      approvedDevelopers: approvedDevelopers.map((id) => uuidOf('developer', id) ?? ''),
    }),
    ...(mayDelegate !== undefined && { mayDelegate }),
    ...(metadata !== undefined && { metadata: metadata && JSON.stringify(metadata) }),
    ...(expiresAt !== undefined && {
      expiresAt: expiresAt === null ? null : futureOf(api, expiresAt),
    }),
  };
}

function windowOf({ per, limit }: { per: WindowUnit; limit: number | string }) {
  return { unit: per, limitMicros: amountOf('window.limit', limit, LIMIT) };
}

function limitOf(param: string, sent: number | string | null, rule: AmountRule): Micros | null {
  return sent === null ? null : amountOf(param, sent, rule);
}

/** As ISO 8601 in UTC. */
export function futureOf({ clock }: Api, expiresAt: string): string {
  const timeMs = parseTime(expiresAt);
  if (timeMs > clock.nowMs()) return new Date(timeMs).toISOString();
  throw invalidField('expiresAt', 'expiresAt must be a time in the future, in ISO 8601.');
}

export function budgetClosed(): ApiError {
  return new ApiError(
    'budget_closed',
    'The budget is closed or expired, or one above it is. Create a new one, or set a later expiresAt if it has expired.',
  );
}

function onlyByOwner(): ApiError {
  return new ApiError(
    'session_required',
    'The budget limits a single developer, which cannot charge keys of the account once it is closed. Only the owner can close and reopen it, in the console.',
  );
}

function notReopenable(): ApiError {
  return new ApiError(
    'budget_not_reopenable',
    'Only a budget that limits a single developer to consumer keys of the account can be reopened. Create a new budget.',
  );
}

function notDelegated(): ApiError {
  return new ApiError(
    'delegation_not_allowed',
    'A spend key can create and change budgets only below its own, and only if its own has mayDelegate.',
  );
}

function wireBudget({ own }: Seen, budget: Budget): BudgetReply {
  const { parentId, window } = budget;
  return {
    id: wireId('budget', budget.id),
    parentId: parentId === null || budget.id === own?.id ? null : wireId('budget', parentId),
    name: budget.name,
    status: budget.status,
    limit: dollarsOrNull(budget.limitMicros),
    used: dollarsOf(budget.usedMicros),
    window: window && {
      per: window.unit,
      limit: dollarsOf(window.limitMicros),
      used: dollarsOf(window.usedMicros),
      resetsAt: window.resetsAt,
    },
    remaining: dollarsOrNull(budget.remainingMicros),
    maxPerCall: dollarsOrNull(budget.maxPerCallMicros),
    allowLeases: budget.allowLeases,
    maxLease: dollarsOrNull(budget.maxLeaseMicros),
    tools: budget.tools && [...budget.tools],
    developers: budget.developers && budget.developers.map((id) => wireId('developer', id)),
    approveDevelopers: budget.approveDevelopers,
    approvedDevelopers: budget.approvedDevelopers.map((id) => wireId('developer', id)),
    mayDelegate: budget.mayDelegate,
    limitsConsumerKeys: budget.limitsConsumerKeys,
    expiresAt: budget.expiresAt,
    metadata: budget.metadata,
    createdAt: uuidTime(budget.id),
  };
}

function dollarsOrNull(micros: Micros | null): Dollars | null {
  return micros === null ? null : dollarsOf(micros);
}
