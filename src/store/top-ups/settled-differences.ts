/**
 * Differences from Stripe that an operator settled, because nothing is left to do about them. Of each top-up and kind,
 * the latest settlement counts, and exactly its amounts are settled: a difference that grows, shrinks or ends shows
 * again, until it is settled with its new amounts.
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

const LATEST = sql.fragment`
  (
    select distinct on (top_up_id, kind) * from farebox.settled_differences
    order by top_up_id, kind, id desc
  ) as latest
`;

/** The differences that are not settled. */
export const OPEN_DIFFERENCES = sql.fragment`
  (
    select * from farebox.differences d
    where not exists (
      select from ${LATEST}
      where (latest.top_up_id, latest.kind, latest.processor_micros, latest.ledger_micros)
        = (d.top_up_id, d.kind, d.processor_micros, d.ledger_micros)
    )
  ) as differences
`;

/** Settles these amounts, also if reconciliation has recorded others since. */
export async function settleDifference(
  database: Database,
  { topUpId, kind, processorMicros, ledgerMicros }: Settled,
  reason: string,
): Promise<void> {
  await database.query(sql.typeAlias('nothing')`
    insert into farebox.settled_differences
      (id, top_up_id, account_id, kind, processor_micros, ledger_micros, reason)
    values (uuidv7(), ${topUpId}, (select account_id from farebox.top_ups where id = ${topUpId}), ${kind},
      ${processorMicros}, ${ledgerMicros}, ${reason})
  `);
}

/** The latest settlements of all top-ups. */
export async function listSettled(connection: Connection): Promise<readonly Settled[]> {
  return connection.any(sql.type(settledRow)`select ${columns} from ${LATEST}`);
}

/** The latest settlements of one top-up. */
export async function listSettledOf(
  connection: Connection,
  topUpId: string,
): Promise<readonly Settled[]> {
  return connection.any(sql.type(settledRow)`
    select ${columns} from ${LATEST} where top_up_id = ${topUpId}
  `);
}
