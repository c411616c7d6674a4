/**
 * Counts the requests of a client address to one endpoint of the console's sign-in (src/console/client-counts.ts). On a
 * few connections of their own, as anybody may send such requests, and none may take the connections of others.
 */
import type { Pool } from 'pg';

/** Longer than any window. */
const KEPT_SECONDS = 3_600;

export interface ClientLimit {
  /** In seconds. */
  readonly window: number;
  readonly max: number;
}

export interface CountedRequest {
  readonly allowed: boolean;
  /** In how many seconds more are allowed. */
  readonly retryAfter: number | null;
}

const NOW = '(extract(epoch from now()) * 1000)::bigint';
const HAS_ENDED = `limits.last_request <= ${NOW} - $2::bigint * 1000`;
/** The column `last_request`, which the library named, is the beginning of the window. */
const COUNT = `
  with forgotten as (
    delete from console.rate_limits where id in (
      select id from console.rate_limits where last_request < ${NOW} - ${KEPT_SECONDS * 1_000}
      limit 10 for update skip locked
    ) and key <> $1
  )
  insert into console.rate_limits as limits (key, count, last_request) values ($1, 1, ${NOW})
  on conflict (key) do update set
    count = case when ${HAS_ENDED} then 1 else limits.count + 1 end,
    last_request = case when ${HAS_ENDED} then ${NOW} else limits.last_request end
  returning count, ceil((last_request - ${NOW}) / 1000.0 + $2)::integer as "secondsLeft"
`;

/**
 * Counts a request, and says whether it is allowed, else for how many seconds no more are. A window begins
 * with the first request after the last one ended.
 */
export async function countClientRequest(
  pool: Pick<Pool, 'query'>,
  key: string,
  { window, max }: ClientLimit,
): Promise<CountedRequest> {
  const { rows } = await pool.query<{ count: number; secondsLeft: number }>(COUNT, [key, window]);
  const [counted] = rows;
  if (counted === undefined) throw new Error('A request to sign in was not counted.');
  const { count, secondsLeft } = counted;
  return count <= max
    ? { allowed: true, retryAfter: null }
    : { allowed: false, retryAfter: secondsLeft };
}
