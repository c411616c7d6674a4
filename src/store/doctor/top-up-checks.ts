/** The checks that prove top-ups: how they were credited, taken back, and started automatically. */
import { TEST_LEDGER_MIN } from '../../domain/mode.ts';
import { balanceOf } from '../balance/consumers.ts';
import { sql } from '../database.ts';

export const TOP_UP_CHECKS = {
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
      group by consumer_id, date_trunc('month', coalesce(completed_at, now()), 'UTC')
    ) m where taken > ceiling or taken_automatically > automatic_ceiling`,

  'a consumer has at most one automatic top-up in progress': sql.fragment`
    select 'consumer ' || consumer_id, count(*) || ' are pending' from farebox.top_ups
    where automatic and status = 'pending' group by consumer_id having count(*) > 1`,

  'held equals open disputes plus open holds': sql.fragment`
    select 'consumer ' || c.id, 'held ' || c.held_micros || ', reserved ' || c.reserved_micros
      || ', disputes ' || coalesce(r.micros, 0)
    from farebox.consumers c left join (
      select ledger, consumer_id, sum(held_micros) as micros from farebox.reversals
      where status = 'open' group by 1, 2
    ) r on r.ledger = c.ledger and r.consumer_id = c.id
    where c.held_micros - c.reserved_micros <> coalesce(r.micros, 0)`,

  'a refund or dispute took the sum of its movements': sql.fragment`
    select 'reversal ' || r.id, r.status || ', took ' || r.taken_micros || ' and returned tax of ' || r.tax
      || ', movements ' || coalesce(m.micros, 0) || ' and ' || coalesce(m.tax, 0)
    from (
      select *, case when taken_micros > 0 then coalesce(gross_micros - amount_micros, 0) else 0 end as tax
      from farebox.reversals
    ) r left join (
      select reversal_id, -sum(amount_micros) as micros, -sum(tax_micros) as tax from farebox.movements
      where reversal_id is not null group by 1
    ) m on m.reversal_id = r.id
    where r.taken_micros <> coalesce(m.micros, 0) or r.tax <> coalesce(m.tax, 0)`,

  'nobody has both a debt and a balance': sql.fragment`
    select 'consumer ' || c.id, 'debt ' || d.micros || ', balance ' || ${balanceOf('c')}
    from farebox.consumers c join (
      select ledger, consumer_id, sum(debt_micros) as micros from farebox.reversals
      where debt_micros > 0 group by 1, 2
    ) d on d.ledger = c.ledger and d.consumer_id = c.id
    where ${balanceOf('c')} > 0`,

  'the status of a top-up matches its refunds and disputes': sql.fragment`
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

  'the refunds, or disputes, of a payment have its tax in proportion': sql.fragment`
    select 'top-up ' || t.id, r.kind || 's of ' || r.net || ', with tax ' || r.gross || ', of '
      || t.amount_micros || ', with tax ' || t.amount_micros + t.tax_micros
    from farebox.top_ups t join (
      select top_up_id, kind, sum(amount_micros) as net,
        sum(coalesce(gross_micros, amount_micros)) as gross
      from farebox.reversals where status not in ('failed', 'won') group by 1, 2
    ) r on r.top_up_id = t.id
    where (r.net >= t.amount_micros) <> (r.gross >= t.amount_micros + t.tax_micros)
      or r.gross - r.net > t.tax_micros
      or r.kind = 'refund' and r.gross = t.amount_micros + t.tax_micros and r.net <> t.amount_micros`,

  'a top-up is for the consumer of its account': sql.fragment`
    select 'top-up ' || t.id, 'account ' || t.account_id || ', consumer ' || t.consumer_id || ' in ledger ' || t.ledger
    from farebox.top_ups t left join farebox.accounts a on a.id = t.account_id
    where (a.consumer_id = t.consumer_id and a.ledger = t.ledger) is not true`,

  'a top-up has the fields that its method needs': sql.fragment`
    select 'top-up ' || id, method || ', ' || status || case when automatic then ', automatic' else '' end
      || ', session ' || coalesce(session_id, 'none') || ', payment ' || coalesce(payment_intent_id, 'none')
      || ', ceiling ' || coalesce(consent_ceiling_micros::text, 'none')
      || ', automatic ceiling ' || coalesce(automatic_ceiling_micros::text, 'none')
    from farebox.top_ups
    where (consent_ceiling_micros is not null) <> (method = 'direct')
      or (automatic_ceiling_micros is not null) <> automatic
      or case when method = 'test' then ledger < ${TEST_LEDGER_MIN}::int2
          or num_nonnulls(session_id, session_url, payment_intent_id, seen_verdict) > 0
        when method = 'manual' then status <> 'completed'
          or num_nonnulls(session_id, session_url, payment_intent_id, idempotency_key) > 0
        else payment_intent_id is null and status not in ('pending', 'expired', 'failed') end`,

  // Null: credited by a release that did not record Stripe's answer. Unless something is stuck, a credit follows within
  // seconds.
  'a top-up was credited because Stripe showed it as paid': sql.fragment`
    select 'top-up ' || id, status || ', seen ' || seen_verdict || ' at ' || seen_at
    from farebox.top_ups
    where case when status in ('pending', 'expired', 'failed')
      then seen_verdict = 'paid' and seen_at < now() - interval '1 hour'
      else seen_verdict <> 'paid' end`,

  'a payment pays for one top-up': sql.fragment`
    select 'payment ' || payment_intent_id, 'pays for ' || string_agg(id::text, ', ')
    from farebox.top_ups where payment_intent_id is not null
    group by payment_intent_id having count(*) > 1`,

  'a top-up records when it was completed, or why it failed': sql.fragment`
    select 'top-up ' || id, status || ', completed at ' || coalesce(completed_at::text, 'no time')
      || ', failure ' || coalesce(failure_code, 'none')
    from farebox.top_ups
    where (completed_at is null) <> (status in ('pending', 'expired', 'failed'))
      or (failure_code is not null) <> (status = 'failed')`,

  "a refund or dispute belongs to its top-up's consumer": sql.fragment`
    select 'reversal ' || r.id, 'consumer ' || r.consumer_id || ', its top-up''s '
      || coalesce(t.consumer_id::text, 'is gone')
    from farebox.reversals r left join farebox.top_ups t on t.id = r.top_up_id
    where ((r.ledger, r.consumer_id) = (t.ledger, t.consumer_id)) is not true`,

  'a refund by an operator names a top-up of that account': sql.fragment`
    select 'action ' || a.id, 'of account ' || a.account_id || ', the top-up''s '
      || coalesce(t.account_id::text, 'is gone')
    from farebox.operator_actions a left join farebox.top_ups t on t.id = a.top_up_id
    where a.top_up_id is not null and (t.account_id = a.account_id) is not true`,

  // A repeat with the key is answered with this refund. What the processor says of its amount counts, so it may change.
  'every refund whose request is recorded was requested': sql.fragment`
    select record, 'says that refund ' || q.refund_id || ' of top-up ' || q.top_up_id || ' was requested'
    from (
      select 'action ' || id as record, id as refund_id, top_up_id
      from farebox.operator_actions where kind = 'refund'
      union all select 'key ' || idempotency_key, reversal_id, top_up_id from farebox.refund_keys
    ) q
    left join farebox.reversals r on r.id = q.refund_id and r.top_up_id = q.top_up_id and r.kind = 'refund'
    where r.id is null`,

  'a movement agrees with its refund or dispute': sql.fragment`
    select 'movement ' || m.id, m.kind || ' of top-up ' || m.top_up_id || ', by ' || coalesce(r.kind, 'nothing')
      || ' ' || m.reversal_id || ' of top-up ' || coalesce(r.top_up_id::text, 'none')
    from farebox.movements m left join farebox.reversals r on r.id = m.reversal_id
    where m.reversal_id is not null
      and ((r.ledger, r.consumer_id, r.top_up_id) = (m.ledger, m.consumer_id, m.top_up_id)
        and m.kind in (r.kind, r.kind || '_returned')) is not true`,

  // Until a charge asks. From then on, a notice, and after it a top-up in progress, ensure that charges ask again. Only
  // that notice has a consumer as its subject.
  'charges request automatic top-ups while they are on': sql.fragment`
    select 'consumer ' || c.id, 'asks below ' || coalesce(c.auto_top_up_below_micros::text, 'nothing') || ', '
      || coalesce(a.status || ' below ' || a.threshold_micros, 'switched off')
    from farebox.consumers c
    left join farebox.auto_top_ups a on a.ledger = c.ledger and a.consumer_id = c.id
    where case when c.auto_top_up_below_micros is null
      then a.status in ('on', 'waiting')
        and not exists (select from farebox.outbox where subject_id = c.id)
        and not exists (select from farebox.top_ups t
          where t.ledger = c.ledger and t.consumer_id = c.id and t.automatic and t.status = 'pending')
      else (a.status <> 'off' and a.threshold_micros = c.auto_top_up_below_micros) is not true end`,
} as const;
