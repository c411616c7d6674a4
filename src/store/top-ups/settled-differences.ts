/**
 * Differences from Stripe that an operator settled, because nothing is left to do about them. Exactly those amounts are
 * settled, so a difference that grows or shrinks shows again.
 */
import { Type, type Static } from 'typebox';
import { DIFFERENCE_KINDS } from '../../domain/difference.ts';
import { type Connection, type Database, micros, row, sql } from '../database.ts';

const Settled = Type.Object({
  topUpId: Type.String(),
  kind: Type.Enum(DIFFERENCE_KINDS),
  processorMicros: micros,
  ledgerMicros: micros,
});
export type Settled = Static<typeof Settled>;

const settledRow = row(Settled);

const columns = sql.fragment`
  top_up_id as "topUpId", kind, processor_micros as "processorMicros", ledger_micros as "ledgerMicros"
`;

/** The differences that are not settled. */
export const OPEN_DIFFERENCES = sql.fragment`
  (
    select * from farebox.differences d
    where not exists (
      select from farebox.settled_differences s
      where (s.top_up_id, s.kind, s.processor_micros, s.ledger_micros)
        = (d.top_up_id, d.kind, d.processor_micros, d.ledger_micros)
    )
  ) as differences
`;

/** Settles what is known to differ about a top-up. Returns it, or nothing if all of it was settled before. */
export async function settleDifferences(
  database: Database,
  topUpId: string,
  reason: string,
): Promise<readonly Settled[]> {
  return database.any(sql.type(settledRow)`
    insert into farebox.settled_differences
      (id, top_up_id, account_id, kind, processor_micros, ledger_micros, reason)
    select uuidv7(), d.top_up_id, t.account_id, d.kind, d.processor_micros, d.ledger_micros, ${reason}
    from farebox.differences d left join farebox.top_ups t on t.id = d.top_up_id
    where d.top_up_id = ${topUpId}
    on conflict on constraint settled_differences_once do nothing
    returning ${columns}
  `);
}

export async function listSettled(connection: Connection): Promise<readonly Settled[]> {
  return connection.any(sql.type(settledRow)`
    select ${columns} from farebox.settled_differences
  `);
}
