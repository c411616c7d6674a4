/** Finds live accounts for operators, by what a customer's email, a log line or Stripe's dashboard names. */
import { Type, type Static } from 'typebox';
import type { Mode } from '../../domain/mode.ts';
import { micros, row, sql, type Connection } from '../database.ts';

const FoundAccount = Type.Object({
  id: Type.String(),
  email: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  balanceMicros: micros,
  createdAt: Type.String(),
});
export type FoundAccount = Static<typeof FoundAccount>;

const foundRow = row(FoundAccount);

export type AccountClue =
  | { readonly kind: 'uuid'; readonly uuid: string }
  | { readonly kind: 'topUp'; readonly uuid: string }
  /** Of the payment processor: a customer, a payment intent or a session. */
  | { readonly kind: 'processor'; readonly id: string }
  /** The beginning of an address. */
  | { readonly kind: 'email'; readonly start: string };

/** By address, at most `limit`. */
export async function findAccounts(
  connection: Connection,
  clue: AccountClue,
  limit: number,
): Promise<readonly FoundAccount[]> {
  return connection.any(sql.type(foundRow)`
    select a.id, a.email, a.consumer_id as "consumerId", a.developer_id as "developerId",
      c.credited_micros - c.spent_micros - c.held_micros as "balanceMicros",
      a.created_at as "createdAt"
    from farebox.accounts a
    join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
    where a.live_account_id is null and ${matching(clue)} order by a.email limit ${limit}
  `);
}

const numberRow = row(Type.Object({ number: Type.Integer() }));

/** The number under which charges name a developer; `developerId` is a UUID. */
export async function findDeveloperNumber(
  connection: Connection,
  developerId: string,
  mode: Mode,
): Promise<number | null> {
  return connection.maybeOneFirst(sql.type(numberRow)`
    select developer_number as number from farebox.accounts
    where developer_id = ${developerId} and (live_account_id is not null) = ${mode === 'test'}
  `);
}

function matching(clue: AccountClue) {
  switch (clue.kind) {
    case 'uuid':
      return sql.fragment`${clue.uuid}::uuid in (a.id, a.consumer_id, a.developer_id)`;
    case 'topUp':
      return sql.fragment`a.id = (select account_id from farebox.top_ups where id = ${clue.uuid})`;
    case 'processor':
      return sql.fragment`(a.processor_customer_id = ${clue.id} or a.id in (
        select account_id from farebox.top_ups
        where payment_intent_id = ${clue.id} or session_id = ${clue.id}
      ))`;
    case 'email':
      return sql.fragment`starts_with(a.email, ${clue.start.toLowerCase()})`;
  }
}
