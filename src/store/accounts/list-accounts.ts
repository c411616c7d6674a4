/** Live accounts with their balances, for operators. */
import { Type, type Static } from 'typebox';
import { balanceOf } from '../balance/consumers.ts';
import { micros, row, sql, type Connection } from '../database.ts';

const ListedAccount = Type.Object({
  id: Type.String(),
  email: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  balanceMicros: micros,
  createdAt: Type.String(),
});

export type ListedAccount = Static<typeof ListedAccount>;

export const listedRow = row(ListedAccount);

/** The beginning of a statement: conditions on `a`, the account, may follow with `and`. */
export const liveAccounts = sql.fragment`
  select a.id, a.email, a.consumer_id as "consumerId", a.developer_id as "developerId",
    ${balanceOf('c')} as "balanceMicros", a.created_at as "createdAt"
  from farebox.accounts a
  join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
  where a.live_account_id is null
`;

export interface AccountPage {
  readonly limit: number;
  /** The UUID of the last account of the page before. */
  readonly after?: string | undefined;
  /** A part of the email address. */
  readonly search?: string | undefined;
}

/** Newest first. */
export function listAccounts(
  connection: Connection,
  { limit, after, search = '' }: AccountPage,
): Promise<readonly ListedAccount[]> {
  return connection.any(sql.type(listedRow)`
    ${liveAccounts}
      and ${after === undefined ? sql.fragment`true` : sql.fragment`a.id < ${after}`}
      and strpos(a.email, ${search.toLowerCase()}) > 0
    order by a.id desc limit ${limit}
  `);
}
