/** People who sign in to the console, and the accounts that they own. */
import { Type, type Static } from 'typebox';
import type { KeyOwner } from '../accounts/api-keys.ts';
import { createAccounts, findAccount, type AccountDefaults } from '../accounts/accounts.ts';
import { asMicros } from '../../domain/money.ts';
import {
  countRow,
  idRow,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Fragment,
} from '../database.ts';
import { lockName } from '../named-lock.ts';

export type AccountOwner = Pick<
  KeyOwner,
  'accountId' | 'ledger' | 'consumerId' | 'developerId' | 'developerNumber'
> & {
  readonly isOperator: boolean;
  /** Whether two-factor authentication is on, so that every session of the person was proven by a code. */
  readonly hasSecondFactor: boolean;
};

const emailRow = row(Type.Object({ email: Type.String() }));
const SignInState = Type.Object({
  password: nullable(Type.String()),
  hasSecondFactor: Type.Boolean(),
  secret: nullable(Type.String()),
});
/**
 * The hash of the password, whether a code is asked for, and the encrypted secret of the codes, which may not
 * be confirmed yet.
 */
export type SignInState = Static<typeof SignInState>;

const signInRow = row(SignInState);
const factorRow = row(Type.Object({ hasSecondFactor: Type.Boolean() }));
const ownerRow = row(
  Type.Object({
    accountId: Type.String(),
    ledger: Type.Integer(),
    consumerId: Type.String(),
    developerId: Type.String(),
    developerNumber: Type.Integer(),
    isOperator: Type.Boolean(),
    hasSecondFactor: Type.Boolean(),
  }),
);

/** Null while the person's address is not verified. */
export async function findAccountOfUser(
  connection: Connection,
  userId: string,
): Promise<AccountOwner | null> {
  return connection.maybeOne(sql.type(ownerRow)`
    select a.id as "accountId", a.ledger, a.consumer_id as "consumerId", a.developer_id as "developerId",
      a.developer_number as "developerNumber", a.operator_since is not null as "isOperator",
      coalesce(u.two_factor_enabled, false) as "hasSecondFactor"
    from console.users u join farebox.accounts a on a.id = u.account_id
    where u.id = ${userId} and a.live_account_id is null
  `);
}

/**
 * Gives a person with a verified address the account of that address, unless they have one: the existing one, or a new
 * one without keys. Safe to repeat; of two concurrent calls, one creates it and both get it.
 */
export async function claimAccount(
  database: Database,
  userId: string,
  defaults: AccountDefaults,
): Promise<void> {
  const email = await database.maybeOneFirst(sql.type(emailRow)`
    select email from console.users where id = ${userId} and account_id is null
  `);
  if (email === null) return;
  await database.transaction(async (tx) => {
    await lockName(tx, `farebox.accounts ${email}`);
    if ((await findAccount(tx, { email })) === null) {
      const requested = [{ email, balanceMicros: asMicros(0), hasKeys: false }];
      await createAccounts(tx, requested, defaults);
    }
    await tx.query(sql.typeAlias('nothing')`
      update console.users u set account_id = a.id, email_verified = true
      from farebox.accounts a
      where u.id = ${userId} and u.account_id is null and a.email = lower(u.email)
        and a.live_account_id is null
    `);
  });
}

/** How many passkeys sign this person in. */
export async function countPasskeys(connection: Connection, userId: string): Promise<number> {
  return connection.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from console.passkeys where user_id = ${userId}
  `);
}

export async function findUserEmail(
  connection: Connection,
  userId: string,
): Promise<string | null> {
  return connection.maybeOneFirst(sql.type(emailRow)`
    select email from console.users where id = ${userId}
  `);
}

/**
 * In one transaction: if only half of it were stored, the owner would be asked for a code, and no code would
 * be accepted. Earlier sessions were not proven by a code, so they end. A session that is made meanwhile is
 * ended by the code that makes it, which waits for this. Does nothing and returns false if the code's secret
 * was replaced or removed meanwhile.
 */
export async function turnOnSecondFactor(
  database: Database,
  userId: string,
  secret: string,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    // Locks first the person, then the secret, in the order in which turning it off does.
    await tx.query(sql.typeAlias('nothing')`
      select from console.users where id = ${userId} for no key update
    `);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update console.two_factors set verified = true where user_id = ${userId} and secret = ${secret}
    `);
    if (rowCount === 0) return false;
    await tx.query(sql.typeAlias('nothing')`
      update console.users set two_factor_enabled = true where id = ${userId}
    `);
    // A statement of its own: it sees every session that was made before the lock on the person.
    await endSessions(tx, userId);
    return true;
  });
}

/** In one statement: if only half of it were stored, the old secret would keep the owner from setting up a new one. */
export async function turnOffSecondFactor(connection: Connection, userId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    with turned_off as (update console.users set two_factor_enabled = false where id = ${userId} returning id)
    delete from console.two_factors where user_id in (select id from turned_off)
  `);
}

/** Turns it off for an owner who cannot sign in, and ends all sessions. Returns false if it was not on. */
export async function takeSecondFactorFrom(
  database: Database,
  accountId: string,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const userId = await tx.maybeOneFirst(sql.type(idRow)`
      select id from console.users where account_id = ${accountId} and two_factor_enabled for update
    `);
    if (userId === null) return false;
    await turnOffSecondFactor(tx, userId);
    await endSessions(tx, userId);
    return true;
  });
}

/** Whether the last code of two-factor authentication was wrong. */
export async function hasWrongCodes(connection: Connection, email: string): Promise<boolean> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    select from console.two_factors t join console.users u on u.id = t.user_id
    where u.email = ${email.toLowerCase()} and t.failed_verification_count > 0
  `);
  return rowCount > 0;
}

/** Codes of two-factor authentication are looked at again, even if there were too many wrong ones in a row. */
export async function forgetWrongCodes(connection: Connection, email: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update console.two_factors t set failed_verification_count = 0, locked_until = null
    from console.users u where u.id = t.user_id and u.email = ${email.toLowerCase()}
  `);
}

async function endSessions(connection: Connection, userId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from console.sessions where user_id = ${userId}
  `);
}

/** Null: the address has no password. */
export function findSignInState(
  connection: Connection,
  email: string,
): Promise<SignInState | null> {
  return findState(connection, email, sql.fragment``);
}

/** The same, after waiting for somebody who sets another password, or turns two-factor authentication on or off. */
export function findSettledSignInState(
  connection: Connection,
  email: string,
): Promise<SignInState | null> {
  return findState(connection, email, sql.fragment`for share of c, u`);
}

function findState(
  connection: Connection,
  email: string,
  lock: Fragment,
): Promise<SignInState | null> {
  return connection.maybeOne(sql.type(signInRow)`
    select c.password, coalesce(u.two_factor_enabled, false) as "hasSecondFactor", t.secret
    from console.credentials c join console.users u on u.id = c.user_id
    left join console.two_factors t on t.user_id = u.id
    where u.email = ${email.toLowerCase()} and c.provider_id = 'credential' ${lock}
  `);
}

/** Whether a code is asked for, after waiting for somebody who turns two-factor authentication on or off. */
export async function hasSettledSecondFactor(
  connection: Connection,
  userId: string,
): Promise<boolean> {
  return connection.oneFirst(sql.type(factorRow)`
    select coalesce(two_factor_enabled, false) as "hasSecondFactor" from console.users
    where id = ${userId} for share
  `);
}
