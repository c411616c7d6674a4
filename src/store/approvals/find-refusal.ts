/** Why a call would be refused now, after the checks from memory: the first limit without room, or the balance. */
import { Type } from 'typebox';
import { LIMIT_SCOPES } from '../../domain/budget.ts';
import type { Micros } from '../../domain/money.ts';
import { getCounters, type ConsumerRef } from '../balance/consumers.ts';
import { micros, row, sql, type Connection } from '../database.ts';

export interface Refusing {
  readonly code: 'spend_limit_reached' | 'insufficient_balance';
  /** The number of the node; null: the balance. */
  readonly budget: number | null;
  readonly scope: (typeof LIMIT_SCOPES)[number] | null;
  readonly limitMicros: Micros | null;
}

const limitRow = row(
  Type.Object({
    budget: Type.Integer(),
    scope: Type.Enum(['total', 'window']),
    limitMicros: micros,
  }),
);

/** What the window of a node `b` has used, with the beginnings of current windows in `w`. */
export const windowUsedNow = sql.fragment`
  case when b.window_began < w.began[b.window_unit] then 0 else b.window_used_micros end
`;

/** `path` has the numbers of the nodes from the root to the spend key's; it is empty for a key of the account. */
export async function findRefusing(
  connection: Connection,
  consumer: ConsumerRef,
  path: readonly number[],
  amountMicros: Micros,
): Promise<Refusing | null> {
  const { ledger, consumerId } = consumer;
  const found = await connection.maybeOne(sql.type(limitRow)`
    select b.number as budget, l.scope, l.limit_micros as "limitMicros"
    from farebox.budgets b
    cross join (select farebox.windows_at(clock_timestamp()) as began) w
    cross join lateral (values
      (1, 'total', b.limit_micros, b.used_micros), (2, 'window', b.window_limit_micros, ${windowUsedNow})
    ) as l (rank, scope, limit_micros, used_micros)
    where b.ledger = ${ledger} and b.consumer_id = ${consumerId}
      and b.number = any (${sql.array(path, 'int4')}) and l.used_micros + ${amountMicros} > l.limit_micros
    -- A child has a larger number than its parent.
    order by b.number, l.rank limit 1
  `);
  if (found) return { code: 'spend_limit_reached', ...found };
  const { balance } = await getCounters(connection, consumer);
  if (balance >= amountMicros) return null;
  return { code: 'insufficient_balance', budget: null, scope: null, limitMicros: null };
}
