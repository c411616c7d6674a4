/**
 * Budgets of what single developers charge to keys of the account, when it has a daily limit for each
 * developer: one budget for each developer, made by its first charge, with a spend key that nobody holds. Its
 * owner may change it like any other: give one developer more, or close it.
 */
import { randomBytes } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { wireId } from '../../domain/ids.ts';
import type { Micros } from '../../domain/money.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { insertBudget, NO_LIMITS, setWindow } from './change-budgets.ts';
import { insertKey, nextKeyNumber } from './spend-keys.ts';

const DeveloperBudget = Type.Object({
  /** The number of its spend key. */
  number: Type.Integer(),
  path: Type.Array(Type.Integer()),
  /** A UUID. */
  budgetId: Type.String(),
});

const budgetRow = row(DeveloperBudget);
const lastRow = row(Type.Object({ last: Type.Integer() }));
const dayRow = row(Type.Object({ dayMicros: nullable(micros) }));

export type DeveloperBudget = Static<typeof DeveloperBudget>;

export type FoundDeveloperBudget =
  | { readonly kind: 'found'; readonly budget: DeveloperBudget }
  /** The account no longer has a daily limit for each developer. */
  | { readonly kind: 'no_day_limit' }
  /** Keys of the account can make no more budgets or spend keys: they leave the last tenth to its owner. */
  | { readonly kind: 'full' };

/**
 * The most windows in one statement. That takes a second on a busy machine, and a statement may take ten. An
 * account may have 100,000.
 */
const WINDOWS_AT_ONCE = 10_000;

/** The account that is charged, and the developer that charges; ids are UUIDs. */
export interface DeveloperOfAccount extends ConsumerRef {
  readonly accountId: string;
  readonly developerId: string;
  readonly developerNumber: number;
  /** The key of the account that is charged. Charges with it, as requests with it, leave the last numbers to the owner. */
  readonly keyId: string;
}

/** Creates it if there is none. */
export async function findDeveloperBudget(
  database: Database,
  asked: DeveloperOfAccount,
): Promise<FoundDeveloperBudget> {
  const budget = await find(database, asked);
  return budget ? { kind: 'found', budget } : make(database, asked);
}

/** The developer's budget, if its owner has closed it. */
export async function findClosedBudget(
  connection: Connection,
  developer: ConsumerRef & Pick<DeveloperOfAccount, 'developerNumber'>,
): Promise<DeveloperBudget | null> {
  return find(connection, developer, sql.fragment`d.closed_at is not null`);
}

/**
 * Sets the limit of every developer that charged the account's keys. Each continues to count its day. The
 * caller has locked the consumer.
 */
export async function setDeveloperWindows(
  tx: Transaction,
  consumer: ConsumerRef,
  limitMicros: Micros,
): Promise<void> {
  const { ledger, consumerId } = consumer;
  const ofDevelopers = sql.fragment`
    from farebox.spend_keys
    where ledger = ${ledger} and consumer_id = ${consumerId} and developer is not null
  `;
  const last = await tx.oneFirst(sql.type(lastRow)`
    select coalesce(max(budget), 0) as last ${ofDevelopers}
  `);
  for (let after = 0; after < last; after += WINDOWS_AT_ONCE) {
    const numbers = sql.fragment`
      (select budget ${ofDevelopers} and budget > ${after} and budget <= ${after + WINDOWS_AT_ONCE})
    `;
    await setWindow(tx, consumer, numbers, { unit: 'day', limitMicros });
  }
}

async function find(
  connection: Connection,
  {
    ledger,
    consumerId,
    developerNumber,
  }: ConsumerRef & Pick<DeveloperOfAccount, 'developerNumber'>,
  condition = sql.fragment`true`,
): Promise<DeveloperBudget | null> {
  return connection.maybeOne(sql.type(budgetRow)`
    select k.number, k.path, d.id as "budgetId"
    from farebox.spend_keys k
    join farebox.budget_details d on d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = k.budget
    where k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.developer = ${developerNumber}
      and ${condition}
  `);
}

async function make(database: Database, asked: DeveloperOfAccount): Promise<FoundDeveloperBudget> {
  const { ledger, consumerId, accountId, developerId, developerNumber, keyId } = asked;
  const maker = { ledger, consumerId, root: null, by: { kind: 'key', id: keyId } } as const;
  return database.transaction(async (tx) => {
    await lockConsumer(tx, asked);
    const budget = await find(tx, asked);
    if (budget) return { kind: 'found', budget };
    const dayMicros = await tx.oneFirst(sql.type(dayRow)`
      select developer_day_micros as "dayMicros" from farebox.accounts where consumer_id = ${consumerId}
    `);
    if (dayMicros === null) return { kind: 'no_day_limit' };
    // Before the budget, which would be of no use without a key.
    if ((await nextKeyNumber(tx, maker)) === null) return { kind: 'full' };
    const inserted = await insertBudget(tx, maker, null, {
      ...NO_LIMITS,
      name: `Account keys: ${wireId('developer', developerId)}`,
      window: { unit: 'day', limitMicros: dayMicros },
      developers: [developerId],
    });
    if (inserted.kind === 'too_many') return { kind: 'full' };
    if (inserted.kind !== 'made') throw new Error(`a budget at the top was ${inserted.kind}`);
    const key = {
      // No key has this hash.
      hash: randomBytes(32).toString('hex'),
      lastFour: '',
      accountId,
      name: 'Account keys',
      expiresAt: null,
    };
    await insertKey(tx, maker, inserted.budget.number, key, undefined, developerNumber);
    const made = await find(tx, asked);
    if (!made) throw new Error('the budget of a developer was made and not found');
    return { kind: 'found', budget: made };
  });
}
