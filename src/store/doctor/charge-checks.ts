/** The checks that read every charge: the amounts spent, the charges that spent them, and their refunds. */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { cardVersionOf } from '../charges/charge-origin.ts';
import { sql } from '../database.ts';
import { DISORDER_MS_MAX } from '../balance/spent.ts';
import { isTestLedger } from './modes.ts';
import { CLOCKS_APART_MAX } from './clocks.ts';
import { madeTwiceByOneKey } from './one-key.ts';

export const CHARGE_CHECKS = {
  'a charge has a consumer': sql.fragment`
    select 'consumer ' || h.consumer_id, count(*) || ' charges' from farebox.charges h
    where not exists (
      select from farebox.consumers c where c.ledger = h.ledger and c.id = h.consumer_id
    ) group by h.consumer_id`,

  'spent is the sum of charges': sql.fragment`
    select 'consumer ' || c.id, 'spent ' || c.spent_micros || ', charges ' || coalesce(h.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(amount_micros) as micros from (
        select ledger, consumer_id, amount_micros from farebox.charges
        union all
        select ledger, consumer_id, amount_micros from farebox.archived_charges
      ) all_charges group by 1, 2
    ) h on h.ledger = c.ledger and h.consumer_id = c.id
    where c.spent_micros <> coalesce(h.micros, 0)`,

  'charges follow each other without gap or overlap': sql.fragment`
    select coalesce('charge ' || id, 'the archived charges of consumer ' || consumer_id),
      'begins at ' || begins || ', the one before ends at ' || before
    from (
      select consumer_id, id, begins, coalesce(lag(ends) over (
        partition by ledger, consumer_id order by ends, id), 0) as before
      from (
        select ledger, consumer_id, id, spent_micros - amount_micros as begins, spent_micros as ends
        from farebox.charges
        union all
        select ledger, consumer_id, null, lower(stretch), upper(stretch)
        from farebox.archived_spending cross join lateral unnest(stretches) as stretch
      ) c
    ) c where begins <> before`,

  'archived charges have the same sums wherever they are kept': sql.fragment`
    select 'consumer ' || coalesce(s.consumer_id, c.consumer_id), 'covered ' || coalesce(s.micros, 0)
      || ', charges ' || coalesce(c.micros, 0)
    from (
      select ledger, consumer_id, sum(upper(stretch) - lower(stretch)) as micros
      from farebox.archived_spending cross join lateral unnest(stretches) as stretch group by 1, 2
    ) s full join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.archived_charges group by 1, 2
    ) c on c.ledger = s.ledger and c.consumer_id = s.consumer_id
    where s.micros is distinct from c.micros
    union all
    select 'month ' || coalesce(m.month, c.month)::text, coalesce(m.charges, 0) || ' charges of '
      || coalesce(m.amount_micros, 0) || ', by consumer ' || coalesce(c.charges, 0) || ' of ' || coalesce(c.micros, 0)
    from (select * from farebox.archived_months where charges > 0) m full join (
      select month, sum(charges) as charges, sum(amount_micros) as micros
      from farebox.archived_charges group by 1
    ) c on c.month = m.month
    where (m.charges = c.charges and m.amount_micros = c.micros) is not true`,

  'an idempotency key made at most one charge that is not refunded': madeTwiceByOneKey(
    'charges',
    sql.fragment`exists (
      select from farebox.charge_refunds r
      where r.ledger = made.ledger and r.consumer_id = made.consumer_id and r.charge_id = made.id
        and r.refunded_micros = r.charge_micros
    )`,
  ),

  'a charge by a rate card names a card that its tool has had': sql.fragment`
    select 'charge ' || c.id, 'card ' || ${cardVersionOf('c')} || ' of ' || c.tool
    from farebox.charges c
    where c.origin <> '' and ${cardVersionOf('c')} > 0 and not exists (
      select from farebox.accounts a
      join farebox.tools t on t.developer_id = a.developer_id and t.name = c.tool
      join farebox.rate_cards r on r.tool_id = t.id and r.version = ${cardVersionOf('c')}
      where a.developer_number = c.developer
    )`,

  'refunds of a charge follow each other and do not exceed it': sql.fragment`
    select 'charge ' || r.charge_id, 'took ' || coalesce(c.amount_micros::text, 'nothing') || ', a refund of '
      || r.amount_micros || ' after ' || r.before || ' ends at ' || r.refunded_micros
    from (
      select *, coalesce(lag(refunded_micros) over (
        partition by ledger, consumer_id, charge_id order by refunded_micros), 0) as before
      from farebox.charge_refunds
    ) r left join farebox.charges c
      on c.ledger = r.ledger and c.consumer_id = r.consumer_id and c.id = r.charge_id
    where (r.refunded_micros <= r.charge_micros and r.refunded_micros - r.amount_micros = r.before
      and (uuid_extract_timestamp(r.charge_id) < ${ARCHIVED_BEFORE}
        or (r.charge_micros, r.spent_micros, r.developer, r.tool)
          = (c.amount_micros, c.spent_micros - r.before, c.developer, c.tool))) is not true`,

  'charge refunds equal their credits': sql.fragment`
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

  // Ids are created before the consumer is locked, so charges that are close in time may be swapped, but by
  // no more than the consumer's row says. Totals between instants rely on that (src/store/balance/spent.ts).
  'charges are in the order of their times': sql.fragment`
    select 'charge ' || h.id, 'made at ' || at || ', behind one of ' || latest
    from (
      select ledger, consumer_id, id, uuid_extract_timestamp(id) as at, max(uuid_extract_timestamp(id)) over (
        partition by ledger, consumer_id order by spent_micros, id
        rows between unbounded preceding and 1 preceding) as latest
      from farebox.charges
    ) h join farebox.consumers c on c.ledger = h.ledger and c.id = h.consumer_id
    where at < latest - least(c.disorder, make_interval(secs => ${DISORDER_MS_MAX / 1_000}))`,

  'a charge names a developer': sql.fragment`
    select 'charge ' || min(id::text), count(*) || ' charges for developer number ' || developer
    from farebox.charges
    where not exists (select from farebox.accounts a where a.developer_number = developer)
    group by developer`,

  'no charge is between a live and a test account': sql.fragment`
    select 'charge ' || min(h.id::text), count(*) || ' charges in ledger ' || h.ledger || ' for a developer in ledger '
      || a.ledger
    from farebox.charges h join farebox.accounts a on a.developer_number = h.developer
    where ${isTestLedger('h')} <> ${isTestLedger('a')} group by h.ledger, a.ledger`,

  'a charge left a balance that was credited': sql.fragment`
    select 'charge ' || h.id, 'spent ' || h.spent_micros || ' and left ' || h.balance_micros
      || ', credited ' || coalesce(m.micros, 0)
    from farebox.charges h left join (
      select ledger, consumer_id, sum(amount_micros) as micros from farebox.movements
      where amount_micros > 0 group by 1, 2
    ) m on m.ledger = h.ledger and m.consumer_id = h.consumer_id
    where h.balance_micros < 0 or h.spent_micros < h.amount_micros
      or h.spent_micros + h.balance_micros > coalesce(m.micros, 0)`,

  // The values that lists, exports and receipts show. One charge that cannot be shown makes all of them fail.
  'a charge can be shown': sql.fragment`
    select 'charge ' || id, 'made at ' || coalesce(uuid_extract_timestamp(id)::text, 'no time')
      || case when (idempotency_hash is null) = (request_fingerprint is null) then '' else ', half a key' end
      || ', tool ' || tool || ', metadata ' || left(metadata, 40)
    from farebox.charges
    where (uuid_extract_version(id) = 7
      and uuid_extract_timestamp(id) < now() + ${CLOCKS_APART_MAX}
      and char_length(tool) between 1 and 100
      and (idempotency_hash is null) = (request_fingerprint is null)
      and (metadata = '' or metadata is json object)) is not true`,

  'a refund of a charge is credited by a movement that names the charge': sql.fragment`
    select 'charge ' || coalesce(r.name, m.reason), 'refunded ' || coalesce(r.micros, 0)
      || ', credited for it ' || coalesce(m.micros, 0)
    from (
      select ledger, consumer_id, 'chg_' || replace(charge_id::text, '-', '') as name,
        sum(amount_micros) as micros
      from farebox.charge_refunds group by 1, 2, 3
    ) r full join (
      select ledger, consumer_id, reason, sum(amount_micros) as micros
      from farebox.movements where kind = 'charge_refund' group by 1, 2, 3
    ) m on m.ledger = r.ledger and m.consumer_id = r.consumer_id and m.reason = r.name
    where r.micros is distinct from m.micros`,

  // The developer's statement has it in the month of its id, the consumer's in that of the movement. Sorted,
  // so that refunds of one charge need not be told apart.
  'a refund of a charge and its credit are of one time': sql.fragment`
    select 'charge ' || name, 'refunded at ' || r.at || ', credited for it at ' || m.at
    from (
      select ledger, consumer_id, name, at,
        row_number() over (partition by ledger, consumer_id, name order by at) as place
      from (
        select ledger, consumer_id, 'chg_' || replace(charge_id::text, '-', '') as name,
          uuid_extract_timestamp(id) as at
        from farebox.charge_refunds
      ) named
    ) r join (
      select ledger, consumer_id, reason as name, created_at as at,
        row_number() over (partition by ledger, consumer_id, reason order by created_at) as place
      from farebox.movements where kind = 'charge_refund'
    ) m using (ledger, consumer_id, name, place)
    where r.at not between m.at - ${CLOCKS_APART_MAX} and m.at + ${CLOCKS_APART_MAX}
      or date_trunc('month', r.at, 'UTC') <> date_trunc('month', m.at, 'UTC')`,

  'a refund of a charge was made after the charge': sql.fragment`
    select 'charge ' || charge_id, 'made at ' || coalesce(uuid_extract_timestamp(charge_id)::text, 'no time')
      || ', refunded at ' || coalesce(uuid_extract_timestamp(id)::text, 'no time')
    from farebox.charge_refunds
    where (uuid_extract_timestamp(id) > uuid_extract_timestamp(charge_id) - ${CLOCKS_APART_MAX}) is not true`,
} as const;

/**
 * After Postgres' clock was set back, these find the same rows forever. No sum depends on what they find
 * (docs/runbook.md). If an archive stopped for it, it would refuse every month from then on.
 */
const OF_CLOCKS: readonly string[] = [
  'charges are in the order of their times',
  'a refund of a charge was made after the charge',
] satisfies (keyof typeof CHARGE_CHECKS)[];

export function isOfClocks(check: string): boolean {
  return OF_CLOCKS.includes(check);
}

/** `masterSecrets`: the numbers of the configured ones. */
export function receiptChecks(masterSecrets: readonly number[]) {
  return {
    'the secret of every receipt is configured': sql.fragment`
      select 'charge ' || min(id::text), count(*) || ' charges with receipt key ' || receipt_key
      from farebox.charges where receipt_key <> all(${sql.array([...masterSecrets], 'int2')})
      group by receipt_key`,
  };
}
