/** What a developer earned: sums over the charges themselves, so exact at every moment. */
import { Type } from 'typebox';
import { asMicros, type Micros } from '../domain/money.ts';
import { row, sql, type Connection } from './database.ts';

export interface ToolEarnings {
  readonly tool: string;
  readonly total: Micros;
  readonly today: Micros;
}

const earningsRow = row(
  Type.Object({ tool: Type.String(), total: Type.Integer(), today: Type.Integer() }),
);

/** Per tool: everything, and what came since `todayId`, the UUIDv7 floor of the UTC day's beginning. */
export async function sumEarningsByTool(
  connection: Connection,
  { developerNumber }: { readonly developerNumber: number },
  todayId: string,
): Promise<ToolEarnings[]> {
  const rows = await connection.any(sql.type(earningsRow)`
    select tool, sum(amount_micros)::int8 as total,
      coalesce(sum(amount_micros) filter (where id >= ${todayId}::uuid), 0)::int8 as today
    from farebox.charges where developer = ${developerNumber} group by tool order by tool
  `);
  return rows.map(({ tool, total, today }) => ({
    tool,
    total: asMicros(total),
    today: asMicros(today),
  }));
}
