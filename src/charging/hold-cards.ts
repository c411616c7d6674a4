/**
 * The rate cards that price captures. A hold that was placed by units has the card that priced it, so a later change of
 * the tool changes nothing for calls that run. It never gets another one, so it is kept in memory.
 */
import type { Database } from '../store/database.ts';
import { findPricedHolds, type PricedHold } from '../store/holds/hold-cards.ts';
import { FreshCache } from './fresh-cache.ts';
import { HOLD_CARDS_CACHED_MAX } from './limits.ts';
import type { RecentChanges } from './recent-changes.ts';

type HoldOf = Pick<PricedHold, 'developerNumber' | 'holdId'>;

export class HoldCards {
  readonly #cache: FreshCache<PricedHold>;

  constructor(database: Database, changes: RecentChanges) {
    this.#cache = new FreshCache<PricedHold>({
      entriesMax: HOLD_CARDS_CACHED_MAX,
      load: async (names) => {
        const found = await findPricedHolds(database, names.map(parsed));
        return new Map(found.map((hold) => [nameOf(hold), hold]));
      },
      changes,
      keyOf: () => undefined,
    });
  }

  /** Undefined when the developer has no such hold. Holds that are asked for in one turn are read in one query. */
  async find(hold: HoldOf): Promise<PricedHold | undefined> {
    const name = nameOf(hold);
    return this.#cache.peek(name) ?? this.#cache.load(name);
  }
}

function nameOf({ developerNumber, holdId }: HoldOf): string {
  return `${developerNumber} ${holdId}`;
}

function parsed(name: string): HoldOf {
  const [developerNumber = '', holdId = ''] = name.split(' ');
  return { developerNumber: Number(developerNumber), holdId };
}
