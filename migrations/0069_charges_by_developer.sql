-- Half as many bytes a charge for the index by which developers read charges. It has the first eight bytes of the id as a
-- number: the time, and the charge's place in its millisecond. Entries of the developer's number and a UUID are too wide for
-- PostgreSQL to fill pages from left to right where each developer's entries are appended (_bt_afternewitemoff in
-- nbtsplitloc.c: at most two int8), so its pages stayed half empty.
-- Locks: SHARE on the partitions while the index is built. On large partitions, build it beside traffic before, on each,
-- and this one takes it over: `create index concurrently on farebox.charges_2026_11 (developer, (substr(uuid_send(id), 1, 8)::int8))`.
-- ACCESS EXCLUSIVE for the drop, for the catalog alone. The previous release may run beside it; until it is replaced, its
-- lists and look-ups by a developer read all charges of that developer in the months they look at.
create index charges_of_developer on farebox.charges (developer, (substr(uuid_send(id), 1, 8)::int8));
drop index farebox.charges_developer;
-- Without, PostgreSQL knows nothing of the new expression until its next analyze.
analyze farebox.charges;
