/**
 * Closes all budgets of an account, and so ends all its spend keys: somebody with a leaked consumer key may
 * have made tens of thousands.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from 'typebox';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Database } from '../database.ts';

/** In one transaction, which holds up the consumer's charges, and all entries of the audit log, for some milliseconds. */
const AT_ONCE = 100;
/** In between, others charge and write to the audit log. Every API process reads what changed in the last half minute. */
const REST_MS = 100;

const numberRow = row(Type.Object({ number: Type.Integer() }));

/**
 * Returns how many had nothing above them, and were open. Budgets of single developers stay (developer-budgets.ts):
 * nobody holds their keys, and a closed one would refuse its developer permanently.
 */
export async function closeAllBudgets(database: Database, consumer: ConsumerRef): Promise<number> {
  let count = 0;
  for (let after = 0; ;) {
    const closed = await closeSome(database, consumer, after);
    if (closed.length === 0) return count;
    count += closed.length;
    // A budget that is made meanwhile has a greater number.
    after = Math.max(...closed);
    await delay(REST_MS);
  }
}

async function closeSome(
  database: Database,
  consumer: ConsumerRef,
  after: number,
): Promise<readonly number[]> {
  const { ledger, consumerId } = consumer;
  const ofConsumer = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  return database.transaction(async (tx) => {
    await lockConsumer(tx, consumer);
    return tx.anyFirst(sql.type(numberRow)`
      with nodes as materialized (
        select number from farebox.budget_details
        where ${ofConsumer} and number > ${after} and cardinality(path) = 1 and closed_at is null
          and number not in (
            select budget from farebox.spend_keys where ${ofConsumer} and developer is not null
          )
        order by number limit ${AT_ONCE}
      ), counters as (
        update farebox.budgets set is_closed = true
        where ${ofConsumer} and number in (select number from nodes)
      )
      update farebox.budget_details set closed_at = now(), changed_at = now()
      where ${ofConsumer} and number in (select number from nodes)
      returning number
    `);
  });
}
