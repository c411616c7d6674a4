/** The rate cards that tools had when holds were placed. */
import { Type } from 'typebox';
import type { RateCard } from '../../domain/rate-card.ts';
import { row, sql, type Connection } from '../database.ts';
import { cardFields, rateCardOf } from '../tools/tools.ts';

const holdCardRow = row(
  Type.Object({ developerNumber: Type.Integer(), holdId: Type.String(), ...cardFields }),
);

export interface FoundCard {
  readonly developerNumber: number;
  readonly holdId: string;
  /** Null: the tool had none. */
  readonly card: RateCard | null;
}

/**
 * The cards of the holds that exist. A lease is none of them: it has no tool. A card that was removed before the hold
 * was placed still counts.
 */
export async function findHoldCards(
  connection: Connection,
  holds: readonly { readonly developerNumber: number; readonly holdId: string }[],
): Promise<readonly FoundCard[]> {
  const rows = await connection.any(sql.type(holdCardRow)`
    select a.developer as "developerNumber", a.id as "holdId", c.version as "cardVersion", c.units,
      c.unit_picos::text[] as "unitPicos"
    from ${sql.unnest(
      holds.map(({ developerNumber, holdId }) => [developerNumber, holdId]),
      ['int4', 'uuid'],
    )} as a (developer, id)
    cross join lateral (
      select tool, placed_at from farebox.holds where developer = a.developer and id = a.id and tool <> '' limit 1
    ) h
    left join lateral (
      select r.version, r.units, r.unit_picos
      from farebox.accounts d
      join farebox.tools t on t.developer_id = d.developer_id and t.name = h.tool
      join farebox.rate_cards r on r.tool_id = t.id and r.created_at <= h.placed_at
      where d.developer_number = a.developer
      order by r.version desc limit 1
    ) c on true
  `);
  return rows.map(({ developerNumber, holdId, ...card }) => ({
    developerNumber,
    holdId,
    card: rateCardOf(card),
  }));
}
