-- An id as the API shows it: ('tu', 0190...-...) is tu_0190....
create or replace function farebox.wire_id(prefix text, id uuid) returns text
language sql immutable strict parallel safe
return prefix || '_' || replace(id::text, '-', '');
