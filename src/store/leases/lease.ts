/** A lease as its rows have it, and how it is found: by its developer, or by the consumer whose money it reserves. */
import { Type, type Static } from 'typebox';
import { LEASE_STATUSES, type LeaseStatus } from '../../domain/lease.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import { isBefore, lightPage, type OfLightPage, type Page } from '../page.ts';
import { stateNow } from '../holds/hold.ts';
import type { HoldOwner } from '../holds/list-holds.ts';

/** Ids are UUIDs. */
export interface Lease {
  readonly id: string;
  readonly ledger: number;
  readonly consumerId: string;
  readonly developerId: string;
  readonly amountMicros: Micros;
  readonly settledMicros: Micros;
  readonly releasedMicros: Micros;
  /** What can still be settled; 0 once the lease is closed. */
  readonly remainingMicros: Micros;
  /** `expired` from `expiresAt` on, even before the sweep has released the rest. */
  readonly status: LeaseStatus;
  /** Whole milliseconds from the moment of reading until it expires. */
  readonly expiresInMs: number;
  readonly expiresAt: string;
  readonly placedAt: string;
  readonly fence: number;
  readonly tools: readonly LeasedTool[];
  /** The number of the spend key. */
  readonly spendKey: number;
  readonly path: readonly number[];
}

export interface LeasedTool {
  readonly name: string;
  readonly priceMicros: Micros;
  /** The price that the developer named; null: the registered one. */
  readonly askedMicros: Micros | null;
}

const LeaseRow = Type.Object({
  id: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  developerId: Type.String(),
  amountMicros: micros,
  settledMicros: micros,
  releasedMicros: micros,
  heldMicros: micros,
  state: Type.Integer(),
  expiresInMs: Type.Integer(),
  expiresAt: Type.String(),
  placedAt: Type.String(),
  fence: Type.Integer(),
  names: Type.Array(Type.String()),
  prices: Type.Array(micros),
  asked: Type.Array(nullable(micros)),
  spendKey: Type.Integer(),
  path: Type.Array(Type.Integer()),
});
const leaseRow = row(LeaseRow);
const listedRow = row(Type.Object({ ...LeaseRow.properties, hasNext: Type.Boolean() }));

const columns = sql.fragment`
  l.id, l.ledger, l.consumer_id as "consumerId", a.developer_id as "developerId", h.amount_micros as "amountMicros",
  h.captured_micros as "settledMicros", l.released_micros as "releasedMicros", h.held_micros as "heldMicros",
  ${stateNow('h')} as state,
  greatest(0, floor(extract(epoch from h.expires_at - clock_timestamp()) * 1000))::int8 as "expiresInMs",
  h.expires_at as "expiresAt", h.placed_at as "placedAt", l.fence, l.tools as names, l.prices,
  l.asked_prices as asked, h.spend_key as "spendKey", k.path
`;

/** By the order of the primary key: without statistics, PostgreSQL would take an index of all keys of the account. */
const joined = sql.fragment`
  cross join lateral (
    select * from farebox.holds h where h.ledger = l.ledger and h.consumer_id = l.consumer_id and h.id = l.id limit 1
  ) h
  join farebox.accounts a on a.developer_number = l.developer
  join lateral (
    select * from farebox.spend_keys
    where (ledger, consumer_id, number) >= (l.ledger, l.consumer_id, h.spend_key)
    order by ledger, consumer_id, number limit 1
  ) k on k.ledger = l.ledger and k.consumer_id = l.consumer_id and k.number = h.spend_key
`;

export async function findLease(
  connection: Connection,
  owner: HoldOwner,
  id: string,
): Promise<Lease | null> {
  const found = await connection.maybeOne(sql.type(leaseRow)`
    select ${columns} from farebox.leases l ${joined} where ${ownedBy(owner)} and l.id = ${id}
  `);
  return found && leaseOf(found);
}

/** Newest first. */
export async function listLeases(
  connection: Connection,
  owner: HoldOwner,
  page: Page,
): Promise<readonly (Lease & OfLightPage)[]> {
  const id = sql.fragment`l.id`;
  const bytes = sql.fragment`500 + 40 * cardinality(tools) + octet_length(array_to_string(tools, ''))`;
  const leases = sql.fragment`
    select * from farebox.leases l where ${ownedBy(owner)} and ${isBefore(page, id)} order by l.id desc limit ${page.limit}
  `;
  // The page first: PostgreSQL may want to sort all leases with their holds, where it has no statistics.
  const rows = await connection.any(sql.type(listedRow)`
    select ${columns}, l.has_next as "hasNext" from (${lightPage(leases, sql.fragment`id desc`, bytes)}) l ${joined}
    order by l.id desc
  `);
  return rows.map(({ hasNext, ...found }) => ({ ...leaseOf(found), hasNext }));
}

function ownedBy(owner: HoldOwner) {
  return owner.kind === 'developer'
    ? sql.fragment`l.developer = ${owner.developerNumber}`
    : sql.fragment`l.ledger = ${owner.ledger} and l.consumer_id = ${owner.consumerId}`;
}

function leaseOf({ state, heldMicros, names, prices, asked, ...found }: Static<typeof LeaseRow>) {
  const status = LEASE_STATUSES[state];
  if (status === undefined) throw new Error(`unknown state of a lease: ${state}`);
  return {
    ...found,
    status,
    remainingMicros: status === 'open' ? heldMicros : asMicros(0),
    tools: names.map((name, n): LeasedTool => ({
      name,
      priceMicros: asMicros(prices[n] ?? Number.NaN),
      askedMicros: asked[n] ?? null,
    })),
  } satisfies Lease;
}
