/** Finds live accounts for operators, by what a customer's email, a log line or Stripe's dashboard names. */
import { Type } from 'typebox';
import type { Mode } from '../../domain/mode.ts';
import { row, sql, type Connection } from '../database.ts';
import { listedRow, liveAccounts, type ListedAccount } from './list-accounts.ts';

export type AccountClue =
  | { readonly kind: 'uuid'; readonly uuid: string }
  | { readonly kind: 'topUp' | 'charge' | 'budget' | 'key'; readonly uuid: string }
  /** An id of the payment processor: a customer, a payment intent or a session. */
  | { readonly kind: 'processor'; readonly id: string }
  /** The beginning of an address. */
  | { readonly kind: 'email'; readonly start: string };

/** By address, at most `limit`. */
export async function findAccounts(
  connection: Connection,
  clue: AccountClue,
  limit: number,
): Promise<readonly ListedAccount[]> {
  return connection.any(sql.type(listedRow)`
    ${liveAccounts} and ${matching(clue)} order by a.email limit ${limit}
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
    case 'charge':
      return sql.fragment`a.id in (
        select party.id from farebox.parties_of_charge(${clue.uuid}) of_charge
        join farebox.accounts party
          on party.consumer_id = of_charge.consumer_id or party.developer_number = of_charge.developer
      )`;
    case 'budget':
      return sql.fragment`
        a.consumer_id = (select consumer_id from farebox.budget_details where id = ${clue.uuid})
      `;
    case 'key':
      return sql.fragment`a.id in (
        select account_id from farebox.api_keys where id = ${clue.uuid}
        union all select account_id from farebox.spend_keys where id = ${clue.uuid}
      )`;
    case 'processor':
      return sql.fragment`(a.processor_customer_id = ${clue.id} or a.id in (
        select account_id from farebox.top_ups
        where payment_intent_id = ${clue.id} or session_id = ${clue.id}
      ))`;
    case 'email':
      return sql.fragment`starts_with(a.email, ${clue.start.toLowerCase()})`;
  }
}
