-- Tells a developer that the price of a tool was changed.
create or replace function farebox.post_tool_event() returns trigger language plpgsql as $$
begin
  perform farebox.post_event(a.id, 'tool.price_changed', json_build_object(
    'id', farebox.wire_id('tool', new.id),
    'name', new.name,
    'price', farebox.wire_dollars(new.price_micros),
    'previousPrice', farebox.wire_dollars(old.price_micros)
  ))
  from farebox.accounts a where a.developer_id = new.developer_id;
  return null;
end $$;

create or replace trigger tools_event after update of price_micros on farebox.tools
  for each row when (old.price_micros is distinct from new.price_micros and old.registered_at is not null)
  execute function farebox.post_tool_event();
