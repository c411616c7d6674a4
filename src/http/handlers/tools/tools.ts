/** The developer's tools (specification section 4.2). */
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf, type Dollars, type Micros } from '../../../domain/money.ts';
import { dollarsOfPicos, picosOfDollars } from '../../../domain/rate-card.ts';
import type {
  ChangedToolReply,
  RateCardReply,
  ToolBody,
  ToolChanges,
  ToolReply,
  ToolsQuery,
  ToolsReply,
} from '../../../schemas/tools.ts';
import {
  CARD_VERSIONS_MAX,
  changeTool,
  findRateCard,
  findTool,
  listTools,
  rateCardOf,
  REGISTERED_MAX,
  registerTool,
  type NewCard,
  type Tool,
} from '../../../store/tools/tools.ts';
import { amountOf, CHARGEABLE, invalidAmount } from '../../amounts.ts';
import { invalidField } from '../../invalid-field.ts';
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
    card: cardOf(body.card) ?? null,
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
      card: cardOf(body.card),
    }));
  if (!tool) throw noSuch('tool');
  if (tool === 'too_many') throw tooManyTools();
  if (tool === 'too_many_cards') {
    throw invalidField(
      'card',
      `The tool has had ${CARD_VERSIONS_MAX} cards. Register another tool.`,
    );
  }
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
        ...wireCard(tool),
        totalCharges: tool.totalCharges,
        totalRevenue: dollarsOf(tool.totalRevenueMicros),
      })),
      ...marks,
    },
  };
}

/** A card that the tool has or had, as receipts name it. */
export async function getRateCard(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<RateCardReply>> {
  const id = idIn('tool', params);
  const { version = '' } = params;
  const number = /^[1-9]\d{0,3}$/.test(version) ? Number(version) : 0;
  const found = id && (await findRateCard(api.database, caller.developerId, id, number));
  if (!found) throw new ApiError('not_found', 'There is no such rate card.');
  const { card = {}, cardVersion = number } = wireCard(found);
  return { status: 200, body: { card, cardVersion, createdAt: found.createdAt } };
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
    ...wireCard(tool),
    createdAt: tool.createdAt,
  };
}

/** Null: no price. Undefined: not sent. */
function priceOf(sent: number | string | null | undefined): Micros | null | undefined {
  return sent === null || sent === undefined ? sent : amountOf('price', sent, CHARGEABLE);
}

/** Null: no card. Undefined: not sent. */
function cardOf(sent: ToolBody['card']): NewCard | null | undefined {
  if (sent === null || sent === undefined) return sent;
  const prices = Object.entries(sent).map(([unit, dollars]) => {
    const picos = picosOfDollars(dollars);
    if (picos !== undefined) return [unit, picos] as const;
    throw invalidAmount(`card.${unit}`, dollars, UNIT_PRICE);
  });
  return new Map(prices);
}

const UNIT_PRICE = 'from $0 to $1,000, with at most twelve decimals';

function wireCard(tool: Pick<Tool, 'cardVersion' | 'units' | 'unitPicos'>) {
  const card = rateCardOf(tool);
  if (!card) return {};
  const prices = [...card.picosOf].map(([unit, picos]) => [unit, dollarsOfPicos(picos)] as const);
  return { card: Object.fromEntries(prices), cardVersion: card.version };
}

function wirePrice(micros: Micros | null): Dollars | null {
  return micros === null ? null : dollarsOf(micros);
}
