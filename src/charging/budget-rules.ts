/**
 * What budgets allow of each call, checked from memory before the debit: tools, developers, the amount of one call,
 * and whether each node on the path is open. Only the debit knows what a node has left.
 */
import { wireId } from '../domain/ids.ts';
import type { Micros } from '../domain/money.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { ApprovalRequired, LimitReached } from '../store/budgets/budget.ts';
import { findBudgetRules, type BudgetRules } from '../store/budgets/rules.ts';
import type { Database } from '../store/database.ts';
import type { DatabaseClock } from './database-clock.ts';
import { FreshCache } from './fresh-cache.ts';
import {
  BUDGETS_BYTES_MAX,
  BUDGETS_CACHED_MAX,
  BUDGETS_LOADED_MAX,
  CLOCK_SKEW_MS_MAX,
} from './limits.ts';
import { whenKnown, type MaybePromise } from './maybe-promise.ts';
import type { RecentChanges } from './recent-changes.ts';

/** A node of a path that has to be open and allow the call. */
interface Node {
  readonly id: string;
  readonly endsAtMs: number;
  readonly maxPerCallMicros: Micros | undefined;
  readonly allowsLeases: boolean;
  readonly maxLeaseMicros: Micros | undefined;
  readonly tools: ReadonlySet<string> | undefined;
  /** Ids in one text. */
  readonly developers: string | undefined;
  readonly approved: string | undefined;
  /** Until then, PostgreSQL decides whether a one-time approval lets a refused call pass. */
  readonly onceUntilMs: number;
}

/** What a charge or hold asks of a budget. The developer's id is a UUID. */
export interface Call {
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: Micros;
}

export type BudgetRefusal =
  | LimitReached
  | ApprovalRequired
  | {
      readonly kind: 'tool_not_allowed' | 'developer_not_allowed' | 'lease_not_allowed';
      readonly budgetId: string;
    }
  /** The budget has ended, and its keys with it. A key of the account still works for other developers. */
  | { readonly kind: 'invalid_api_key' };

/** Refused from memory, but the owner may have approved it once: the debit decides. */
export interface ToBeDecided {
  readonly kind: 'needs_approval';
  /** The refusal unless there is such an approval. */
  readonly refusal: BudgetRefusal;
}

export class BudgetRulesCache {
  readonly #cache: FreshCache<Node>;
  readonly #clock: Pick<DatabaseClock, 'nowMs'>;
  /** The paths of keys in memory, so that a charge need not look up each node of its path: those of one version. */
  #paths = new WeakMap<Spend['path'], readonly Node[]>();
  #pathsVersion: number | undefined;

