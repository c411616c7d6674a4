/** The waiting work in the database and its age, for the metrics. */
import { Type, type Static } from 'typebox';
import { DAY_MS, HOUR_MS } from '../../domain/durations.ts';
import { TOP_UP_STATUSES, type TopUpStatus } from '../../domain/top-up.ts';
import { nullable, row, sql, type Connection, type Fragment } from '../database.ts';
import { idFloorOf } from '../database-ids.ts';
import { OPEN_DIFFERENCES } from '../top-ups/settled-differences.ts';
import { STUCK_SINCE } from './stuck.ts';

const Waiting = Type.Object({
  what: Type.String(),
  count: Type.Integer(),
  /** Age of the oldest item; 0 if nothing waits. */
  ageSeconds: Type.Number(),
});
export type Waiting = Static<typeof Waiting>;

const ExaminationAge = Type.Object({
  part: Type.String(),
  /** How many faults it found. */
  findings: Type.Integer(),
  ageSeconds: Type.Number(),
});
type ExaminationAge = Static<typeof ExaminationAge>;

/** Requested in the last hour, in the day before that, or earlier. */
const TOP_UP_AGES = ['hour', 'day', 'older'] as const;
/** The states in which older top-ups are counted too: the others are final. */
const UNSETTLED: readonly TopUpStatus[] = ['pending', 'disputed'];

const TopUpCount = Type.Object({
  state: Type.Enum(TOP_UP_STATUSES),
  age: Type.Enum(TOP_UP_AGES),
  count: Type.Integer(),
});
type TopUpCount = Static<typeof TopUpCount>;

export interface Backlog {
  readonly waiting: readonly Waiting[];
  /** Top-ups, refunds and notices that are late. */
  readonly stuck: Waiting;
  /** Top-ups through Stripe, by state and age, zero included. */
  readonly topUps: readonly TopUpCount[];
  /** Time since the last complete comparison with Stripe; null before the first one. */
  readonly reconciliationAgeSeconds: number | null;
  /** The last run of each part of `farebox doctor`. */
  readonly examinations: readonly ExaminationAge[];
}

const waitingRow = row(Waiting);
const examinationRow = row(ExaminationAge);
const topUpRow = row(TopUpCount);
const ageRow = row(Type.Object({ ageSeconds: nullable(Type.Number()) }));

/** A webhook writes a notice, which waits for its workflow like any other. */
export const OF_WEBHOOKS = sql.fragment`(topic in ('payment_reported', 'reversal_reported'))`;

const since = (ms: number) => idFloorOf(sql.fragment`now() - make_interval(secs => ${ms / 1_000})`);

export const ARE_PENDING = sql.fragment`status = 'pending'`;

/**
 * By their reversals, which are few: a bank may dispute a payment of any age. It has been waiting since the
 * first that is open.
 */
export const DISPUTED = sql.fragment`
  (
    select top_up_id, min(kind) as kind, sum(amount_micros)::int8 as amount_micros, min(created_at) as opened_at
    from farebox.reversals where status = 'open' group by top_up_id
  ) r join farebox.top_ups t on t.id = r.top_up_id and t.status = 'disputed'
`;

/**
 * Deliveries `d` that are due, and not those that wait after a failure, or for an endpoint that fails: one
 * that hangs takes hours to refuse a thousand.
 */
export const ARE_DUE = sql.fragment`
  d.status = 'waiting' and d.next_attempt_at <= now() and not exists (
    select from farebox.webhook_endpoints e where e.id = d.endpoint_id and e.failing_since is not null
  )
`;

export const ARE_FAILING = sql.fragment`status = 'active' and failing_since is not null`;

const ageOf = (time: Fragment) =>
  sql.fragment`greatest(0, coalesce(extract(epoch from now() - min(${time})), 0))::float8`;

const ageOfOne = (time: Fragment) =>
  sql.fragment`greatest(0, extract(epoch from now() - ${time}))::float8`;

