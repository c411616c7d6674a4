/** The developer's tools (specification section 4.2). */
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf, type Dollars, type Micros } from '../../../domain/money.ts';
import type {
  ChangedToolReply,
  ToolBody,
  ToolChanges,
  ToolReply,
  ToolsQuery,
  ToolsReply,
} from '../../../schemas/tools.ts';
import {
  changeTool,
  findTool,
  listTools,
  REGISTERED_MAX,
  registerTool,
  type Tool,
} from '../../../store/tools/tools.ts';
import { amountOf, CHARGEABLE } from '../../amounts.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';

export async function postTool(
  api: Api,
  { caller, body }: Request<ToolBody>,
): Promise<Reply<ToolReply, 201>> {
  const tool = await registerTool(api.database, caller.developerId, {
    name: body.name,
    description: body.description ?? '',
    priceMicros: priceOf(body.price) ?? null,
  });
  if (tool === 'too_many') throw tooManyTools();
  if (tool === 'exists') {
    const known = await findTool(api.database, caller.developerId, { name: body.name });
    const toolId = known && wireId('tool', known.id);
    throw new ApiError(
      'tool_exists',
      `A tool with this name already exists, perhaps archived; change it with PATCH /v1/tools/${toolId ?? ':id'}.`,
      { facts: { ...(toolId && { toolId }) } },
    );
  }
  api.tools.forget(caller.developerId, tool.name);
  return { status: 201, body: wireTool(tool) };
}

/** An archived tool is not listed and its price no longer applies; charges with an amount still succeed. */
export async function patchTool(
  api: Api,
  { caller, params, body }: Request<ToolChanges>,
): Promise<Reply<ChangedToolReply>> {
  const id = idIn('tool', params);
  const tool =
    id &&
    (await changeTool(api.database, caller.developerId, id, {
      description: body.description,
      priceMicros: priceOf(body.price),
      isArchived: body.archived,
    }));
  if (!tool) throw noSuch('tool');
  if (tool === 'too_many') throw tooManyTools();
  api.tools.forget(caller.developerId, tool.name);
  return { status: 200, body: { ...wireTool(tool), archived: tool.isArchived } };
}

export async function getTool(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<ChangedToolReply>> {
  const id = idIn('tool', params);
  const tool = id && (await findTool(api.database, caller.developerId, { id }));
  if (!tool) throw noSuch('tool');
  return { status: 200, body: { ...wireTool(tool), archived: tool.isArchived } };
}

/**
 * The tools in use, or with `archived=true` the archived ones, oldest first. With `name`, only that one, if
 * it exists.
 */
export async function getTools(
  api: Api,
  { caller, query }: Request<undefined, ToolsQuery>,
): Promise<Reply<ToolsReply>> {
  const { archived: isArchived = false, name, ...page } = query;
  const { rows, ...marks } = await listPage(page, 'tool', ({ limit, beforeId: afterId }) =>
    listTools(api.database, caller, { isArchived, name, afterId, limit }),
  );
  return {
    status: 200,
    body: {
      tools: rows.map((tool) => ({
        id: wireId('tool', tool.id),
        name: tool.name,
        description: tool.description,
        price: wirePrice(tool.priceMicros),
        totalCharges: tool.totalCharges,
        totalRevenue: dollarsOf(tool.totalRevenueMicros),
      })),
      ...marks,
    },
  };
}

function tooManyTools(): ApiError {
  return new ApiError(
    'too_many_tools',
    `An account can register at most ${REGISTERED_MAX} tools. Change a registered one with PATCH /v1/tools/:id, or charge by amount.`,
  );
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

/** Null: no price. Undefined: not sent. */
function priceOf(sent: number | string | null | undefined): Micros | null | undefined {
  return sent === null || sent === undefined ? sent : amountOf('price', sent, CHARGEABLE);
}

function wirePrice(micros: Micros | null): Dollars | null {
  return micros === null ? null : dollarsOf(micros);
}
