/** The developer's earnings (specification section 4.2). A day is a UTC day. */
import { uuidFloor, wireId } from '../domain/ids.ts';
import { asMicros, dollarsOf, type Micros } from '../domain/money.ts';
import { sumEarningsByTool } from '../store/earnings.ts';
import type { Api } from './api.ts';
import type { Answer, Request } from './endpoint.ts';

const DAY_MS = 86_400_000;

export async function getEarnings(api: Api, { caller }: Request<undefined>): Promise<Answer> {
  const now = Date.now();
  const tools = await sumEarningsByTool(api.database, caller, uuidFloor(now - (now % DAY_MS)));
  // No prototype, so that a tool called __proto__ is a member like any other.
  const byTool = Object.create(null) as Record<string, number>;
  for (const { tool, total } of tools) byTool[tool] = dollarsOf(total);
  return {
    status: 200,
    body: {
      developerId: wireId('developer', caller.developerId),
      totalEarnings: sum(tools.map(({ total }) => total)),
      todayEarnings: sum(tools.map(({ today }) => today)),
      byTool,
    },
  };
}

function sum(amounts: readonly Micros[]): number {
  return dollarsOf(asMicros(amounts.reduce<number>((total, amount) => total + amount, 0)));
}
