/**
 * The checks that all pending work is progressing. They detect a stuck part of the service even before any amount
 * is wrong.
 */
import { sql } from '../database.ts';

/** Relays take a notice within seconds, and retry a failing one at least once a minute. */
const DELIVERED_WITHIN = sql.fragment`interval '10 minutes'`;
/** A direct top-up is given up when nothing was tried within 15 minutes. The rest of the hour is for operators. */
const DIRECT_ENDS_WITHIN = sql.fragment`interval '1 hour'`;
/** Its cardholder has a day to confirm it at the bank, and then reconciliation has it canceled. */
const CONFIRMED_WITHIN = sql.fragment`interval '26 hours'`;
/** A checkout is open for a day. A bank debit that it started may take two weeks to settle. */
export const CHECKOUT_ENDS_WITHIN = sql.fragment`interval '16 days'`;

export const DELIVERY_CHECKS = {
  'every notice is delivered within ten minutes': sql.fragment`
    select topic || ' ' || subject_id, 'waits since ' || created_at || ', tried ' || attempts || ' times'
    from farebox.outbox
    where case topic
      -- At a ceiling, it is postponed for an hour at a time.
      when 'auto_top_up' then next_attempt_at < now() - ${DELIVERED_WITHIN}
      else created_at < now() - ${DELIVERED_WITHIN} end`,

  'every event is sent within ten minutes of when it is due': sql.fragment`
    select 'event ' || d.event_id, 'for endpoint ' || d.endpoint_id || ', due since ' || d.next_attempt_at
    from farebox.webhook_deliveries d join farebox.webhook_endpoints e on e.id = d.endpoint_id
    where d.status = 'waiting' and d.next_attempt_at < now() - ${DELIVERED_WITHIN} and e.status = 'active'
      -- An endpoint that hangs takes hours to refuse a thousand events.
      and e.failing_since is null`,

  'every top-up ends on time': sql.fragment`
    select 'top-up ' || id, method || ', pending since ' || created_at
    from farebox.top_ups
    where status = 'pending' and created_at < now()
      - case when method <> 'direct' then ${CHECKOUT_ENDS_WITHIN}
        when authentication_asked_at is not null then ${CONFIRMED_WITHIN} else ${DIRECT_ENDS_WITHIN} end`,
} as const;

/** `masterSecrets`: the numbers of the configured ones. */
export function signingChecks(masterSecrets: readonly number[]) {
  return {
    'the master secret of every active webhook endpoint is configured': sql.fragment`
      select 'endpoint ' || id, 'signs with master secret ' || secret_master
      from farebox.webhook_endpoints
      where status = 'active' and secret_master <> all(${sql.array([...masterSecrets], 'int4')})`,
  };
}
