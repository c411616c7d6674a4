/**
 * The mails that tell owners that a webhook endpoint was disabled because of its responses. The transaction
 * that disables the endpoint notes that a mail is owed (webhook-endpoints.ts). Once the owner enables or
 * deletes the endpoint, none is owed.
 */
import { Type, type Static } from 'typebox';
import { durationOf, row, sql, type Connection } from '../database.ts';

const DisabledEndpoint = Type.Object({
  id: Type.String(),
  reason: Type.Enum(['failing', 'gone']),
  /** The owner's address. A test account has that of its live account. */
  email: Type.String(),
  isTest: Type.Boolean(),
  /** As text, which keeps the microseconds. */
  triedAt: Type.String(),
});
export type DisabledEndpoint = Static<typeof DisabledEndpoint>;

const disabledRow = row(DisabledEndpoint);

/**
 * Takes the mail whose last attempt is the oldest, if it began at least this long ago. No other process takes
 * it for as long.
 */
export async function takeDisabled(
  connection: Connection,
  untriedForMs: number,
): Promise<DisabledEndpoint | null> {
  return connection.maybeOne(sql.type(disabledRow)`
    update farebox.webhook_endpoints e
    set mail_tried_at = now()
    from farebox.accounts a left join farebox.accounts l on l.id = a.live_account_id
    where e.id = (
      select id from farebox.webhook_endpoints
      where mail_owed_at is not null
        and coalesce(mail_tried_at, '-infinity') <= now() - ${durationOf(untriedForMs)}
      order by mail_tried_at nulls first limit 1 for update skip locked
    ) and a.id = e.account_id
    returning e.id, e.disabled_reason as reason, coalesce(l.email, a.email) as email,
      l.id is not null as "isTest",
      e.mail_tried_at::text as "triedAt"
  `);
}

/**
 * The mail server has the mail, or will never accept it. Does nothing if the endpoint was enabled and
 * disabled again meanwhile.
 */
export async function recordDisabledMailed(
  connection: Connection,
  { id, triedAt }: DisabledEndpoint,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.webhook_endpoints set mail_owed_at = null
    where id = ${id} and mail_tried_at::text = ${triedAt}
  `);
}

/** Drops the mails that have been owed for longer than this, and returns how many. */
export async function dropDisabled(connection: Connection, owedForMs: number): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    update farebox.webhook_endpoints set mail_owed_at = null
    where mail_owed_at < now() - ${durationOf(owedForMs)}
  `);
  return rowCount;
}
