/**
 * Proves the books from the rows alone. Each check is one query that returns offenders, so an empty result is the
 * proof. They run beside traffic.
 */
import { Type } from 'typebox';
import { row, sql, type Connection, type Database } from '../database.ts';
import { DELIVERY_CHECKS } from './delivery-checks.ts';
import { HOLD_CHECKS } from './hold-checks.ts';
import { ROLLUP_CHECKS } from './rollup-checks.ts';

export interface Finding {
  /** The invariant that does not hold. */
  readonly check: string;
  /** What it does not hold for, by kind and UUID. */
  readonly subject: string;
  readonly detail: string;
}

/** Per check: enough to see what is wrong. */
const OFFENDERS_MAX = 20;

const offenderRow = row(Type.Object({ subject: Type.String(), detail: Type.String() }));

/** Every check, by the sentence that it proves. */
const CHECKS = {
  'no balance is negative': sql.fragment`
    select 'consumer ' || id as subject, 'balance ' || credited_micros - spent_micros - held_micros as detail
    from farebox.consumers where credited_micros - spent_micros - held_micros < 0`,

  'credited is the sum of movements': sql.fragment`
    select 'consumer ' || c.id, 'credited ' || c.credited_micros || ', movements ' || coalesce(m.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.movements group by 1, 2
    ) m on m.ledger = c.ledger and m.consumer_id = c.id
    where c.credited_micros <> coalesce(m.micros, 0)`,

  'spent is the sum of charges': sql.fragment`
    select 'consumer ' || c.id, 'spent ' || c.spent_micros || ', charges ' || coalesce(h.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.charges group by 1, 2
    ) h on h.ledger = c.ledger and h.consumer_id = c.id
    where c.spent_micros <> coalesce(h.micros, 0)`,

  'charges follow each other without gap or overlap': sql.fragment`
    select 'charge ' || id, 'begins at ' || spent_micros - amount_micros || ', the one before ends at ' || before
    from (
      select id, spent_micros, amount_micros, coalesce(lag(spent_micros) over (
        partition by ledger, consumer_id order by spent_micros), 0) as before
      from farebox.charges
    ) c where spent_micros - amount_micros <> before`,

  'refunds of a charge follow each other and end within it': sql.fragment`
    select 'charge ' || r.charge_id, 'took ' || coalesce(c.amount_micros::text, 'nothing') || ', a refund of '
      || r.amount_micros || ' after ' || r.before || ' ends at ' || r.refunded_micros
    from (
      select *, coalesce(lag(refunded_micros) over (
        partition by ledger, consumer_id, charge_id order by refunded_micros), 0) as before
      from farebox.charge_refunds
    ) r left join farebox.charges c
      on c.ledger = r.ledger and c.consumer_id = r.consumer_id and c.id = r.charge_id
    where (r.refunded_micros <= c.amount_micros and r.refunded_micros - r.amount_micros = r.before
      and (r.charge_micros, r.spent_micros, r.developer, r.tool)
        = (c.amount_micros, c.spent_micros - r.before, c.developer, c.tool)) is not true`,

  'what went back of charges is credited': sql.fragment`
    select 'consumer ' || c.id, 'refunded ' || c.refunded_micros || ', refunds '
      || coalesce(r.micros, 0) || ', credited for them ' || coalesce(m.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.charge_refunds group by 1, 2
    ) r on r.ledger = c.ledger and r.consumer_id = c.id
    left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.movements
      where kind = 'charge_refund' group by 1, 2
    ) m on m.ledger = c.ledger and m.consumer_id = c.id
    where c.refunded_micros <> coalesce(r.micros, 0) or c.refunded_micros <> coalesce(m.micros, 0)`,

  'lots follow each other and end at credited': sql.fragment`
    select 'consumer ' || c.id, 'lots of ' || coalesce(l.micros, 0) || ' end at ' || coalesce(l.ends, 0)
      || ', ' || coalesce(l.gaps, 0) || ' gaps, credited ' || c.credited_micros
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(to_micros - from_micros) as micros, max(to_micros) as ends,
        count(*) filter (where from_micros <> before) as gaps
      from (
        select *, coalesce(lag(to_micros) over (
          partition by ledger, consumer_id order by from_micros, to_micros), 0) as before
        from farebox.lots
      ) p group by 1, 2
    ) l on l.ledger = c.ledger and l.consumer_id = c.id
    where c.credited_micros <> coalesce(l.micros, 0) or c.credited_micros <> coalesce(l.ends, 0)
      or coalesce(l.gaps, 0) <> 0`,

  'a charge has a consumer': sql.fragment`
    select 'consumer ' || h.consumer_id, count(*) || ' charges' from farebox.charges h
    where not exists (
      select from farebox.consumers c where c.ledger = h.ledger and c.id = h.consumer_id
    ) group by h.consumer_id`,

  'an idempotency key made one charge': sql.fragment`
    select 'consumer ' || min(consumer_id::text), count(*) || ' charges with one key'
    from farebox.charges
    where idempotency_hash in (
      select idempotency_hash from farebox.charges where idempotency_hash is not null
      group by 1 having count(*) > 1
    )
    group by idempotency_hash, request_fingerprint >> 40 having count(*) > 1`,

  'a completed top-up is credited once, in full': sql.fragment`
    select 'top-up ' || t.id, t.status || ' of ' || t.amount_micros || ', credited '
      || coalesce(m.micros, 0) || ' by ' || coalesce(m.movements, 0) || ' movements'
    from farebox.top_ups t left join (
      select ledger, top_up_id, sum(amount_micros) as micros, count(*) as movements
      from farebox.movements where kind = 'top_up' group by 1, 2
    ) m on m.ledger = t.ledger and m.top_up_id = t.id
    where case when t.status in ('pending', 'expired', 'failed') then m.movements is not null
      else m.movements is distinct from 1 or m.micros <> t.amount_micros end`,

  'a credit names its top-up and its consumer': sql.fragment`
    select 'movement ' || m.id, 'top-up ' || m.top_up_id from farebox.movements m
    where m.top_up_id is not null and not exists (
      select from farebox.top_ups t
      where t.id = m.top_up_id and t.ledger = m.ledger and t.consumer_id = m.consumer_id
    )`,

  'no month took more from a saved card than its owner allowed': sql.fragment`
    select 'consumer ' || consumer_id, 'took ' || taken || ' of ' || ceiling || ', automatically '
      || coalesce(taken_automatically, 0) || ' of ' || coalesce(automatic_ceiling, 0)
    from (
      select consumer_id, sum(amount_micros) as taken, max(consent_ceiling_micros) as ceiling,
        sum(amount_micros) filter (where automatic) as taken_automatically,
        max(automatic_ceiling_micros) as automatic_ceiling
      from farebox.top_ups
      where consent_ceiling_micros is not null and status not in ('failed', 'expired')
      group by consumer_id, date_trunc('month', created_at, 'UTC')
    ) m where taken > ceiling or taken_automatically > automatic_ceiling`,

  'a consumer has at most one automatic top-up under way': sql.fragment`
    select 'consumer ' || consumer_id, count(*) || ' are pending' from farebox.top_ups
    where automatic and status = 'pending' group by consumer_id having count(*) > 1`,

  'held is what open disputes hold, but for what holds reserve': sql.fragment`
    select 'consumer ' || c.id, 'held ' || c.held_micros || ', reserved ' || c.reserved_micros
      || ', disputes ' || coalesce(r.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(held_micros) as micros from farebox.reversals
      where status = 'open' group by 1, 2
    ) r on r.ledger = c.ledger and r.consumer_id = c.id
    where c.held_micros - c.reserved_micros <> coalesce(r.micros, 0)`,

  'a refund or dispute took what its movements say': sql.fragment`
    select 'reversal ' || r.id, r.status || ', took ' || r.taken_micros || ', movements '
      || coalesce(m.micros, 0)
    from farebox.reversals r left join (
      select reversal_id, -sum(amount_micros) as micros from farebox.movements
      where reversal_id is not null group by 1
    ) m on m.reversal_id = r.id
    where r.taken_micros <> coalesce(m.micros, 0)`,

  'nobody has a debt and a balance': sql.fragment`
    select 'consumer ' || c.id, 'debt ' || d.micros || ', balance '
      || c.credited_micros - c.spent_micros - c.held_micros
    from farebox.consumers c join (
      select ledger, consumer_id, sum(debt_micros) as micros from farebox.reversals
      where debt_micros > 0 group by 1, 2
    ) d on d.ledger = c.ledger and d.consumer_id = c.id
    where c.credited_micros - c.spent_micros - c.held_micros > 0`,

  'a top-up has the status that its refunds and disputes give': sql.fragment`
    select 'top-up ' || t.id, t.status || ' of ' || t.amount_micros || ', refunded '
      || coalesce(r.refunded, 0) || ', disputes: ' || coalesce(r.open, 0) || ' open, '
      || coalesce(r.lost, 0) || ' lost'
    from farebox.top_ups t left join (
      select top_up_id, count(*) filter (where status = 'open') as open,
        count(*) filter (where status = 'lost') as lost,
        sum(amount_micros) filter (where status in ('requested', 'made')) as refunded
      from farebox.reversals group by 1
    ) r on r.top_up_id = t.id
    where case when r.open > 0 then t.status <> 'disputed'
      when r.lost > 0 then t.status <> 'charged_back'
      when r.refunded >= t.amount_micros then t.status <> 'refunded'
      when r.refunded > 0 then t.status <> 'partially_refunded'
      else t.status not in ('pending', 'completed', 'expired', 'failed') end`,

  ...HOLD_CHECKS,
  ...ROLLUP_CHECKS,
  ...DELIVERY_CHECKS,
} as const;

