/** Prices of tools, in memory, and the names that are charged before they are registered. */
import type { Micros } from '../domain/money.ts';
import type { Database } from '../store/database.ts';
import { findPricedTools, type PricedTool, type ToolName } from '../store/earnings/tools.ts';
import { FreshCache } from './fresh-cache.ts';
import { TOOLS_CACHED_MAX } from './limits.ts';
import type { RecentChanges } from './recent-changes.ts';
import { nameOf, ToolNames } from './tool-names.ts';

export interface KnownTool {
  /** Undefined: the tool has no price, so a charge must state its amount. */
  readonly price: Micros | undefined;
  readonly isArchived: boolean;
}

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

  /** The tool in memory, if any. Synchronous. */
  peek(developerId: string, name: string): KnownTool | undefined {
    return this.#cache.peek(nameOf({ developerId, name }));
  }

  find(developerId: string, name: string): Promise<KnownTool | undefined> {
    return this.#cache.load(nameOf({ developerId, name }));
  }

  /** Called after this process changed a tool, so that its own next charge sees the change. */
  forget(developerId: string, name: string): void {
    this.#cache.forget(nameOf({ developerId, name }));
  }

  /** Writes the row of a name that is charged for the first time. False: the developer has too many names. */
  note(developerId: string, name: string): Promise<boolean> {
    return this.#names.note({ developerId, name });
  }
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
        price: tool.priceMicros ?? undefined,
        isArchived: tool.isArchived,
      },
    ]),
  );
}
