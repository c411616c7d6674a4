/** How often somebody tried to sign in as the owner of an address, from wherever they tried. */
import { createHash } from 'node:crypto';
import { type Connection, countRow, sql } from '../database.ts';

const WINDOW_MS = 15 * 60_000;
/** Beyond it, the password is not looked at. A person who types needs fewer, a program that guesses far more. */
const ATTEMPTS_MAX = 10;

/** Counts an attempt before its outcome is known, whether the address has an account or not. */
export async function mayTrySignIn(connection: Connection, email: string): Promise<boolean> {
  const nowMs = Date.now();
  const endedMs = nowMs - WINDOW_MS;
  const count = await connection.oneFirst(sql.type(countRow)`
    with forgotten as (
      delete from console.rate_limits
      where id in (
        select id from console.rate_limits where key like 'account/%' and last_request < ${endedMs} limit 10
      ) and key <> ${keyOf(email)}
    )
    insert into console.rate_limits (key, count, last_request) values (${keyOf(email)}, 1, ${nowMs})
    on conflict (key) do update set
      count = case when rate_limits.last_request < ${endedMs} then 1 else rate_limits.count + 1 end,
      last_request = case when rate_limits.last_request < ${endedMs} then ${nowMs}
        else rate_limits.last_request end
    returning count
  `);
  return count <= ATTEMPTS_MAX;
}

/** After the right password, or a new one. */
export async function forgetAttempts(connection: Connection, email: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from console.rate_limits where key = ${keyOf(email)}
  `);
}

/** Not the address itself, which may be a person's and have no account. */
function keyOf(email: string): string {
  return `account/${createHash('sha256').update(email.toLowerCase()).digest('hex')}`;
}
