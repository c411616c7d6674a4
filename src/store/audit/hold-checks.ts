/** The part of the audit that proves holds: what they reserve, what they captured, and that each of them ends. */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { sql } from '../database.ts';
import { isTestLedger } from './modes.ts';

export const HOLD_CHECKS = {
  'reserved equals open holds': sql.fragment`
    select 'consumer ' || coalesce(c.id, h.consumer_id), 'reserved ' || coalesce(c.reserved_micros, 0)
      || ', holds ' || coalesce(h.micros, 0)
    from farebox.consumers c full join (
      select ledger, consumer_id, sum(held_micros) as micros from farebox.holds
      where state = 0 group by 1, 2
    ) h on h.ledger = c.ledger and h.consumer_id = c.id
    where coalesce(c.reserved_micros, 0) <> coalesce(h.micros, 0)`,

  // The charges of a hold that was placed in an archived month may be archived.
  'the captured amount of a hold equals its charges': sql.fragment`
    select 'hold ' || coalesce(h.id, c.hold_id), 'captured ' || coalesce(h.captured_micros, 0) || ' in '
      || coalesce(h.captures, 0) || ', charges ' || coalesce(c.micros, 0) || ' in ' || coalesce(c.charges, 0)
    from (
      select * from farebox.holds
      where (captures > 0 or captured_micros > 0) and uuid_extract_timestamp(id) >= ${ARCHIVED_BEFORE}
    ) h full join (
      select ledger, consumer_id, developer, tool, encode(substr(origin, 7), 'hex')::uuid as hold_id,
        sum(amount_micros) as micros, count(*) as charges
      from farebox.charges
      where length(origin) = 22
        and uuid_extract_timestamp(encode(substr(origin, 7), 'hex')::uuid) >= ${ARCHIVED_BEFORE}
      group by 1, 2, 3, 4, 5
    ) c on c.ledger = h.ledger and c.consumer_id = h.consumer_id and c.hold_id = h.id
      and c.developer = h.developer and c.tool = h.tool
    where (h.captured_micros = c.micros and h.captures = c.charges) is not true`,

  'every open hold is scheduled to expire': sql.fragment`
    select 'hold ' || h.id, 'expires at ' || h.expires_at
    from farebox.holds h left join (
      select hold_id, min(due_at) as due_at from (
        select unnest(holds) as hold_id, due_at from farebox.hold_expiries
      ) u group by 1
    ) x on x.hold_id = h.id
    where h.state = 0 and (x.due_at <= h.expires_at) is not true`,

  'no hold is between a live and a test account': sql.fragment`
    select 'hold ' || min(h.id::text), count(*) || ' holds in ledger ' || h.ledger || ' for a developer in ledger '
      || a.ledger
    from farebox.holds h join farebox.accounts a on a.developer_number = h.developer
    where ${isTestLedger('h')} <> ${isTestLedger('a')} group by h.ledger, a.ledger`,

  'an idempotency key placed at most one hold': sql.fragment`
    select 'consumer ' || min(consumer_id::text), count(*) || ' holds with one key'
    from farebox.holds where idempotency_hash is not null
    group by idempotency_hash, request_fingerprint >> 40 having count(*) > 1`,
} as const;
