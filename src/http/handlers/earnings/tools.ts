/** The developer's tools (specification section 4.2). */
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import {
  asMicros,
  CHARGE_MICROS_MAX,
  dollarsOf,
  microsOfDollars,
  type Micros,
} from '../../../domain/money.ts';
import type {
  ChangedToolReply,
  ToolBody,
  ToolChanges,
  ToolReply,
  ToolsQuery,
  ToolsReply,
} from '../../../schemas/tools.ts';
import { changeTool, listTools, registerTool, type Tool } from '../../../store/earnings/tools.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';

export async function postTool(
  api: Api,
  { caller, body }: Request<ToolBody>,
): Promise<Reply<ToolReply, 201>> {
  const tool = await registerTool(api.database, caller.developerId, {
    name: body.name,
    description: body.description ?? '',
    price: priceOf(body.price) ?? null,
  });
  if (!tool) {
    throw new ApiError(
      'tool_exists',
      'A tool of this name is registered already, or archived; PATCH /v1/tools/:id changes it.',
    );
  }
  api.tools.forget(caller.developerId, tool.name);
  return { status: 201, body: wireTool(tool) };
}

/** Archived: out of the list and out of force, but for charges that name an amount. */
export async function patchTool(
  api: Api,
  { caller, params, body }: Request<ToolChanges>,
): Promise<Reply<ChangedToolReply>> {
  const id = uuidOf('tool', params['id'] ?? '');
  const tool =
    id &&
    (await changeTool(api.database, caller.developerId, id, {
      description: body.description,
      price: priceOf(body.price),
      isArchived: body.archived,
    }));
  if (!tool) throw new ApiError('not_found', 'There is no such tool.');
  api.tools.forget(caller.developerId, tool.name);
  return { status: 200, body: { ...wireTool(tool), archived: tool.isArchived } };
}

/** Those in use; with `archived=true` the archived ones instead. */
export async function getTools(
  api: Api,
  { caller, query }: Request<undefined, ToolsQuery>,
): Promise<Reply<ToolsReply>> {
  const tools = await listTools(api.database, caller, query.archived ?? false);
  return {
    status: 200,
    body: {
      tools: tools.map((tool) => ({
        id: wireId('tool', tool.id),
        name: tool.name,
        description: tool.description,
        price: wirePrice(tool.priceMicros),
        totalCharges: tool.totalCharges,
        totalRevenue: dollarsOf(asMicros(tool.totalRevenueMicros)),
      })),
    },
  };
}

function wireTool(tool: Tool): ToolReply {
  return {
    id: wireId('tool', tool.id),
    name: tool.name,
    description: tool.description,
    price: wirePrice(tool.priceMicros),
    createdAt: tool.createdAt,
  };
}

/** Null: none. Undefined: nothing was said. */
function priceOf(dollars: number | null | undefined): Micros | null | undefined {
  if (dollars === null || dollars === undefined) return dollars;
  const price = microsOfDollars(dollars);
  if (price === undefined || price <= 0 || price > CHARGE_MICROS_MAX) {
    throw new ApiError(
      'invalid_amount',
      'price must be more than 0 and at most 1,000,000 dollars, with at most six decimals.',
      { param: 'price' },
    );
  }
  return price;
}

function wirePrice(micros: number | null): number | null {
  return micros === null ? null : dollarsOf(asMicros(micros));
}
