/** Which credentials of open streams, exports and requests that waited still work, in one statement. */
import { type Connection, idRow, sql } from '../database.ts';
import { IS_ACTIVE } from './api-keys.ts';

/** A key of an account, a spend key, or a session of the console. */
export interface Credential {
  readonly kind: 'key' | 'session';
  readonly id: string;
}

/** The ids of those that work. */
export async function findActiveCredentials(
  connection: Connection,
  credentials: readonly Credential[],
): Promise<ReadonlySet<string>> {
  const ids = (kind: Credential['kind']) =>
    sql.array(
      credentials.filter((each) => each.kind === kind).map(({ id }) => id),
      'uuid',
    );
  const active = await connection.anyFirst(sql.type(idRow)`
    select id from farebox.api_keys
    where id = any (${ids('key')}) and ${IS_ACTIVE}
    union all
    select id from farebox.spend_keys where id = any (${ids('key')}) and ${IS_ACTIVE}
    union all
    select id from console.sessions where id = any (${ids('session')}) and expires_at > now()
  `);
  return new Set(active);
}
