/**
 * Counts how often anybody tried to sign in with an address, or had a link mailed to it, from wherever they
 * tried, and how often a code was used (src/console/sign-in-limit.ts).
 */
import { hash } from 'node:crypto';
import { Type } from 'typebox';
import { type Connection, countRow, row, sql } from '../database.ts';

const knownRow = row(Type.Object({ isKnown: Type.Boolean() }));

/**
 * Counts an attempt before its outcome is known, whether the address has an account or not. Returns how many there were
 * in the window, this one included; a window begins with the first attempt after the last one ended.
 */
export async function countSignInAttempt(
  connection: Connection,
  email: string,
  windowMinutes: number,
): Promise<number> {
  const endedAt = sql.fragment`now() - make_interval(mins => ${windowMinutes})`;
  return connection.oneFirst(sql.type(countRow)`
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
}

/** The same for links that are mailed to an address. */
export function countMailedLink(
  connection: Connection,
  email: string,
  windowMinutes: number,
): Promise<number> {
  return countSignInAttempt(connection, `link to ${email}`, windowMinutes);
}

/**
 * The same for a right code of two-factor authentication: only the first use signs in (RFC 6238, section
 * 5.2). The window is longer than a code is right.
 */
export function countUsedCode(
  connection: Connection,
  { userId, code }: { readonly userId: string; readonly code: string },
  windowMinutes: number,
): Promise<number> {
  return countSignInAttempt(connection, `code ${code} of ${userId}`, windowMinutes);
}

/** The same for new passwords that reset the wrong codes of an address. */
export function countForgottenCodes(
  connection: Connection,
  email: string,
  windowMinutes: number,
): Promise<number> {
  return countSignInAttempt(connection, `codes of ${email} forgotten`, windowMinutes);
}

/** A link in a mail has proven the owner, at this place. */
export async function notePasswordSet(
  connection: Connection,
  { email, place }: Attempt,
  windowMinutes: number,
): Promise<void> {
  await countSignInAttempt(connection, passwordSetBy({ email, place }), windowMinutes);
}

/** Whether the owner has a session that began at this place, or has just set a password there. */
export async function isKnownPlace(
  connection: Connection,
  { email, place }: Attempt,
  windowMinutes: number,
): Promise<boolean> {
  return connection.oneFirst(sql.type(knownRow)`
    select exists (
      select from console.sessions s join console.users u on u.id = s.user_id
      where u.email = ${email.toLowerCase()} and s.ip_address = ${place}
    ) or exists (
      select from console.sign_in_attempts where email_hash = ${hashOf(passwordSetBy({ email, place }))}
        and began_at > now() - make_interval(mins => ${windowMinutes})
    ) as "isKnown"
  `);
}

interface Attempt {
  readonly email: string;
  /** An IPv4 address or an IPv6 network. */
  readonly place: string;
}

function passwordSetBy({ email, place }: Attempt): string {
  return `password of ${email} set from ${place}`;
}

/** After the right password, or a new one. */
export async function forgetAttempts(connection: Connection, email: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from console.sign_in_attempts where email_hash = ${hashOf(email)}
  `);
}

/** Not the address itself, which may be a person's and have no account. */
function hashOf(email: string) {
  return sql.binary(hash('sha256', email.toLowerCase(), 'buffer'));
}
