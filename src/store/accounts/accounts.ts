/** Accounts: one sign-up is a consumer, a developer and their keys, created in one transaction. */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { ledgerOf } from '../../domain/ids.ts';
import type { Micros } from '../../domain/money.ts';
import { insertKeys, newKey, newKeyRow } from './api-keys.ts';
import { creditManually } from '../top-ups/credit-top-up.ts';
import { micros, nullable, row, sql, type Connection, type Transaction } from '../database.ts';

export interface NewAccount {
  readonly email: string;
  /** Recorded as a completed top-up with method `manual`; 0 for none. */
  readonly balanceMicros: Micros;
  /** False: the owner creates the keys in the console. */
  readonly hasKeys?: boolean;
}

export interface AccountDefaults {
  readonly keyPrefix: string;
  readonly ledgerCount: number;
  readonly consentCeilingMicros: Micros | undefined;
}

/** UUIDs, and the keys in plain text. This is the only time that Farebox has them; it stores their hashes. */
export interface CreatedAccount {
  readonly accountId: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly consumerKey: string;
  readonly developerKey: string;
  readonly legacyKey: string;
}

const emailRow = row(Type.Object({ email: Type.String() }));

/** Accounts in one transaction, which keeps it and its statement's parameters small. */
export const ACCOUNTS_AT_ONCE = 1_000;

export type CreateAccountsResult =
  | { readonly kind: 'created'; readonly accounts: readonly CreatedAccount[] }
  | { readonly kind: 'email_taken'; readonly email: string };

export interface Creation {
  /** Called before each transaction. Nothing more is created if it throws. */
  readonly before?: () => void;
  /** Called after each. The next accounts are created when its promise resolves, and not at all when it rejects. */
  readonly committed?: (accounts: readonly CreatedAccount[]) => Promise<void>;
}

/**
 * Creates all of the accounts, or none when an email address is already taken. Each ACCOUNTS_AT_ONCE are
 * committed by themselves: a caller that has to keep the keys of those before a failure takes them from
 * `committed`.
 */
export async function createAccounts(
  connection: Connection,
  requested: readonly NewAccount[],
  defaults: AccountDefaults,
  { before, committed }: Creation = {},
): Promise<CreateAccountsResult> {
  const emails = requested.map(({ email }) => email.toLowerCase());
  const taken = await connection.maybeOneFirst(sql.type(emailRow)`
    select email from farebox.accounts where email = any(${sql.array(emails, 'text')}) limit 1
  `);
  if (taken !== null) return { kind: 'email_taken', email: taken };
  const accounts: CreatedAccount[] = [];
  for (let at = 0; at < requested.length; at += ACCOUNTS_AT_ONCE) {
    const chunk = requested.slice(at, at + ACCOUNTS_AT_ONCE);
    before?.();
    const created = await connection.transaction((tx) => insertChunk(tx, chunk, defaults));
    await committed?.(created);
    accounts.push(...created);
  }
  return { kind: 'created', accounts };
}

async function insertChunk(
  tx: Transaction,
  requested: readonly NewAccount[],
  defaults: AccountDefaults,
): Promise<CreatedAccount[]> {
  const drafts = requested.map(({ email, balanceMicros, hasKeys = true }) => {
    const consumerId = randomUUIDv7();
    return {
      email: email.toLowerCase(),
      amountMicros: balanceMicros,
      hasKeys,
      ledger: ledgerOf(consumerId, defaults.ledgerCount),
      accountId: randomUUIDv7(),
      consumerId,
      developerId: randomUUIDv7(),
      consumerKey: newKey(defaults.keyPrefix, 'consumer', 'live'),
      developerKey: newKey(defaults.keyPrefix, 'developer', 'live'),
      legacyKey: newKey(defaults.keyPrefix, 'legacy', 'live'),
    };
  });
  const ceilingMicros = defaults.consentCeilingMicros ?? null;
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.accounts
      (id, email, ledger, consumer_id, developer_id, consent_ceiling_micros)
    select id, email, ledger, consumer_id, developer_id, ${ceilingMicros}::int8
    from ${sql.unnest(
      drafts.map((d) => [d.accountId, d.email, d.ledger, d.consumerId, d.developerId]),
      ['uuid', 'text', 'int2', 'uuid', 'uuid'],
    )} as a (id, email, ledger, consumer_id, developer_id)
  `);
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.consumers (ledger, id)
    select * from ${sql.unnest(
      drafts.map((d) => [d.ledger, d.consumerId]),
      ['int2', 'uuid'],
    )} as c (ledger, id)
  `);
  await insertKeys(
    tx,
    drafts
      .filter((d) => d.hasKeys)
      .flatMap((d) => [
        newKeyRow(d.consumerKey, 'consumer', d.accountId),
        newKeyRow(d.developerKey, 'developer', d.accountId),
        newKeyRow(d.legacyKey, 'legacy', d.accountId),
      ]),
  );
  await creditManually(
    tx,
    drafts.filter((d) => d.amountMicros > 0),
  );
  return drafts;
}

const Account = Type.Object({
  id: Type.String(),
  email: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  developerId: Type.String(),
  consentCeilingMicros: nullable(micros),
  isOperator: Type.Boolean(),
  createdAt: Type.String(),
});

export type Account = Static<typeof Account>;

const accountRow = row(Account);

/** Finds a live account by email, or by the UUID of the account, its consumer or its developer. */
export async function findAccount(
  connection: Connection,
  by: { readonly email: string } | { readonly uuid: string },
): Promise<Account | null> {
  const which =
    'email' in by
      ? sql.fragment`email = ${by.email.toLowerCase()}`
      : sql.fragment`${by.uuid}::uuid in (id, consumer_id, developer_id)`;
  return connection.maybeOne(sql.type(accountRow)`
    select id, email, ledger, consumer_id as "consumerId", developer_id as "developerId",
      consent_ceiling_micros as "consentCeilingMicros", operator_since is not null as "isOperator",
      created_at as "createdAt"
    from farebox.accounts where live_account_id is null and ${which}
  `);
}

/** Where the owner of an account gets mail: of a test account, at the address of the live one. */
export async function findOwnerEmail(
  connection: Connection,
  accountId: string,
): Promise<string | null> {
  return connection.maybeOneFirst(sql.type(emailRow)`
    select coalesce(l.email, a.email) as email
    from farebox.accounts a left join farebox.accounts l on l.id = a.live_account_id
    where a.id = ${accountId}
  `);
}

/**
 * Other transactions that lock the account wait until this one ends, so what it counts stays true. No charge
 * locks it.
 */
export async function lockAccount(tx: Transaction, id: string): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.accounts where id = ${id} for no key update
  `);
}

/** The same, by its consumer. Before the consumer's own row: see `lockConsumer`. */
export async function lockAccountOf(
  tx: Transaction,
  { consumerId }: { readonly consumerId: string },
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.accounts where consumer_id = ${consumerId} for no key update
  `);
}

export async function getAccount(connection: Connection, id: string): Promise<Account> {
  const account = await findAccount(connection, { uuid: id });
  if (!account) throw new Error(`there is no account ${id}`);
  return account;
}
