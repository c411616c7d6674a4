/** The tree that a budget or a spend key belongs to, for operators, who name either by its id alone. */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from '../database.ts';

const Place = Type.Object({
  ledger: Type.Integer(),
  consumerId: Type.String(),
  accountId: Type.String(),
  /** The number of the budget, or of the key's budget. */
  number: Type.Integer(),
});
export type Place = Static<typeof Place>;

const placeRow = row(Place);

export function findPlaceOfBudget(connection: Connection, id: string): Promise<Place | null> {
  return connection.maybeOne(sql.type(placeRow)`
    select d.ledger, d.consumer_id as "consumerId", a.id as "accountId", d.number
    from farebox.budget_details d join farebox.accounts a on a.consumer_id = d.consumer_id
    where d.id = ${id}
  `);
}

export function findPlaceOfKey(connection: Connection, id: string): Promise<Place | null> {
  return connection.maybeOne(sql.type(placeRow)`
    select ledger, consumer_id as "consumerId", account_id as "accountId", budget as number
    from farebox.spend_keys where id = ${id} and developer is null
  `);
}
