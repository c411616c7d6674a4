/** The developer's tools (specification section 4.2). */
import { ApiError } from '../domain/errors.ts';
import { wireId } from '../domain/ids.ts';
import {
  asMicros,
  CHARGE_MICROS_MAX,
  dollarsOf,
  microsOfDollars,
  type Micros,
} from '../domain/money.ts';
import type { ToolBody } from '../schemas/developers.ts';
import { listTools, registerTool } from '../store/tools.ts';
import type { Api } from './api.ts';
import type { Answer, Request } from './endpoint.ts';

export async function postTool(api: Api, { caller, body }: Request<ToolBody>): Promise<Answer> {
  const tool = await registerTool(api.database, caller.developerId, {
    name: body.name,
    description: body.description ?? '',
    price: body.price == null ? null : priceOf(body.price),
  });
  if (!tool) throw new ApiError('tool_exists', 'A tool of this name is registered already.');
  api.tools.forget(caller.developerId, body.name);
  return {
    status: 201,
    body: {
      id: wireId('tool', tool.id),
      name: tool.name,
      description: tool.description,
      price: wirePrice(tool.priceMicros),
      createdAt: tool.createdAt,
    },
  };
}

export async function getTools(api: Api, { caller }: Request<undefined>): Promise<Answer> {
  const tools = await listTools(api.database, caller.developerId);
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

function priceOf(dollars: number): Micros {
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
