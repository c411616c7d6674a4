/**
 * The checks that all pending work is progressing. They detect a stuck part of the service even before any amount
 * is wrong.
 */
import { sql } from '../database.ts';
import { endsBy } from '../top-ups/ends-by.ts';

/** Relays take a notice within seconds, and retry a failing one at least once a minute. */
const DELIVERED_WITHIN = sql.fragment`interval '10 minutes'`;
/** Reconciliation has it ended after its time. The rest of the two hours is for operators. */
const ENDED_WITHIN = sql.fragment`interval '2 hours'`;

export const DELIVERY_CHECKS = {
  'every notice is delivered within ten minutes': sql.fragment`
    select topic || ' ' || subject_id, 'waiting since ' || created_at || ', tried ' || attempts || ' times'
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
    where status = 'pending' and ${endsBy('top_ups')} < now() - ${ENDED_WITHIN}`,
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