/** A bank debit takes days, which is no reason to look at it. */
const UNPAID_SINCE = sql.fragment`case when under_way_at is null then created_at end`;

/** At a ceiling, an automatic top-up is postponed for an hour at a time, until the month is over. */
const IS_POSTPONED = sql.fragment`(topic = 'auto_top_up' and next_attempt_at > now())`;
const WAITS_SINCE = sql.fragment`case topic when 'auto_top_up' then next_attempt_at else created_at end`;

export async function readBacklog(connection: Connection): Promise<Backlog> {
  const createdAt = sql.fragment`created_at`;
  const waiting = await connection.any(sql.type(waitingRow)`
    select 'top_ups_pending' as what, count(*) as count, ${ageOf(UNPAID_SINCE)} as "ageSeconds"
    from farebox.top_ups
    where ${ARE_PENDING}
    union all
    select 'top_ups_disputed', count(*), ${ageOf(sql.fragment`r.opened_at`)} from ${DISPUTED}
    union all
    select 'refunds', count(*), ${ageOf(createdAt)} from farebox.reversals where status = 'requested'
    union all
    select 'outbox', count(*), ${ageOf(WAITS_SINCE)} from farebox.outbox
    where not ${OF_WEBHOOKS} and not ${IS_POSTPONED}
    union all
    select 'webhooks', count(*), ${ageOf(createdAt)} from farebox.outbox where ${OF_WEBHOOKS}
    union all
    select 'events', count(*), ${ageOf(sql.fragment`next_attempt_at`)} from farebox.webhook_deliveries d
    where ${ARE_DUE}
    union all
    -- Of flushes with holds whose time is over; a worker releases them within seconds.
    select 'expired_holds', count(*), ${ageOf(sql.fragment`due_at`)} from farebox.hold_expiries where due_at <= now()
    union all
    select 'failing_endpoints', count(*), ${ageOf(sql.fragment`failing_since`)}
    from farebox.webhook_endpoints where ${ARE_FAILING}
    union all
    select 'differences', count(*), ${ageOf(sql.fragment`since`)} from ${OPEN_DIFFERENCES}
    union all
    select 'rollup', count(*), ${ageOf(sql.fragment`minute`)} from farebox.earnings_tail
  `);
  const stuck = await connection.one(sql.type(waitingRow)`
    select 'stuck' as what, count(*) as count, ${ageOf(sql.fragment`since`)} as "ageSeconds" from (${STUCK_SINCE}) s
  `);
  const { ageSeconds } = await connection.one(sql.type(ageRow)`
    select extract(epoch from now() - (select walked_until from farebox.reconciliation))::float8
      as "ageSeconds"
  `);
  const examinations = await connection.any(sql.type(examinationRow)`
    select part, jsonb_array_length(findings) as findings, ${ageOfOne(sql.fragment`ended_at`)} as "ageSeconds"
    from farebox.examinations
  `);
  return {
    waiting,
    stuck,
    topUps: await countTopUps(connection),
    reconciliationAgeSeconds: ageSeconds,
    examinations,
  };
}

async function countTopUps(connection: Connection): Promise<TopUpCount[]> {
  // Ids begin with their time: older rows are not read, except those that wait.
  const counted = await connection.any(sql.type(topUpRow)`
    select status as state, case when id > ${since(HOUR_MS)} then 'hour' else 'day' end as age, count(*)
    from farebox.top_ups
    where id > ${since(DAY_MS)} and method in ('checkout', 'direct')
    group by 1, 2
    union all
    select status, 'older', count(*)
    from farebox.top_ups
    where status in ('pending', 'disputed') and id <= ${since(DAY_MS)} and method in ('checkout', 'direct')
    group by 1
  `);
  return TOP_UP_STATUSES.flatMap((state) =>
    TOP_UP_AGES.filter((age) => age !== 'older' || UNSETTLED.includes(state)).map((age) => ({
      state,
      age,
      count: counted.find((each) => each.state === state && each.age === age)?.count ?? 0,
    })),
  );
}
