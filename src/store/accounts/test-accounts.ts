/**
 * Test accounts: the consumer and the developer of an account's test keys, with play money in ledgers of
 * their own. Made with the first test key; they have no address, no card and no owner who signs in.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { ledgerOf } from '../../domain/ids.ts';
import { TEST_LEDGER_MIN } from '../../domain/mode.ts';
import { row, sql, type Connection, type Database } from '../database.ts';

const Holder = Type.Object({
  accountId: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
});

/** A consumer and its account, live or test; ids are UUIDs. */
export type Holder = Static<typeof Holder>;

const holderRow = row(Holder);

const holder = sql.fragment`
  select id as "accountId", ledger, consumer_id as "consumerId" from farebox.accounts
`;

/** The test account of a live account, made now if it has none. Concurrent calls get the same one. */
export async function ensureTestAccount(
  database: Database,
  liveAccountId: string,
  ledgerCount: number,
): Promise<Holder> {
  const find = (connection: Connection) => findTestAccount(connection, liveAccountId);
  return (
    (await find(database)) ??
    database.transaction(async (tx) => {
      const consumerId = randomUUIDv7();
      const ledger = TEST_LEDGER_MIN + ledgerOf(consumerId, ledgerCount);
      await tx.query(sql.typeAlias('nothing')`
        with made as (
          insert into farebox.accounts (id, email, ledger, consumer_id, developer_id, live_account_id)
          values (${randomUUIDv7()}, ${`test:${liveAccountId}`}, ${ledger}, ${consumerId}, ${randomUUIDv7()},
            ${liveAccountId})
          -- Its address is unique, too, and either may be the one that another call has taken.
          on conflict do nothing
          returning ledger, consumer_id
        )
        insert into farebox.consumers (ledger, id) select ledger, consumer_id from made
      `);
      const made = await find(tx);
      if (!made) throw new Error(`account ${liveAccountId} did not get a test account`);
      return made;
    })
  );
}

/** Null before the first test key. */
export function findTestAccount(
  connection: Connection,
  liveAccountId: string,
): Promise<Holder | null> {
  return connection.maybeOne(
    sql.type(holderRow)`${holder} where live_account_id = ${liveAccountId}`,
  );
}

/** By the UUID of the account. */
export function getHolder(connection: Connection, accountId: string): Promise<Holder> {
  return connection.one(sql.type(holderRow)`${holder} where id = ${accountId}`);
}

/** By the UUID of the consumer. */
export function findHolder(connection: Connection, consumerId: string): Promise<Holder | null> {
  return connection.maybeOne(sql.type(holderRow)`${holder} where consumer_id = ${consumerId}`);
}