  constructor(database: Database, changes: RecentChanges, clock: Pick<DatabaseClock, 'nowMs'>) {
    this.#clock = clock;
    this.#cache = new FreshCache<Node>({
      entriesMax: BUDGETS_CACHED_MAX,
      bytes: { max: BUDGETS_BYTES_MAX, of: bytesOf },
      loadedMax: BUDGETS_LOADED_MAX,
      load: async (names) => byName(await findBudgetRules(database, names.map(parsed))),
      changes,
      keyOf: ({ kind, owner, name }) =>
        kind === 'budget' ? nameOf({ consumerId: owner, number: Number(name) }) : undefined,
    });
  }

  /** After this process changed a node, so that its own next call sees it. */
  forget(node: NodeName): void {
    this.#cache.forget(nameOf(node));
  }

  /** Why a node on the key's path refuses the call, the first from the root down; undefined when none does. */
  refusalOf(payer: Payer, call: Call): MaybePromise<BudgetRefusal | ToBeDecided | undefined> {
    return whenKnown(this.#pathOf(payer), (path) =>
      refusalOf(path, call, payer.guard, this.#clock.nowMs()),
    );
  }

  /** Why a node on the key's path refuses a lease of this amount, or a call of this price within it. */
  leaseRefusalOf(
    payer: Path,
    calls: readonly Call[],
    amountMicros: Micros,
  ): MaybePromise<BudgetRefusal | undefined> {
    return whenKnown(this.#pathOf(payer), (path) =>
      leaseRefusalOf(path, calls, amountMicros, this.#clock.nowMs()),
    );
  }

  #pathOf({ consumerId, spend }: Path): MaybePromise<readonly (Node | undefined)[]> {
    if (!spend) return [];
    const { version } = this.#cache;
    if (version !== this.#pathsVersion) {
      this.#paths = new WeakMap();
      this.#pathsVersion = version;
    }
    const remembered = this.#paths.get(spend.path);
    if (remembered) return remembered;
    const names = spend.path.map((number) => nameOf({ consumerId, number }));
    const nodes = names.map((name) => this.#cache.peek(name));
    if (!nodes.every((node) => node !== undefined)) {
      return Promise.all(names.map((name) => this.#cache.load(name)));
    }
    if (version !== undefined) this.#paths.set(spend.path, nodes);
    return nodes;
  }
}

type Spend = NonNullable<KeyOwner['spend']>;
type Path = Pick<KeyOwner, 'consumerId' | 'spend'>;
type Payer = Path & Pick<KeyOwner, 'guard'>;
type NodeName = Pick<BudgetRules, 'consumerId' | 'number'>;

function refusalOf(
  path: readonly (Node | undefined)[],
  call: Call,
  guard: KeyOwner['guard'],
  nowMs: number,
): BudgetRefusal | ToBeDecided | undefined {
  const ended = path.find((node) => node === undefined || node.endsAtMs <= nowMs);
  if (ended && guard) return { kind: 'developer_not_allowed', budgetId: ended.id };
  if (ended || path.includes(undefined)) return { kind: 'invalid_api_key' };
  let first: BudgetRefusal | undefined;
  for (const node of path) {
    const refusal = node && refusalOfNode(node, call);
    if (!refusal) continue;
    if (node.onceUntilMs <= nowMs || !isAskable(refusal)) return refusal;
    first ??= refusal;
  }
  return first && { kind: 'needs_approval', refusal: first };
}

/** Whether an owner can let the call pass. */
function isAskable({ kind }: BudgetRefusal): boolean {
  return kind === 'approval_required' || kind === 'limit_reached';
}

function leaseRefusalOf(
  path: readonly (Node | undefined)[],
  calls: readonly Call[],
  amountMicros: Micros,
  nowMs: number,
): BudgetRefusal | undefined {
  for (const call of calls) {
    const refusal = refusalOf(path, call, null, nowMs);
    // A one-time approval is for a charge or hold, not for a lease.
    if (refusal) return refusal.kind === 'needs_approval' ? refusal.refusal : refusal;
  }
  for (const node of path) {
    if (node && !node.allowsLeases) return { kind: 'lease_not_allowed', budgetId: node.id };
    if (node?.maxLeaseMicros !== undefined && amountMicros > node.maxLeaseMicros) {
      return refusedBy(node.id, 'per_lease', node.maxLeaseMicros);
    }
  }
  return undefined;
}

function refusedBy(
  budgetId: string,
  scope: 'per_call' | 'per_lease',
  limitMicros: Micros,
): LimitReached {
  const remainingMicros = limitMicros;
  return {
    kind: 'limit_reached',
    budgetId,
    scope,
    limitMicros,
    remainingMicros,
    resetsAt: null,
  };
}

function refusalOfNode(
  node: Node,
  { developerId, tool, amountMicros }: Call,
): BudgetRefusal | undefined {
  const { id: budgetId, developers, tools, approved, maxPerCallMicros } = node;
  if (developers !== undefined && !developers.includes(developerId)) {
    return { kind: 'developer_not_allowed', budgetId };
  }
  if (tools && !allows(tools, developerId, tool)) {
    return { kind: 'tool_not_allowed', budgetId };
  }
  if (approved !== undefined && !approved.includes(developerId)) {
    return { kind: 'approval_required', budgetId, developerId };
  }
  if (maxPerCallMicros === undefined || amountMicros <= maxPerCallMicros) return undefined;
  return refusedBy(budgetId, 'per_call', maxPerCallMicros);
}

/** A developer may give its tool a name that reads as the tool of another one: such a name alone allows nothing. */
const BEGINS_WITH_DEVELOPER = /^dev_[0-9a-f]{32}\//;

function allows(tools: ReadonlySet<string>, developerId: string, tool: string): boolean {
  return (
    (tools.has(tool) && !BEGINS_WITH_DEVELOPER.test(tool)) ||
    tools.has(`${wireId('developer', developerId)}/${tool}`)
  );
}

const nameOf = ({ consumerId, number }: NodeName) => `${consumerId}/${number}`;

function parsed(name: string): NodeName {
  const slash = name.indexOf('/');
  return { consumerId: name.slice(0, slash), number: Number(name.slice(slash + 1)) };
}

function byName(found: readonly BudgetRules[]): Map<string, Node> {
  return new Map(found.map((rules) => [nameOf(rules), nodeOf(rules)]));
}

function nodeOf({ id, isClosed, expiresAt, ...rules }: BudgetRules): Node {
  const { maxPerCallMicros, allowLeases, maxLeaseMicros, tools, developers } = rules;
  const { approved, onceUntil } = rules;
  return {
    id,
    endsAtMs: isClosed ? 0 : expiresAt === null ? Infinity : Date.parse(expiresAt),
    maxPerCallMicros: maxPerCallMicros ?? undefined,
    allowsLeases: allowLeases,
    maxLeaseMicros: maxLeaseMicros ?? undefined,
    tools: tools ? new Set(tools) : undefined,
    developers: developers ?? undefined,
    approved: approved ?? undefined,
    // This process's clock may be ahead of PostgreSQL's. Asking PostgreSQL once more does no harm.
    onceUntilMs: onceUntil === null ? 0 : Date.parse(onceUntil) + CLOCK_SKEW_MS_MAX,
  };
}

/** What an entry takes besides its lists, and a name besides its characters, which take up to two bytes. */
const ENTRY_BYTES = 500;
const NAME_BYTES = 60;

function bytesOf({ tools, developers = '', approved = '' }: Node): number {
  let bytes = ENTRY_BYTES + developers.length + approved.length;
  for (const name of tools ?? []) bytes += NAME_BYTES + 2 * name.length;
  return bytes;
}
