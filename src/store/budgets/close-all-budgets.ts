/**
 * Closes all budgets of an account, and so ends all its spend keys: somebody with a leaked consumer key may
 * have made tens of thousands.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from 'typebox';
import { IS_ACTIVE } from '../accounts/api-keys.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Database, type Transaction } from '../database.ts';

/** In one transaction, which holds up the consumer's charges, and all entries of the audit log, for some milliseconds. */
export const AT_ONCE = 100;
/** In between, others charge and write to the audit log. Every API process reads what changed in the last half minute. */
export const REST_MS = 100;
/** Every process heeds a revocation within a second, and has another second to finish what it began before. */
const REVOKED_EVERYWHERE_MS = 2_000;

const numberRow = row(Type.Object({ number: Type.Integer() }));

/**
 * Returns how many it closed by themselves, without those below them. Budgets of single developers stay
 * (developer-budgets.ts), because a closed one refuses its developer. It ends what was made in them:
 * the spend keys that somebody can hold, and the budgets below.
 */
export async function closeAllBudgets(database: Database, consumer: ConsumerRef): Promise<number> {
  const revoked = await inSteps(database, consumer, revokeSome);
  // Until every process heeds that, such a key can make budgets below its own.
  if (revoked > 0) await delay(REVOKED_EVERYWHERE_MS);
  return inSteps(database, consumer, closeSome);
}

/** A step ends some that have a greater number than `after`, in the order of their numbers, which it returns. */
type Step = (tx: Transaction, consumer: ConsumerRef, after: number) => Promise<readonly number[]>;

async function inSteps(database: Database, consumer: ConsumerRef, step: Step): Promise<number> {
  let count = 0;
  for (let after = 0; ;) {
    const ended = await database.transaction(async (tx) => {
      await lockConsumer(tx, consumer);
      return step(tx, consumer, after);
    });
    if (ended.length === 0) return count;
    count += ended.length;
    // Anything that is created meanwhile gets a greater number.
    after = Math.max(...ended);
    await delay(REST_MS);
  }
}

/** Spend keys in budgets of single developers. */
const revokeSome: Step = (tx, consumer, after) =>
  tx.anyFirst(sql.type(numberRow)`
    update farebox.spend_keys set revoked_at = now(), changed_at = now()
    where ${ofConsumer(consumer)} and number in (
      select number from farebox.spend_keys
      where ${ofConsumer(consumer)} and number > ${after} and developer is null and ${IS_ACTIVE}
        and budget in ${ofDevelopers(consumer)}
      order by number limit ${AT_ONCE}
    )
    returning number
  `);

/** Budgets at the top, or below those of single developers. */
const closeSome: Step = (tx, consumer, after) =>
  tx.anyFirst(sql.type(numberRow)`
    with nodes as materialized (
      select number from farebox.budget_details
      where ${ofConsumer(consumer)} and number > ${after} and closed_at is null
        and cardinality(path) = case when path[1] in ${ofDevelopers(consumer)} then 2 else 1 end
      order by number limit ${AT_ONCE}
    ), counters as (
      update farebox.budgets set is_closed = true
      where ${ofConsumer(consumer)} and number in (select number from nodes)
    )
    update farebox.budget_details set closed_at = now(), changed_at = now()
    where ${ofConsumer(consumer)} and number in (select number from nodes)
    returning number
  `);

function ofConsumer({ ledger, consumerId }: ConsumerRef) {
  return sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
}

/** The numbers of the budgets of single developers. */
function ofDevelopers(consumer: ConsumerRef) {
  return sql.fragment`(
    select budget from farebox.spend_keys where ${ofConsumer(consumer)} and developer is not null
  )`;
}
