/** What the keys of a budget and of all budgets below it spent. A node that a key does not see answers 404. */
import type { UsageGroup } from '../../../domain/budget.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { parseTime } from '../../../domain/iso-time.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type {
  BudgetUsageFileQuery,
  BudgetUsageQuery,
  BudgetUsageReply,
} from '../../../schemas/budgets.ts';
import { LIMIT_DEFAULT } from '../../../schemas/shapes.ts';
import {
  isMark,
  listKeyDays,
  readBudgetUsage,
  type BudgetUsage,
  type KeyDaySpending,
} from '../../../store/budgets/usage.ts';
import { pagesOf, type Export } from '../../csv.ts';
import { invalidCursor } from '../../pagination.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { rangeOf } from '../earnings/earnings.ts';
import { numberOfSeen, seenBy } from './budgets.ts';

type Marked = BudgetUsage['groups'][number];

export async function getBudgetUsage(
  api: Api,
  { caller, params, query }: Request<undefined, BudgetUsageQuery>,
): Promise<Reply<BudgetUsageReply>> {
  const { by = 'tool', limit = LIMIT_DEFAULT, cursor } = query;
  const range = rangeOf(query, 'day');
  const seen = await seenBy(api, caller);
  const id = params['id'] ?? '';
  const number = await numberOfSeen(api, seen, id);
  const after = cursor === undefined ? undefined : markOf(by, cursor);
  const page = { limit: limit + 1, after };
  const { total, groups } = await readBudgetUsage(
    api.database,
    { ...seen, number },
    by,
    range,
    page,
  );
  // The cursor of another list shows nothing, which must not look like its end.
  if (
    groups.length === 0 &&
    after !== undefined &&
    !(await isMark(api.database, seen, by, after))
  ) {
    throw invalidCursor();
  }
  const shown = groups.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = groups.length > limit;
  return {
    status: 200,
    body: {
      budgetId: id,
      total: { spent: dollarsOf(total.spentMicros), charges: total.charges },
      usage: shown.map((each) => ({
        ...NAMED[by](each),
        spent: dollarsOf(each.spentMicros),
        charges: each.charges,
      })),
      hasMore,
      nextCursor: hasMore && last ? cursorOf(by, last) : null,
    },
  };
}

/** A row for each key, tool, developer and UTC day, by key and then by day. */
export function exportBudgetUsage(
  api: Api,
  { caller, params, query }: Request<undefined, BudgetUsageFileQuery>,
): Export {
  const range = rangeOf(query, 'day');
  const node = async () => {
    const seen = await seenBy(api, caller);
    return { ...seen, number: await numberOfSeen(api, seen, params['id'] ?? '') };
  };
  let found: ReturnType<typeof node> | undefined;
  return {
    name: 'budget-usage',
    header: ['from', 'keyId', 'keyName', 'tool', 'developerId', 'charges', 'amount'],
    pages: pagesOf(
      async (limit, after?: KeyDaySpending) =>
        listKeyDays(api.database, await (found ??= node()), range, { limit, after }),
      ({ day, keyId, keyName, tool, developerId, charges, spentMicros }) => [
        day,
        wireId('key', keyId),
        keyName ?? '',
        tool,
        wireId('developer', developerId),
        charges,
        BigInt(spentMicros),
      ],
    ),
  };
}

const NAMED: Readonly<
  Record<UsageGroup, (group: Marked) => Partial<BudgetUsageReply['usage'][0]>>
> = {
  key: ({ mark, name }) => ({ keyId: wireId('key', mark), keyName: name }),
  tool: ({ mark }) => ({ tool: mark }),
  developer: ({ mark }) => ({ developerId: wireId('developer', mark) }),
  day: ({ mark }) => ({ from: mark }),
};

function cursorOf(by: UsageGroup, { mark }: Marked): string {
  return by === 'key' || by === 'developer' ? wireId(by, mark) : mark;
}

function markOf(by: UsageGroup, cursor: string): string {
  const isId = by === 'key' || by === 'developer';
  const mark = isId ? uuidOf(by, cursor) : by === 'day' ? dayOf(cursor) : cursor;
  if (mark === undefined) throw invalidCursor();
  return mark;
}

function dayOf(text: string): string | undefined {
  const timeMs = parseTime(text);
  return Number.isFinite(timeMs) ? new Date(timeMs).toISOString() : undefined;
}
