-- A list as the audit log has it. A short one whole; of a longer one the number of its members, the SHA-256 of its JSON, and under
-- `label` the members that the other list does not have, with their number: as many as a kilobyte holds. Nobody may delete an entry,
-- and a budget may name a thousand developers.
create or replace function farebox.audit_list(list jsonb, other jsonb, label text)
returns jsonb language sql immutable parallel safe as $$
  select case when octet_length(list::text) <= 1000 then list else (
    select jsonb_build_object('count', jsonb_array_length(list),
        'sha256', encode(sha256(convert_to(list::text, 'UTF8')), 'hex'))
      || case when count(*) = 0 then '{}' else jsonb_build_object(label || '_count', count(*),
        label, coalesce(jsonb_agg(member order by place) filter (where bytes <= 1000), '[]')) end
    from (
      select member, place, sum(octet_length(member) + 4) over (order by place) as bytes
      from jsonb_array_elements_text(list) with ordinality as l (member, place)
      where member not in (
        select jsonb_array_elements_text(case jsonb_typeof(other) when 'array' then other else '[]' end))
    ) only_here
  ) end
$$;
