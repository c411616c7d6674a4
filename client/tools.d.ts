/** Tools, as `Farebox.tools` has them. */
import type { ChangedToolReply, ToolReply, ToolsReply } from './api.js';
import type { CallOptions, List } from './index.js';
import type { Amount } from './money.js';

/** Your tools and their prices. */
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
  /** Throws `tool_exists`, with `toolId`, when the name is taken. Not retried when a response is lost. */
  create(
    tool: { name: string; description?: string | undefined; price?: Amount | null | undefined },
    options?: CallOptions,
  ): Promise<ToolReply>;
  /** Omitted members are not changed. `price: null` removes the price. */
  update(
    id: string,
    changes: {
      description?: string | undefined;
      price?: Amount | null | undefined;
      archived?: boolean | undefined;
    },
    options?: CallOptions,
  ): Promise<ChangedToolReply>;
}
