/**
 * The payment processor's customer for an account, created at its first top-up and kept while the processor
 * knows it, and the saved card that the owner chose.
 */
import { Type, type Static } from 'typebox';
import { nullable, row, sql, type Connection } from '../database.ts';

const customerRow = row(Type.Object({ customerId: nullable(Type.String()) }));
const TaxedCustomer = Type.Object({
  customerId: nullable(Type.String()),
  paidAt: nullable(Type.String()),
});
const taxedRow = row(TaxedCustomer);
const cardRow = row(Type.Object({ cardId: nullable(Type.String()) }));

export async function findProcessorCustomer(
  connection: Connection,
  accountId: string,
): Promise<string | null> {
  return connection.oneFirst(sql.type(customerRow)`
    select processor_customer_id as "customerId" from farebox.accounts where id = ${accountId}
  `);
}

/** The customer, and when the account last paid at a checkout, where the payer may have changed the address. */
export async function findTaxedCustomer(
  connection: Connection,
  accountId: string,
): Promise<Static<typeof TaxedCustomer>> {
  return connection.one(sql.type(taxedRow)`
    select a.processor_customer_id as "customerId", (
      select max(t.completed_at) from farebox.top_ups t
      where t.consumer_id = a.consumer_id and t.method = 'checkout' and not t.by_link
    ) as "paidAt"
    from farebox.accounts a where a.id = ${accountId}
  `);
}

/** The card that the owner chose, or null. */
export async function findChosenCard(
  connection: Connection,
  accountId: string,
): Promise<string | null> {
  return connection.oneFirst(sql.type(cardRow)`
    select processor_card_id as "cardId" from farebox.accounts where id = ${accountId}
  `);
}

/** Forgets the choice of a card that is not saved any more. */
export async function forgetCard(
  connection: Connection,
  accountId: string,
  cardId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.accounts set processor_card_id = null
    where id = ${accountId} and processor_card_id = ${cardId}
  `);
}

const recordedRow = row(Type.Object({ customerId: Type.String() }));

/** Returns the first recorded customer, which is the one that counts. */
export async function recordProcessorCustomer(
  connection: Connection,
  accountId: string,
  customerId: string,
): Promise<string> {
  return connection.oneFirst(sql.type(recordedRow)`
    update farebox.accounts set processor_customer_id = coalesce(processor_customer_id, ${customerId})
    where id = ${accountId} returning processor_customer_id as "customerId"
  `);
}

/**
 * Records a customer that was made before the database was restored. Skips an account that has one or no
 * longer exists.
 */
export async function adoptCustomer(
  connection: Connection,
  accountId: string,
  customerId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.accounts set processor_customer_id = ${customerId}
    where id = ${accountId} and processor_customer_id is null
  `);
}

/**
 * Replaces a customer that the processor does not know. Returns the recorded one, which another call may have
 * replaced.
 */
export async function replaceProcessorCustomer(
  connection: Connection,
  accountId: string,
  missingId: string,
  customerId: string,
): Promise<string> {
  return connection.oneFirst(sql.type(recordedRow)`
    update farebox.accounts set processor_customer_id =
      case processor_customer_id when ${missingId} then ${customerId} else processor_customer_id end
    where id = ${accountId} returning processor_customer_id as "customerId"
  `);
}
