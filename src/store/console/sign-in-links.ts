/** Links that sign a person in once. Operators create them; they have access to the database anyway. */
import { hash, randomBytes } from 'node:crypto';
import { Type } from 'typebox';
import { row, sql, type Connection } from '../database.ts';

const emailRow = row(Type.Object({ email: Type.String() }));

/** Returns the token. Only its hash is stored. */
export async function createSignInLink(
  connection: Connection,
  email: string,
  lifetimeSeconds: number,
): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await connection.query(sql.typeAlias('nothing')`
    delete from console.sign_in_links where expires_at < now()
  `);
  await connection.query(sql.typeAlias('nothing')`
    insert into console.sign_in_links (token_hash, email, expires_at)
    values (decode(${hashOf(token)}, 'hex'), ${email.toLowerCase()},
      now() + make_interval(secs => ${lifetimeSeconds}))
  `);
  return token;
}

/** The address that the token signs in; null when the token is unknown, used or too old. */
export async function findSignInLink(
  connection: Connection,
  token: string,
): Promise<string | null> {
  return connection.maybeOneFirst(sql.type(emailRow)`
    select email from console.sign_in_links where ${isUsable(token)}
  `);
}

/** False when `findSignInLink` finds it no more. Of two concurrent uses, one succeeds. */
export async function useSignInLink(connection: Connection, token: string): Promise<boolean> {
  const used = await connection.maybeOne(sql.type(emailRow)`
    delete from console.sign_in_links where ${isUsable(token)} returning email
  `);
  return used !== null;
}

const isUsable = (token: string) => sql.fragment`
  token_hash = decode(${hashOf(token)}, 'hex') and expires_at > now()
`;

function hashOf(token: string): string {
  return hash('sha256', token);
}
