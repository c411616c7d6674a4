/** Refused requests of developers, counted by hour, code and tool, with the ids of the last ones. */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from '../database.ts';

export interface CountedRefusal {
  readonly developerId: string;
  /** The start of the hour. */
  readonly hour: string;
  readonly code: string;
  readonly tool: string;
  readonly count: number;
  readonly lastAt: string;
  /** Newest first, at most `REQUEST_IDS_MAX`. */
  readonly requestIds: readonly string[];
}

export const REQUEST_IDS_MAX = 5;
const KEPT_DAYS = 30;

/** In one order, so that two processes never wait for each other's rows. */
export async function addRefusals(
  connection: Connection,
  refusals: readonly CountedRefusal[],
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.refusals (developer_id, hour, code, tool, count, last_at, request_ids)
    select developer_id, hour, code, tool, count, last_at, string_to_array(request_ids, ' ')
    from ${sql.unnest(
      refusals.map(({ developerId, hour, code, tool, count, lastAt, requestIds }) => [
        developerId,
        hour,
        code,
        tool,
        count,
        lastAt,
        requestIds.join(' '),
      ]),
      ['uuid', 'timestamptz', 'text', 'text', 'int8', 'timestamptz', 'text'],
    )} as r (developer_id, hour, code, tool, count, last_at, request_ids)
    order by developer_id, hour, code, tool
    on conflict (developer_id, hour, code, tool) do update set
      count = refusals.count + excluded.count,
      last_at = greatest(refusals.last_at, excluded.last_at),
      request_ids = (excluded.request_ids || refusals.request_ids)[1:${REQUEST_IDS_MAX}::int8]
  `);
}

/** Deletes both kinds: refusals counted for developers, and those counted for the owners of keys. */
export async function deleteOldRefusals(connection: Connection): Promise<void> {
  const isOld = sql.fragment`hour < now() - make_interval(days => ${KEPT_DAYS})`;
  await connection.query(sql.typeAlias('nothing')`
    with of_keys as (delete from farebox.key_refusals where ${isOld})
    delete from farebox.refusals where ${isOld}
  `);
}

const Refusals = Type.Object({
  code: Type.String(),
  tool: Type.String(),
  count: Type.Integer(),
  lastAt: Type.String(),
  requestIds: Type.Array(Type.String()),
});
export type Refusals = Static<typeof Refusals>;

const refusalsRow = row(Refusals);

/** By code and tool, the most frequent first. An hour that is only partly within the last `hours` counts in full. */
export async function listRefusals(
  connection: Connection,
  developerId: string,
  { hours, limit }: { readonly hours: number; readonly limit: number },
): Promise<readonly Refusals[]> {
  return connection.any(sql.type(refusalsRow)`
    select code, tool, sum(count)::int8 as count, max(last_at) as "lastAt",
      json_agg(request_ids order by hour desc) -> 0 as "requestIds"
    from farebox.refusals
    where developer_id = ${developerId} and hour > now() - make_interval(hours => ${hours + 1})
    group by code, tool order by count desc, code, tool limit ${limit}
  `);
}
