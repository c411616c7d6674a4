/** The newest mails that were not sent because no mail server is configured, for development. */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from '../database.ts';

const Mail = Type.Object({
  recipient: Type.String(),
  subject: Type.String(),
  body: Type.String(),
  createdAt: Type.String(),
});
export type StoredMail = Static<typeof Mail>;

const mailRow = row(Mail);
const KEPT_MAX = 100;

export async function keepMail(
  connection: Connection,
  mail: Omit<StoredMail, 'createdAt'>,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into console.mails (recipient, subject, body)
    values (${mail.recipient}, ${mail.subject}, ${mail.body})
  `);
  await connection.query(sql.typeAlias('nothing')`
    delete from console.mails
    where id < (select id from console.mails order by id desc offset ${KEPT_MAX} limit 1)
  `);
}

/** Newest first. */
export async function listMails(connection: Connection): Promise<readonly StoredMail[]> {
  return connection.any(sql.type(mailRow)`
    select recipient, subject, body, created_at as "createdAt" from console.mails
    order by id desc limit ${KEPT_MAX}
  `);
}
