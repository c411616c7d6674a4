/**
 * For doctor: a key is honored for 62 days; after that it makes a new charge or hold, as documented. One day allows for
 * differing clocks. `noun` is the plural of what a key makes.
 */
import { sql } from '../database.ts';

export function madeTwiceByOneKey(noun: 'charges' | 'holds') {
  const table = sql.identifier(['farebox', noun]);
  return sql.fragment`
    select 'consumer ' || consumer_id, ${noun}::text || ' ' || before || ' and ' || id || ' have one key'
    from (
      select consumer_id, id,
        lag(id) over (partition by idempotency_hash, request_fingerprint >> 40 order by id) as before
      from ${table}
      where idempotency_hash in (
        select idempotency_hash from ${table} where idempotency_hash is not null
        group by 1 having count(*) > 1
      )
    ) k where uuid_extract_timestamp(id) - uuid_extract_timestamp(before) < interval '61 days'`;
}