export const CHECK_NAMES = Object.keys(CHECKS) as (keyof typeof CHECKS)[];

/**
 * Runs every check; empty when the books are right. Takes as long as there are charges, so `report` hears of each
 * check that begins. Each check has a snapshot of its own: one for all of them would keep PostgreSQL from pruning the
 * rows of busy consumers meanwhile.
 */
export async function auditLedger(
  database: Database,
  report: (check: string) => void = () => {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const check of CHECK_NAMES) {
    report(check);
    const offenders = await database.transaction(async (tx) => {
      await tx.query(sql.typeAlias('nothing')`set local statement_timeout = 0`);
      // Every check aggregates all rows of something; beyond this it spills to disk and takes far longer.
      await tx.query(sql.typeAlias('nothing')`set local work_mem = '256MB'`);
      return tx.any(sql.type(offenderRow)`
        select subject, detail from (${CHECKS[check]}) as offenders (subject, detail)
        limit ${OFFENDERS_MAX}
      `);
    });
    findings.push(...offenders.map((found) => ({ check, ...found })));
  }
  return findings;
}

const claimRow = row(Type.Object({ id: Type.String(), claim: Type.String() }));

/** What refunds and disputes that the processor knows of claim, such as `lost 5000000`, by its ids. */
export async function listProcessorClaims(
  connection: Connection,
): Promise<ReadonlyMap<string, string>> {
  const rows = await connection.any(sql.type(claimRow)`
    select processor_id as id, status || ' ' || amount_micros as claim from farebox.reversals
    where processor_id is not null and status in ('made', 'open', 'lost')
  `);
  return new Map(rows.map(({ id, claim }) => [id, claim]));
}

const creditedRow = row(Type.Object({ id: Type.String(), amountMicros: Type.Integer() }));

/** Of these top-ups those that are credited, with what they were credited. */
export async function findCredited(
  connection: Connection,
  topUpIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await connection.any(sql.type(creditedRow)`
    select top_up_id as id, sum(amount_micros)::int8 as "amountMicros" from farebox.movements
    where kind = 'top_up' and top_up_id = any(${sql.array(topUpIds, 'uuid')}) group by top_up_id
  `);
  return new Map(rows.map(({ id, amountMicros }) => [id, amountMicros]));
}

/** Credited top-ups that the processor must know of: all but those that were booked by hand. */
export async function listCreditedThroughProcessor(
  connection: Connection,
): Promise<readonly { id: string; amountMicros: number }[]> {
  return connection.any(sql.type(creditedRow)`
    select t.id, m.amount_micros as "amountMicros" from farebox.movements m
    join farebox.top_ups t on t.id = m.top_up_id and t.ledger = m.ledger
    where m.kind = 'top_up' and t.method <> 'manual'
  `);
}
