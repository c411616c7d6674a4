/** What a call of a tool costs: prices and rate cards of tools, in memory, and the names that are charged before they are registered. */
import type { Micros } from '../domain/money.ts';
import { costOf, type RateCard, type Units } from '../domain/rate-card.ts';
import type { Database } from '../store/database.ts';
import {
  findPricedTools,
  rateCardOf,
  type PricedTool,
  type ToolName,
} from '../store/tools/tools.ts';
import { FreshCache } from './fresh-cache.ts';
import { TOOLS_CACHED_MAX } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { RecentChanges } from './recent-changes.ts';
import { nameOf, ToolNames } from './tool-names.ts';

interface KnownTool {
  /** Undefined: the tool has no price, so a charge must state its amount. */
  readonly priceMicros: Micros | undefined;
  readonly isArchived: boolean;
  readonly card: RateCard | null;
}

/** Why a call has no price. `unknown_tool` with an amount: the developer has too many unregistered names. */
export type NoPrice = 'unknown_tool' | 'tool_archived' | 'amount_required';

/** What units cost by the current card. The amount may be 0. */
export interface Cost {
  readonly kind: 'cost';
  readonly amountMicros: Micros;
  readonly cardVersion: number;
}

/** Why units have no cost that can be charged. */
export type NoCost =
  | {
      readonly kind:
        | 'unknown_tool'
        | 'tool_archived'
        | 'card_required'
        | 'cost_too_high'
        | 'no_cost';
    }
  | { readonly kind: 'unknown_unit'; readonly unit: string; readonly priced: readonly string[] };

export class ToolPrices {
  readonly #names: ToolNames;
  readonly #cache: FreshCache<KnownTool>;

  constructor(database: Database, changes: RecentChanges) {
    this.#names = new ToolNames(database);
    this.#cache = new FreshCache<KnownTool>({
      entriesMax: TOOLS_CACHED_MAX,
      load: async (names) => byName(await findPricedTools(database, names.map(parsed))),
      changes,
      keyOf: ({ kind, owner, name }) =>
        kind === 'tool' ? nameOf({ developerId: owner, name }) : undefined,
    });
  }

  /**
   * The amount that the request states, or else the tool's price. It is known at once if memory has it. Memory never
   * causes a refusal: another process may have just set the tool's price.
   */
  priceOf(
    developerId: string,
    name: string,
    stated: Micros | undefined,
  ): MaybePromise<Micros | NoPrice> {
    const known = this.#cache.peek(nameOf({ developerId, name }));
    const price = known && priceFor(known, stated);
    return typeof price === 'number' ? price : this.currentPriceOf(developerId, name, stated);
  }

  /** The same by what the database has now. Writes the row of a name that is charged for the first time. */
  async currentPriceOf(
    developerId: string,
    name: string,
    stated: Micros | undefined,
  ): Promise<Micros | NoPrice> {
    const tool = { developerId, name };
    const known = await this.#cache.load(nameOf(tool));
    if (known) return priceFor(known, stated);
    return stated !== undefined && (await this.#names.note(tool)) ? stated : 'unknown_tool';
  }

  /** What the units cost. As for prices, memory never causes a refusal. */
  costOf(developerId: string, name: string, units: Units): MaybePromise<Cost | NoCost> {
    const known = this.#cache.peek(nameOf({ developerId, name }));
    const cost = known && costFor(known, units);
    return cost?.kind === 'cost' ? cost : this.currentCostOf(developerId, name, units);
  }

  /** The same by what the database has now. */
  async currentCostOf(developerId: string, name: string, units: Units): Promise<Cost | NoCost> {
    const known = await this.#cache.load(nameOf({ developerId, name }));
    return known ? costFor(known, units) : { kind: 'unknown_tool' };
  }

  /** Called after this process changed a tool, so that its own next charge sees the change. */
  forget(developerId: string, name: string): void {
    this.#cache.forget(nameOf({ developerId, name }));
  }
}

function priceFor(
  { priceMicros, isArchived }: KnownTool,
  stated: Micros | undefined,
): Micros | NoPrice {
  if (stated !== undefined) return stated;
  return isArchived ? 'tool_archived' : (priceMicros ?? 'amount_required');
}

function costFor({ card, isArchived }: KnownTool, units: Units): Cost | NoCost {
  return isArchived ? { kind: 'tool_archived' } : costBy(card, units);
}

/** What the units cost by the card. */
export function costBy(card: RateCard | null, units: Units): Cost | NoCost {
  if (!card) return { kind: 'card_required' };
  const cost = costOf(card, units);
  if (cost === undefined) return { kind: 'cost_too_high' };
  if (typeof cost === 'number') {
    return { kind: 'cost', amountMicros: cost, cardVersion: card.version };
  }
  return { kind: 'unknown_unit', unit: cost.unit, priced: [...card.picosOf.keys()] };
}

/** The cost, unless it is nothing, which cannot be charged. */
export function chargeable(cost: Cost | NoCost): Cost | NoCost {
  return cost.kind === 'cost' && cost.amountMicros === 0 ? { kind: 'no_cost' } : cost;
}

function parsed(text: string): ToolName {
  const space = text.indexOf(' ');
  return { developerId: text.slice(0, space), name: text.slice(space + 1) };
}

function byName(tools: readonly PricedTool[]): Map<string, KnownTool> {
  return new Map(
    tools.map((tool) => [
      nameOf(tool),
      {
        priceMicros: tool.priceMicros ?? undefined,
        isArchived: tool.isArchived,
        card: rateCardOf(tool),
      },
    ]),
  );
}
