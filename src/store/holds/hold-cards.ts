/** The rate cards that priced holds. */
import { Type } from 'typebox';
import type { RateCard } from '../../domain/rate-card.ts';
import { row, sql, type Connection } from '../database.ts';
import { cardFields, rateCardOf } from '../tools/tools.ts';

const pricedHoldRow = row(
  Type.Object({
    developerNumber: Type.Integer(),
    holdId: Type.String(),
    tool: Type.String(),
    ...cardFields,
  }),
);

export interface PricedHold {
  readonly developerNumber: number;
  /** A UUID. */
  readonly holdId: string;
  readonly tool: string;
  /** Null: it was placed by an amount. */
  readonly card: RateCard | null;
}

/** The holds that exist. A lease is none of them: it has no tool. */
export async function findPricedHolds(
  connection: Connection,
  holds: readonly Pick<PricedHold, 'developerNumber' | 'holdId'>[],
): Promise<readonly PricedHold[]> {
  const rows = await connection.any(sql.type(pricedHoldRow)`
    select a.developer as "developerNumber", a.id as "holdId", h.tool, c.version as "cardVersion", c.units,
      c.unit_picos::text[] as "unitPicos"
    from ${sql.unnest(
      holds.map(({ developerNumber, holdId }) => [developerNumber, holdId]),
      ['int4', 'uuid'],
    )} as a (developer, id)
    cross join lateral (
      select tool, card from farebox.holds where developer = a.developer and id = a.id and tool <> '' limit 1
    ) h
    left join lateral (
      select r.version, r.units, r.unit_picos
      from farebox.accounts d
      join farebox.tools t on t.developer_id = d.developer_id and t.name = h.tool
      join farebox.rate_cards r on r.tool_id = t.id and r.version = h.card
      where d.developer_number = a.developer
    ) c on h.card > 0
  `);
  return rows.map(({ developerNumber, holdId, tool, ...card }) => ({
    developerNumber,
    holdId,
    tool,
    card: rateCardOf(card),
  }));
}
