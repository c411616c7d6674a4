/**
 * A consumer's spending up to an instant, from the positions of its charges on the axis of its spending: a few probes
 * of the primary key instead of a sum over all charges.
 *
 * Ids get the time of Postgres' clock when their statement is sent, before the consumer is locked, so charges that are
 * close in time may be swapped on the axis. Each consumer's row says by how much they have been, `disorder`: usually
 * nothing, else a few milliseconds; hours where Postgres' clock was set back by hours. Only the charges that
 * are as close to the instant are added up one by one.
 */
import { Type } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { readArchivedBefore, sumArchivedCharges } from '../charges/archived.ts';
import type { ConsumerRef } from './consumers.ts';
import { micros, row, sql, timestampOf, type Connection } from '../database.ts';
import { idFloorOf } from '../database-ids.ts';

/**
 * The largest disorder that totals allow for. Waits and the clocks of processes make seconds of it, Postgres'
 * clock as much as it is set back. A bound, so that a clock that once was years ahead does not make every
 * total read years of charges. Doctor checks this and the disorder of each consumer.
 */
export const DISORDER_MS_MAX = 86_400_000;

const spentRow = row(Type.Object({ spentMicros: micros }));
const disorderRow = row(Type.Object({ isMuch: Type.Boolean() }));

/** The sum of all charges with ids from before that time. In the archived time, it must be the beginning of a month. */
export async function spentBefore(
  connection: Connection,
  consumer: ConsumerRef,
  timeMs: number,
): Promise<Micros> {
  const [spent] = await spentBeforeEach(connection, consumer, [timeMs]);
  return spent ?? asMicros(0);
}

/** For a consumer with little disorder: at a thousand charges a second, each time takes at most a tenth of a second. */
const TIMES_OF_STATEMENT = 20;
const LITTLE_MS = 60_000;

/** The same for several times, many in one statement: planning it takes longer than running it. */
export async function spentBeforeEach(
  connection: Connection,
  consumer: ConsumerRef,
  timesMs: readonly number[],
): Promise<Micros[]> {
  const archivedBeforeMs = await readArchivedBefore(connection);
  const unarchived = timesMs.filter((timeMs) => timeMs >= archivedBeforeMs);
  // After Postgres' clock was set back by hours, one time can take seconds, and a statement may take five.
  const isLong = unarchived.length > 1 && (await hasMuchDisorder(connection, consumer));
  const atOnce = isLong ? 1 : TIMES_OF_STATEMENT;
  const found: Micros[] = [];
  for (let first = 0; first < unarchived.length; first += atOnce) {
    const times = unarchived.slice(first, first + atOnce);
    found.push(...(await findSpent(connection, consumer, times)));
  }
  const spent: Micros[] = [];
  for (const timeMs of timesMs) {
    spent.push(
      timeMs < archivedBeforeMs
        ? await sumArchivedCharges(connection, consumer, { timeMs })
        : (found[unarchived.indexOf(timeMs)] ?? asMicros(0)),
    );
  }
  return spent;
}

async function hasMuchDisorder(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<boolean> {
  const isMuch = await connection.maybeOneFirst(sql.type(disorderRow)`
    select disorder > make_interval(secs => ${LITTLE_MS / 1_000}) as "isMuch"
    from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
  `);
  return isMuch ?? false;
}

async function findSpent(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  timesMs: readonly number[],
): Promise<readonly Micros[]> {
  const own = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const times = timesMs.map(
    (timeMs, place) =>
      sql.fragment`(${place}::int4, ${timestampOf(timeMs)}, ${uuidFloor(timeMs)}::uuid,
        ${uuidFloor(Math.max(timeMs - DISORDER_MS_MAX, 0))}::uuid)`,
  );
  const rows = await connection.any(sql.type(spentRow)`
    with consumer as materialized (
      select spent_micros, least(disorder, make_interval(secs => ${DISORDER_MS_MAX / 1_000})) as disorder
      from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
    ), next as materialized (
      select t.*, n.id as next_id, ${idFloorOf(
        sql.fragment`uuid_extract_timestamp(n.id) + (select disorder from consumer) + interval '1 millisecond'`,
      )} as beyond
      from (values ${sql.join(times, sql.fragment`, `)}) as t (place, at, floor_id, earliest_id)
      left join lateral farebox.next_charge(${ledger}::int2, ${consumerId}, t.floor_id) as n (id) on true
    ), later as materialized (
      -- The position at which the first later charge begins. Without a later charge, everything is earlier.
      select next.*, coalesce(
        (select min(spent_micros - amount_micros) from farebox.charges
          where ${own} and id >= next_id and id < beyond),
        (select spent_micros from consumer)
      ) as begins
      from next
    )
    select (begins + coalesce((
      select sum(amount_micros) from farebox.charges
      where ${own} and id >= earliest_id
        and id >= ${idFloorOf(sql.fragment`later.at - (select disorder from consumer)`)}
        and id < floor_id and spent_micros > begins
    ), 0) + coalesce((
      -- Archived charges were made earlier, and at the end of a month a few may lie behind later ones.
      select sum(upper(after) - lower(after))
      from farebox.archived_spending cross join lateral
        unnest(stretches * int8multirange(int8range(begins, null))) as after
      where ${own}
    ), 0))::int8 as "spentMicros" from later order by place
  `);
  return rows.map(({ spentMicros }) => spentMicros);
}
