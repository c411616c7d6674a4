/** Millions of charges within the last month, in a ledger with partitions for three years. */
import { DAY_MS } from '../src/domain/durations.ts';
import { createDatabase } from '../src/store/database.ts';
import { ensureChargePartitions } from '../src/store/charges/partitions.ts';
import { rebuildRollups } from '../src/store/earnings/rollups.ts';
import { BALANCE, CONSUMERS, type Ledger } from './ledger.ts';
import { withClient } from './stack.ts';

export const DAYS = 30;
export const MONTHS = 36;
/** Charges for rarely used tools, each in a different hour. */
export const RARE = 10;
export const SELDOM = 500;

/**
 * Consumer 1 has every other charge. So does developer 1, in pairs, who also has the rare tools. Consumer 2 has none.
 * $2 is the number of spend keys that take turns in paying for consumer 1, each at one developer; 0: keys of
 * the account.
 */
const CHARGE = `
  insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id, developer,
    ledger, receipt_key, tool, origin)
  select 100, 100 * seq, ${BALANCE} - 100 * seq,
    uuidv7(make_interval(secs => -${DAYS} * 86400.0 * (1 - slot / $1::float8))),
    c.id, case when slot / 2 % 2 = 0 then 1 when n = 1 and $2 > 0 then 2 + slot / 2 % $2 % 999
      else 2 + slot % 999 end, c.ledger, 1,
    case when slot % ($1 / ${RARE}) = 0 then 'rare' when slot % ($1 / ${SELDOM}) = 0 then 'seldom'
      else 'search' end,
    case when n = 1 and $2 > 0 then int4send((1 + slot / 2 % $2)::int4) else '' end
  from (
    select slot, n, row_number() over (partition by n order by slot) as seq
    from (
      select slot, case when slot % 2 = 0 then 1 else 3 + slot % ${CONSUMERS - 3} end as n
      from generate_series(1, $1::int8) slot
    ) drawn
  ) placed join bench.consumers c using (n)
  order by slot
`;

const SETTLE = [
  `update farebox.consumers c set spent_micros = h.micros
   from (select ledger, consumer_id, sum(amount_micros) as micros from farebox.charges group by 1, 2) h
   where c.ledger = h.ledger and c.id = h.consumer_id`,
  'vacuum analyze',
  'checkpoint',
];

export function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString();
}

export async function fillMonths(
  { databaseUrl }: Ledger,
  charges: number,
  spendKeys = 0,
): Promise<void> {
  for (let month = MONTHS; month >= 0; month -= 1) {
    await ensureChargePartitions(databaseUrl, Date.now() - month * 30 * DAY_MS);
  }
  await withClient(databaseUrl, (client) => client.query(CHARGE, [charges, spendKeys]));
  const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  await rebuildRollups(database);
  await database.end();
  await withClient(databaseUrl, async (client) => {
    for (const statement of SETTLE) await client.query(statement);
  });
}
