/** Ids by Postgres's clock, made and compared where it is read: the clock of this machine may be wrong. */
import { sql, type Fragment } from './database.ts';

/** A new UUIDv7 with the tail of its owner, as `idsAt` gives it to charges. */
export function newIdOf(owner: string | Fragment) {
  return sql.fragment`overlay(uuidv7()::text placing right(${owner}::text, 4) from 33)::uuid`;
}

/** Like `uuidFloor`, for a timestamptz. */
export function idFloorOf(time: Fragment) {
  return sql.fragment`(lpad(to_hex(greatest(floor(extract(epoch from ${time}) * 1000)::int8, 0)), 12, '0')
    || '70008000000000000000')::uuid`;
}
