/**
 * The rate cards that price captures: the card that the tool of a hold had when the hold was placed. So a change of the
 * tool changes nothing for calls that run. They never change, so they are kept in memory.
 */
import type { RateCard } from '../domain/rate-card.ts';
import type { Database } from '../store/database.ts';
import { findHoldCards } from '../store/holds/hold-cards.ts';
import { FreshCache } from './fresh-cache.ts';
import { HOLD_CARDS_CACHED_MAX } from './limits.ts';
import type { RecentChanges } from './recent-changes.ts';

interface HoldOf {
  readonly developerNumber: number;
  /** A UUID. */
  readonly holdId: string;
}

/** Null: the tool had no card. */
interface HoldCard {
  readonly card: RateCard | null;
}

export class HoldCards {
  readonly #cache: FreshCache<HoldCard>;

  constructor(database: Database, changes: RecentChanges) {
    this.#cache = new FreshCache<HoldCard>({
      entriesMax: HOLD_CARDS_CACHED_MAX,
      load: async (names) => {
        const found = await findHoldCards(database, names.map(parsed));
        return new Map(found.map((hold) => [nameOf(hold), hold]));
      },
      changes,
      keyOf: () => undefined,
    });
  }

  /** Undefined when the developer has no such hold. Holds that are asked for in one turn are read in one query. */
  async cardOf(hold: HoldOf): Promise<HoldCard | undefined> {
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
