-- Whether a capture may take more than its hold reserves, as far as the owner's settings of now go: a new charge of the
-- tool by the same key must be allowed too. What a limit has left is for the caller to check.
-- A hold does not say which consumer key placed it. So once any consumer key has ended since then, the hold takes no
-- more than it reserves. For some seconds, a process may not know yet that a key has ended: the holds of the minute after
-- it count too. With a limit for each developer and day, the hold has the number of a key that nobody holds, so the same
-- applies to it. A hold that no budget counted takes no more either, and nor does that of a developer whose budget was
-- closed since.
create or replace function farebox.may_exceed_hold(
  p_ledger smallint, p_consumer uuid, p_spend_key int, p_developer int, p_tool text, p_placed_at timestamptz
) returns boolean
language plpgsql stable
as $$ begin
  return (select case
    when p_spend_key = 0 then a.keys_charge = 'open' and a.developer_day_micros is null and not e.has_ended
      and not (a.blocks_developers and exists (
        select from farebox.spend_keys k
        join farebox.budget_details d
          on d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = k.budget
        where k.ledger = p_ledger and k.consumer_id = p_consumer and k.developer = p_developer
          and d.closed_at is not null))
    else exists (
      select from farebox.spend_keys k
      where k.ledger = p_ledger and k.consumer_id = p_consumer and k.number = p_spend_key
        and (k.developer is null or (a.keys_charge = 'open' and not e.has_ended))
        and k.revoked_at is null and (k.expires_at > clock_timestamp()) is not false
        and not exists (
          select from unnest(k.path) as n (number)
          join farebox.budget_details d
            on d.ledger = p_ledger and d.consumer_id = p_consumer and d.number = any (array[n.number])
          left join farebox.accounts v on v.developer_number = p_developer
          where d.closed_at is not null or d.expires_at <= clock_timestamp()
            or v.developer_id <> all (d.developers)
            -- A name that begins with the id of a developer does not make the tool that developer's.
            or ((p_tool <> all (d.tools) or p_tool ~ '^dev_[0-9a-f]{32}/')
              and farebox.wire_id('dev', v.developer_id) || '/' || p_tool <> all (d.tools))
            or (d.approve_developers and v.developer_id <> all (d.approved_developers))))
    end
  from farebox.accounts a
  cross join lateral (
    select exists (
      select from farebox.api_keys x
      where x.account_id = a.id and x.kind = 'consumer'
        -- One that had expired may have been revoked later.
        and least(x.revoked_at, x.expires_at) between p_placed_at - interval '1 minute' and clock_timestamp()
    ) as has_ended
  ) e
  where a.consumer_id = p_consumer);
end $$;
