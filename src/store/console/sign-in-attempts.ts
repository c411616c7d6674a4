/** How often somebody tried to sign in as the owner of an address, from wherever they tried. */
import { createHash } from 'node:crypto';
import { type Connection, countRow, sql } from '../database.ts';

const WINDOW_MS = 15 * 60_000;
/** Beyond it, the password is not looked at. A person who types needs fewer, a program that guesses far more. */
const ATTEMPTS_MAX = 10;

const endedAt = sql.fragment`now() - make_interval(secs => ${WINDOW_MS / 1_000})`;

/** Counts an attempt before its outcome is known, whether the address has an account or not. */
export async function mayTrySignIn(connection: Connection, email: string): Promise<boolean> {
  const count = await connection.oneFirst(sql.type(countRow)`
    with forgotten as (
      delete from console.sign_in_attempts
      where email_hash in (
        select email_hash from console.sign_in_attempts where began_at < ${endedAt}
        order by began_at limit 10 for update skip locked
      ) and email_hash <> ${hashOf(email)}
    )
    insert into console.sign_in_attempts as attempts (email_hash, count) values (${hashOf(email)}, 1)
    on conflict (email_hash) do update set
      count = case when attempts.began_at < ${endedAt} then 1 else attempts.count + 1 end,
      began_at = case when attempts.began_at < ${endedAt} then now() else attempts.began_at end
    returning count
  `);
  return count <= ATTEMPTS_MAX;
}

/** After the right password, or a new one. */
export async function forgetAttempts(connection: Connection, email: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from console.sign_in_attempts where email_hash = ${hashOf(email)}
  `);
}

/** Not the address itself, which may be a person's and have no account. */
function hashOf(email: string) {
  return sql.binary(createHash('sha256').update(email.toLowerCase()).digest());
}
