/**
 * For doctor: a key is honored for 62 days; after that it makes a new charge or hold, as documented. One day allows for
 * differing clocks. `noun` is the plural of what a key makes. A row of `made` for which `isUndone` is true
 * took nothing from the consumer in the end, so it does not count.
 */
import { sql, type Fragment } from '../database.ts';

export function madeTwiceByOneKey(noun: 'charges' | 'holds', isUndone: Fragment) {
  const table = sql.identifier(['farebox', noun]);
  // Materialized, so that the condition is evaluated only for the few rows that share a key.
  return sql.fragment`
    with made as materialized (
      select * from ${table}
      where idempotency_hash in (
        select idempotency_hash from ${table} where idempotency_hash is not null
        group by 1 having count(*) > 1
      )
    )
    select 'consumer ' || consumer_id, ${noun}::text || ' ' || before || ' and ' || id || ' have one key'
    from (
      select consumer_id, id,
        lag(id) over (partition by idempotency_hash, request_fingerprint >> 40 order by id) as before
      from made where (${isUndone}) is not true
    ) k where uuid_extract_timestamp(id) - uuid_extract_timestamp(before) < interval '61 days'`;
}
