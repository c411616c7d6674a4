/** Why a call would be refused now: the first budget from the root down that does not let it pass, or the balance. */
import { Type } from 'typebox';
import { ONCE_HOURS, type ApprovalScope, type AskableCode } from '../../domain/approval.ts';
import type { Micros } from '../../domain/money.ts';
import { getCounters, type ConsumerRef } from '../balance/consumers.ts';
import { windowUsedNow } from '../budgets/budget.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';

export interface Refusing {
  readonly code: AskableCode;
  /** The number of the node; null: the balance. */
  readonly budget: number | null;
  readonly scope: ApprovalScope | null;
  readonly limitMicros: Micros | null;
}

export interface RefusedCall extends ConsumerRef {
  /** The number of the spend key, and the nodes from the root to its own; null: a key of the account. */
  readonly spend: { readonly number: number; readonly path: readonly number[] } | null;
  readonly developerNumber: number;
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: Micros;
}

const refusingRow = row(
  Type.Object({
    budget: Type.Integer(),
    scope: Type.Enum(['developer', 'per_call', 'total', 'window']),
    limitMicros: nullable(micros),
  }),
);

export async function findRefusing(
  connection: Connection,
  call: RefusedCall,
): Promise<Refusing | null> {
  const { balanceMicros } = await getCounters(connection, call);
  const ofBalance: Refusing = {
    code: 'insufficient_balance',
    budget: null,
    scope: null,
    limitMicros: null,
  };
  return (
    (await findBudget(connection, call)) ?? (balanceMicros < call.amountMicros ? ofBalance : null)
  );
}

/** What the owner has already let this call pass comes last, because another one may refuse. */
async function findBudget(connection: Connection, call: RefusedCall): Promise<Refusing | null> {
  const { ledger, consumerId, spend, developerNumber, developerId, tool, amountMicros } = call;
  if (spend === null) return null;
  const found = await connection.maybeOne(sql.type(refusingRow)`
    select b.number as budget, l.scope, l.limit_micros as "limitMicros"
    from farebox.budgets b
    join farebox.budget_details d using (ledger, consumer_id, number)
    cross join (select farebox.windows_at(clock_timestamp()) as began) w
    cross join lateral (values
      (1, 'developer', null, d.approve_developers and ${developerId} <> all (d.approved_developers)),
      (2, 'per_call', d.max_per_call_micros, ${amountMicros} > d.max_per_call_micros),
      (3, 'total', b.limit_micros, b.used_micros + ${amountMicros} > b.limit_micros),
      (4, 'window', b.window_limit_micros, ${windowUsedNow} + ${amountMicros} > b.window_limit_micros)
    ) as l (rank, scope, limit_micros, refuses)
    cross join lateral (
      select exists (
        select from farebox.approvals a
        where a.ledger = b.ledger and a.consumer_id = b.consumer_id and a.spend_key = ${spend.number}
          and a.developer = ${developerNumber} and a.tool = ${tool} and a.budget = b.number
          and coalesce(a.scope, 'developer') = l.scope
          and a.decision = 'once' and a.used_by is null and a.amount_micros >= ${amountMicros}
          and a.decided_at > now() - make_interval(hours => ${ONCE_HOURS})
      ) as is_passed
    ) o
    where b.ledger = ${ledger} and b.consumer_id = ${consumerId}
      and b.number = any (${sql.array(spend.path, 'int4')}) and l.refuses
    -- A child has a larger number than its parent.
    order by o.is_passed, b.number, l.rank limit 1
  `);
  if (!found) return null;
  const { budget, scope, limitMicros } = found;
  return scope === 'developer'
    ? { code: 'approval_required', budget, scope: null, limitMicros: null }
    : { code: 'spend_limit_reached', budget, scope, limitMicros };
}
