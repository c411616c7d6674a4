/** What a call of a tool costs: prices of tools, in memory, and the names that are charged before they are registered. */
import type { Micros } from '../domain/money.ts';
import type { Database } from '../store/database.ts';
import { findPricedTools, type PricedTool, type ToolName } from '../store/tools/tools.ts';
import { FreshCache } from './fresh-cache.ts';
import { TOOLS_CACHED_MAX } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { RecentChanges } from './recent-changes.ts';
import { nameOf, ToolNames } from './tool-names.ts';

interface KnownTool {
  /** Undefined: the tool has no price, so a charge must state its amount. */
  readonly priceMicros: Micros | undefined;
  readonly isArchived: boolean;
}

/** Why a call has no price. `unknown_tool` with an amount: the developer has too many unregistered names. */
export type NoPrice = 'unknown_tool' | 'tool_archived' | 'amount_required';

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
      },
    ]),
  );
}
