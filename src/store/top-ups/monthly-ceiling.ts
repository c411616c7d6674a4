/**
 * How much may be charged to the saved card in a UTC month: the ceiling that the owner consented to, a lower one for
 * automatic top-ups, and what either leaves of the month. The caller locks the account's row until its
 * transaction ends, so that sums are exact under concurrency.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { WaitReason } from '../../domain/top-up.ts';
import { micros, nullable, row, sql, type Connection, type Transaction } from '../database.ts';
import { hastenNotices } from '../outbox.ts';

const Taken = Type.Object({
  /** The sum of the direct top-ups that the month has taken or may still take. */
  takenMicros: micros,
  /** The automatic ones among them. */
  takenAutomaticallyMicros: micros,
});

export interface Consent extends Static<typeof Taken> {
  /** Null if the owner has not consented. */
  readonly ceilingMicros: Micros | null;
}

const ceilingRow = row(Type.Object({ ceilingMicros: nullable(micros) }));
const takenRow = row(Taken);
const agreedRow = row(
  Type.Object({
    ceilingMicros: nullable(micros),
    agreedAt: nullable(Type.String()),
  }),
);

const endedAt = sql.fragment`coalesce(completed_at, 'infinity')`;

/**
 * Whether a row takes a part of this UTC month's ceiling: a direct top-up that was credited in this month, or is
 * pending. One that is requested at the end of a month may be paid in the next one, so until it has ended it counts in
 * both.
 */
export const countsThisMonth = sql.fragment`
  method = 'direct' and status not in ('failed', 'expired')
    and ${endedAt} >= date_trunc('month', now(), 'UTC')
`;

export async function lockConsent(tx: Transaction, consumerId: string): Promise<Consent> {
  const ceilingMicros = await tx.oneFirst(sql.type(ceilingRow)`
    select consent_ceiling_micros as "ceilingMicros" from farebox.accounts
    where consumer_id = ${consumerId} for no key update
  `);
  // A separate statement, whose snapshot has everything committed while the lock was awaited.
  return { ceilingMicros, ...(await sumTaken(tx, consumerId)) };
}

/**
 * What may still be charged to the saved card this month: never below zero, even if the owner has lowered the
 * ceiling.
 */
export function leftOfMonth({
  ceilingMicros,
  takenMicros,
}: Pick<Consent, 'ceilingMicros' | 'takenMicros'>): Micros {
  return asMicros(Math.max((ceilingMicros ?? 0) - takenMicros, 0));
}

/** Why an automatic top-up has to wait: the reason that its owner reads. Null if it may start. */
export function obstacleTo(
  { amountMicros, ceilingMicros }: Readonly<Record<'amountMicros' | 'ceilingMicros', Micros>>,
  consent: Consent,
): WaitReason | null {
  if (consent.ceilingMicros === null) return 'consent_required';
  if (amountMicros > leftOfMonth(consent)) return 'consent_ceiling_reached';
  const leftMicros = leftOfMonth({ ceilingMicros, takenMicros: consent.takenAutomaticallyMicros });
  return amountMicros > leftMicros ? 'ceiling_reached' : null;
}

export async function hasConsent(connection: Connection, consumerId: string): Promise<boolean> {
  const ceilingMicros = await connection.oneFirst(sql.type(ceilingRow)`
    select consent_ceiling_micros as "ceilingMicros" from farebox.accounts
    where consumer_id = ${consumerId}
  `);
  return ceilingMicros !== null;
}

/** As it is now. To decide whether a new top-up fits, use `lockConsent`. */
export async function readConsent(
  connection: Connection,
  consumerId: string,
): Promise<Consent & { readonly agreedAt: string | null }> {
  const { ceilingMicros, agreedAt } = await connection.one(sql.type(agreedRow)`
    select a.consent_ceiling_micros as "ceilingMicros", (
      select c.created_at from farebox.consents c where c.ledger = a.ledger and c.account_id = a.id order by c.id desc limit 1
    ) as "agreedAt"
    from farebox.accounts a where a.consumer_id = ${consumerId}
  `);
  return { ceilingMicros, agreedAt, ...(await sumTaken(connection, consumerId)) };
}

async function sumTaken(connection: Connection, consumerId: string): Promise<Static<typeof Taken>> {
  // In the order of `top_ups_taken`, so that the planner prefers that index even without statistics.
  return connection.one(sql.type(takenRow)`
    select coalesce(sum(amount_micros), 0) as "takenMicros",
      coalesce(sum(amount_micros) filter (where automatic), 0) as "takenAutomaticallyMicros"
    from (
      select amount_micros, automatic from farebox.top_ups
      where consumer_id = ${consumerId} and ${countsThisMonth}
      order by ${endedAt}
    ) t
  `);
}

export interface ConsentChange {
  /** Null withdraws the consent. */
  readonly ceilingMicros: Micros | null;
  readonly givenBy: 'owner' | 'operator';
  /** What an owner was shown. */
  readonly terms?: { readonly version: string; readonly text: string };
}

/**
 * Changed by the owner or an operator, never with a consumer key, and recorded. A waiting automatic top-up is checked
 * again.
 */
export async function changeConsent(
  connection: Connection,
  consumerId: string,
  { ceilingMicros, givenBy, terms }: ConsentChange,
): Promise<void> {
  await connection.transaction(async (tx) => {
    // The notice before the account, as when it is taken up, which then reads the new ceiling.
    await hastenNotices(tx, 'auto_top_up', consumerId);
    await tx.query(sql.typeAlias('nothing')`
      with changed as (
        update farebox.accounts set consent_ceiling_micros = ${ceilingMicros}
        where consumer_id = ${consumerId} returning id, ledger
      )
      insert into farebox.consents (ledger, id, account_id, ceiling_micros, given_by, terms_version, terms)
      select ledger, ${randomUUIDv7()}::uuid, id, ${ceilingMicros}::int8, ${givenBy}, ${terms?.version ?? null},
        ${terms?.text ?? null}
      from changed
    `);
  });
}
