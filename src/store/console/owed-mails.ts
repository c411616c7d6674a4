/**
 * Mails that are owed to a person about a change to how they sign in, or to who gets the events of their account, until
 * a mail server has them. A trigger writes the row in the transaction of the change
 * (migrations/functions/owe_security_mail.sql, owe_endpoint_mail.sql). A person has one row for each kind of change, so
 * the rows are few, even after many changes while the mail server is away.
 */
import { Type, type Static } from 'typebox';
import { durationOf, row, sql, type Connection } from '../database.ts';

const MAIL_KINDS = [
  'password_set',
  'passkey_added',
  'passkey_removed',
  'second_factor_on',
  'second_factor_off',
  'webhook_endpoint',
] as const;
export type OwedMailKind = (typeof MAIL_KINDS)[number];

const OwedMail = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  kind: Type.Enum(MAIL_KINDS),
});
export type OwedMail = Static<typeof OwedMail>;

const owedRow = row(OwedMail);

/** Null: the change owes none, or another process has sent it. */
export async function findOwedMail(
  connection: Connection,
  userId: string,
  kind: OwedMailKind,
): Promise<OwedMail | null> {
  return connection.maybeOne(sql.type(owedRow)`
    select id, user_id as "userId", kind from console.owed_mails
    where user_id = ${userId} and kind = ${kind}
  `);
}

/** The one that was tried longest ago, if that is at least this long. Nobody else gets it for as long. */
export async function takeOwedMail(
  connection: Connection,
  untriedForMs: number,
): Promise<OwedMail | null> {
  // A newer release may owe kinds that this one does not know.
  return connection.maybeOne(sql.type(owedRow)`
    update console.owed_mails set tried_at = now()
    where (user_id, kind) = (
      select user_id, kind from console.owed_mails
      where tried_at <= now() - ${durationOf(untriedForMs)}
        and kind = any(${sql.array(MAIL_KINDS, 'text')})
      order by tried_at limit 1 for update skip locked
    )
    returning id, user_id as "userId", kind
  `);
}

/** The mail server has it, or will never accept it. */
export async function recordSecurityMailed(connection: Connection, { id, userId, kind }: OwedMail) {
  await connection.query(sql.typeAlias('nothing')`
    delete from console.owed_mails where user_id = ${userId} and kind = ${kind} and id = ${id}
  `);
}

/** Returns how many were owed for longer than this. */
export async function dropOwedMails(connection: Connection, owedForMs: number): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    delete from console.owed_mails where owed_at < now() - ${durationOf(owedForMs)}
  `);
  return rowCount;
}
