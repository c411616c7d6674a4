/** Places a lease: its hold, decided like any other, and what the lease needs besides, in one commit. */
import type { Micros } from '../../domain/money.ts';
import type { Database } from '../database.ts';
import { sql } from '../database.ts';
import type { ReplayWindow } from '../charges/post-charges.ts';
import { decideEntries } from '../holds/decide-entries.ts';
import type { HoldEntry, Outcomes } from '../holds/hold-entry.ts';
import { outcomeOf } from '../holds/post-hold-entries.ts';
import { findLease, type Lease, type LeasedTool } from './lease.ts';

/** The hold that reserves the money. Its tool is empty. */
export type LeaseEntry = Extract<HoldEntry, { kind: 'place' }>;

type Refused = Exclude<
  Outcomes['place'],
  { readonly kind: 'done' | 'replayed' | 'approval_required' }
>;
export type PlacedLease =
  | { readonly kind: 'done' | 'replayed'; readonly lease: Lease; readonly balanceMicros: Micros }
  | Refused;

export async function placeLease(
  database: Database,
  entry: LeaseEntry,
  tools: readonly LeasedTool[],
  receiptKey: number,
  replay: ReplayWindow,
): Promise<PlacedLease> {
  return database.transaction(async (tx) => {
    const [decided] = await decideEntries(tx, [entry], receiptKey, replay, 'left');
    if (!decided) throw new Error('one entry asked, none decided');
    const outcome = outcomeOf(entry, decided.found);
    switch (outcome.kind) {
      case 'insufficient':
      case 'limit_reached':
      case 'key_closed':
      case 'key_reused':
        return outcome;
      // An approval for one call does not let a lease pass a limit.
      case 'approval_required':
        throw new Error(`a lease was placed and answered ${outcome.kind}`);
      case 'done':
      case 'replayed':
    }
    const { id } = outcome.hold;
    if (outcome.kind === 'done') {
      const prices = sql.array(
        tools.map(({ priceMicros }) => priceMicros),
        'int8',
      );
      await tx.query(sql.typeAlias('nothing')`
        insert into farebox.leases (id, ledger, consumer_id, developer, tools, asked_prices, prices, highest_prices)
        values (${id}, ${entry.ledger}, ${entry.consumerId}, ${entry.developerNumber},
          ${sql.array(
            tools.map(({ name }) => name),
            'text',
          )},
          ${sql.array(
            tools.map(({ askedMicros }) => askedMicros),
            'int8',
          )}, ${prices}, ${prices})
      `);
    }
    const lease = await findLease(tx, { ...entry, kind: 'developer' }, id);
    if (!lease) throw new Error('a lease was placed and not found');
    return { kind: outcome.kind, lease, balanceMicros: outcome.balanceMicros };
  });
}
