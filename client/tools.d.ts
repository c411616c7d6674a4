/** Tools, as `Farebox.tools` has them. */
import type { ChangedToolReply, RateCardReply, ToolReply, ToolsReply } from './api.js';
import type { CallOptions, List } from './index.js';
import type { Amount } from './money.js';

/**
 * Dollars per unit, by the name of the unit: 1 to 20 units, from $0 to $1,000 with at most twelve decimals. Names
 * have 1 to 40 letters, digits and `_.-`, beginning with a letter.
 *
 * @example const card = { input: usd('2.50').per(1_000_000), output: usd('10').per(1_000_000) };
 */
export type RateCard = Readonly<Record<string, Amount>>;

interface Prices {
  /** Dollars per call. Null: none, so each charge states its amount or units. */
  price?: Amount | null | undefined;
  /** Prices by the unit, for charges that state `units`. Each change makes a new version. Null: none. */
  card?: RateCard | null | undefined;
}

/** Your tools, their prices and their rate cards. */
export interface Tools {
  /** The tools in use, or with `archived` the archived ones. `name`: only that one. `limit`: tools per page. */
  list(
    filter?: {
      archived?: boolean | undefined;
      name?: string | undefined;
      limit?: number | undefined;
    },
    options?: CallOptions,
  ): List<ToolsReply['tools'][number], ToolsReply>;
  get(id: string, options?: CallOptions): Promise<ChangedToolReply>;
  /** A rate card that the tool has or had, by the `cardVersion` of a charge or receipt. */
  getCard(id: string, version: number, options?: CallOptions): Promise<RateCardReply>;
  /** Throws `tool_exists`, with `toolId`, when the name is taken. Not retried when a response is lost. */
  create(
    tool: Prices & { name: string; description?: string | undefined },
    options?: CallOptions,
  ): Promise<ToolReply>;
  /** Omitted members are not changed. `price: null` removes the price, and `card: null` the card. */
  update(
    id: string,
    changes: Prices & { description?: string | undefined; archived?: boolean | undefined },
    options?: CallOptions,
  ): Promise<ChangedToolReply>;
}
