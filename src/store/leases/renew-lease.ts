/**
 * Renews a lease: extends it at current prices, and refuses older fences. A renewal is refused for the same
 * reasons as a new lease of the same amount, and then changes nothing. The caller has checked what is in
 * memory.
 */
import { Type } from 'typebox';
import { HOLD_SECONDS_MAX } from '../../domain/hold.ts';
import type { Micros } from '../../domain/money.ts';
import { limitReached, type LimitReached } from '../budgets/budget.ts';
import { hasIdentity, identityValues, type OptionalIdentity } from '../charges/identity.ts';
import {
  micros,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { findLease, type Lease } from './lease.ts';

export interface Renewal extends OptionalIdentity {
  readonly developerNumber: number;
  /** A UUID. */
  readonly leaseId: string;
  readonly fence: number | null;
  /** From now. */
  readonly seconds: number;
  /** In the order of the lease's tools. */
  readonly pricesMicros: readonly Micros[];
}

export type RenewedLease =
  | { readonly kind: 'done' | 'replayed' | 'closed' | 'fenced'; readonly lease: Lease }
  | { readonly kind: 'unknown_lease' | 'key_reused' | 'key_closed' | 'not_renewable' }
  | LimitReached;

const sameRow = row(Type.Object({ isSame: Type.Boolean() }));
const stateRow = row(
  Type.Object({
    isKeyActive: Type.Boolean(),
    isClosed: Type.Boolean(),
    isOver: Type.Boolean(),
    isLonger: Type.Boolean(),
  }),
);
const limitRow = row(
  Type.Object({
    budget_id: Type.String(),
    limit_scope: Type.Enum(['total', 'window']),
    limit_micros: micros,
    limit_left: micros,
    window_unit: Type.Integer(),
    window_began: nullable(Type.String()),
  }),
);

export async function renewLease(database: Database, renewal: Renewal): Promise<RenewedLease> {
  const { developerNumber, leaseId, fence } = renewal;
  return database.transaction(async (tx): Promise<RenewedLease> => {
    await tx.query(sql.typeAlias('nothing')`
      select from farebox.holds where developer = ${developerNumber} and id = ${leaseId} for update
    `);
    const find = () => findLease(tx, { kind: 'developer', developerNumber }, leaseId);
    const lease = await find();
    if (!lease) return { kind: 'unknown_lease' };
    const earlier = await findRenewed(tx, lease, renewal);
    if (earlier) return earlier;
    if (fence !== null && fence !== lease.fence) return { kind: 'fenced', lease };
    if (lease.status !== 'open') return { kind: 'closed', lease };
    const refusal = await findRefusal(tx, renewal, lease);
    if (refusal) return refusal;
    await renew(tx, renewal);
    const renewed = await find();
    if (!renewed) throw new Error('a lease was renewed and not found');
    return { kind: 'done', lease: renewed };
  });
}

/** The answer to a retry; null when this key has renewed nothing. */
export async function findRenewed(
  connection: Connection,
  lease: Lease,
  asked: OptionalIdentity,
): Promise<RenewedLease | null> {
  if (!hasIdentity(asked)) return null;
  const [hash, request] = identityValues(asked);
  const isSame = await connection.maybeOneFirst(sql.type(sameRow)`
    select request_fingerprint = ${request} as "isSame" from farebox.hold_extensions
    where hold_id = ${lease.id} and idempotency_hash = ${hash}
  `);
  if (isSame === null) return null;
  return isSame ? { kind: 'replayed', lease } : { kind: 'key_reused' };
}

async function findRefusal(
  tx: Transaction,
  { leaseId, seconds }: Renewal,
  { ledger, consumerId, spendKey }: Lease,
): Promise<RenewedLease | undefined> {
  const ofHold = sql.fragment`h.ledger = ${ledger} and h.consumer_id = ${consumerId} and h.id = ${leaseId}`;
  const node = sql.fragment`b.ledger = ${ledger} and b.consumer_id = ${consumerId} and b.number = n.number`;
  const { isKeyActive, isClosed, isOver, isLonger } = await tx.one(sql.type(stateRow)`
    select k.revoked_at is null and coalesce(k.expires_at > now(), true) as "isKeyActive",
      least(now() + make_interval(secs => ${seconds}), h.placed_at + make_interval(secs => ${HOLD_SECONDS_MAX}))
        > h.expires_at as "isLonger",
      -- The process checked the budgets in its memory, which may be a second out of date.
      exists (
        select from unnest(k.path) as n (number) join farebox.budgets b on ${node} where b.is_closed
      ) as "isClosed",
      -- A window counted the lease when it was placed. One that began since, or was set, must count it anew.
      exists (
        select from unnest(k.path) as n (number) join farebox.budgets b on ${node}
        where b.window_unit > 0
          and h.placed_at < greatest((farebox.windows_at(clock_timestamp()))[b.window_unit], b.window_began)
      ) as "isOver"
    from farebox.holds h
    join farebox.spend_keys k on k.ledger = h.ledger and k.consumer_id = h.consumer_id and k.number = ${spendKey}
    where ${ofHold}
  `);
  if (!isKeyActive || isClosed) return { kind: 'key_closed' };
  if (isOver || !isLonger) return { kind: 'not_renewable' };
  const passed = await tx.maybeOne(sql.type(limitRow)`
    select d.id as budget_id, x.scope as limit_scope, x.micros as limit_micros, 0 as limit_left,
      b.window_unit, (farebox.windows_at(clock_timestamp()))[b.window_unit] as window_began
    from farebox.spend_keys k
    cross join lateral unnest(k.path) with ordinality as n (number, depth)
    join farebox.budgets b on ${node}
    join farebox.budget_details d on d.ledger = b.ledger and d.consumer_id = b.consumer_id and d.number = b.number
    cross join lateral (values
      (1, 'total', b.limit_micros, b.used_micros), (2, 'window', b.window_limit_micros, b.window_used_micros)
    ) as x (place, scope, micros, used)
    where k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.number = ${spendKey} and x.used > x.micros
    order by n.depth, x.place limit 1
  `);
  return passed ? limitReached(passed) : undefined;
}

async function renew(tx: Transaction, renewal: Renewal): Promise<void> {
  const { developerNumber, leaseId, seconds, pricesMicros } = renewal;
  await tx.query(sql.typeAlias('nothing')`
    with held as (
      update farebox.holds set expires_at =
        least(now() + make_interval(secs => ${seconds}), placed_at + make_interval(secs => ${HOLD_SECONDS_MAX}))
      where developer = ${developerNumber} and id = ${leaseId} returning ledger, id, developer, expires_at
    ), due as (
      insert into farebox.hold_expiries (ledger, due_at, developers, holds)
      select ledger, expires_at, array[developer], array[id] from held
    )
    update farebox.leases set fence = fence + 1, prices = p.now,
      highest_prices = array(
        select greatest(q.highest, q.price) from unnest(highest_prices, p.now) with ordinality as q (highest, price, n)
        order by q.n)
    from (select ${sql.array([...pricesMicros], 'int8')} as now) p
    where id = ${leaseId}
  `);
  if (!hasIdentity(renewal)) return;
  const [hash, request] = identityValues(renewal);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.hold_extensions (ledger, hold_id, idempotency_hash, request_fingerprint)
    select ledger, id, ${hash}, ${request} from farebox.leases where id = ${leaseId}
  `);
}
