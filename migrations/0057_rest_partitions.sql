-- Rows that fell into a default partition are moved to their months by copying them first, beside traffic, into tables
-- of this schema. Rows that arrive or change meanwhile are copied by a trigger (functions/copy_from_rest.sql), so the
-- switch itself moves nothing (src/store/charges/move-rest.ts).
-- Locks: none beyond those of the triggers, SHARE ROW EXCLUSIVE on the default partitions, for the catalog alone. The
-- previous release runs beside it.
create schema if not exists farebox_moving;
