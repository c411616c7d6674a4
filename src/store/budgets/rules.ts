/** What the charge path checks of a node before the debit, for a cache. */
import { Type, type Static } from 'typebox';
import { ONCE_HOURS } from '../../domain/approval.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';

const NodeName = Type.Object({ consumerId: Type.String(), number: Type.Integer() });
const BudgetRules = Type.Object({
  ...NodeName.properties,
  id: Type.String(),
  isClosed: Type.Boolean(),
  expiresAt: nullable(Type.String()),
  maxPerCallMicros: nullable(micros),
  allowLeases: Type.Boolean(),
  maxLeaseMicros: nullable(micros),
  tools: nullable(Type.Array(Type.String())),
  /** As text, such as `{id,id}`: up to a thousand are one value, and found with `includes`. */
  developers: nullable(Type.String()),
  /** The only ones that are approved. Null: none needs approval. */
  approved: nullable(Type.String()),
  /** The end of the last one-time approval that has not been used yet. */
  onceUntil: nullable(Type.String()),
});

/** Developers by their UUIDs. */
export type BudgetRules = Static<typeof BudgetRules>;

const rulesRow = row(BudgetRules);

export async function findBudgetRules(
  connection: Connection,
  nodes: readonly Static<typeof NodeName>[],
): Promise<readonly BudgetRules[]> {
  return connection.any(sql.type(rulesRow)`
    select d.consumer_id as "consumerId", d.number, d.id, d.closed_at is not null as "isClosed",
      d.expires_at as "expiresAt", d.max_per_call_micros as "maxPerCallMicros",
      d.allow_leases as "allowLeases", d.max_lease_micros as "maxLeaseMicros", d.tools,
      d.developers::text, case when d.approve_developers then d.approved_developers::text end as approved,
      (
        select max(p.decided_at) + make_interval(hours => ${ONCE_HOURS}) from farebox.approvals p
        where p.ledger = d.ledger and p.consumer_id = d.consumer_id and p.budget = d.number
          and p.decision = 'once' and p.used_by is null
          and p.decided_at > now() - make_interval(hours => ${ONCE_HOURS})
      ) as "onceUntil"
    from ${sql.unnest(
      nodes.map(({ consumerId, number }) => [consumerId, number]),
      ['uuid', 'int4'],
    )} as n (consumer, number)
    cross join lateral (select ledger from farebox.accounts where consumer_id = n.consumer offset 0) a
    cross join lateral (
      select * from farebox.budget_details
      where ledger = a.ledger and consumer_id = n.consumer and number = n.number offset 0
    ) d
  `);
}
