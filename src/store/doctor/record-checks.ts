/**
 * Finds missing rows that migrations write and that a dump of the schema alone lacks: the records of migrations and
 * functions, and the numbers that are given next.
 */
import { Type } from 'typebox';
import { row, sql, type Database } from '../database.ts';
import { listReleased } from '../migrations.ts';
import type { Offender } from './findings.ts';

export const RECORDS_CHECK =
  'the database has the records of its migrations, and its sequences are ahead of its rows';

const nameRow = row(Type.Object({ name: Type.String() }));
const identityRow = row(
  Type.Object({
    schema: Type.String(),
    table: Type.String(),
    column: Type.String(),
    sequence: Type.String(),
  }),
);
const numberRow = row(Type.Object({ number: Type.Integer() }));

export async function listMissingRecords(database: Database): Promise<Offender[]> {
  const released = await listReleased();
  return [
    ...(await listUnrecorded(database, 'migration', released.migrations)),
    ...(await listUnrecorded(database, 'function', released.functions)),
    ...(await listUsedNumbers(database)),
  ];
}

async function listUnrecorded(
  database: Database,
  kind: 'migration' | 'function',
  released: readonly string[],
): Promise<Offender[]> {
  const recorded = await database.anyFirst(sql.type(nameRow)`
    select distinct name from ${sql.identifier(['farebox', `${kind}s`])}
  `);
  const known = new Set(recorded);
  return released
    .filter((name) => !known.has(name))
    .map((name) => ({ subject: `${kind} ${name}`, detail: 'has no record' }));
}

/**
 * A number that a row already has and that would be assigned again: the next insert would fail, or two
 * developers would be one.
 */
async function listUsedNumbers(database: Database): Promise<Offender[]> {
  const identities = await database.any(sql.type(identityRow)`
    select n.nspname as schema, c.relname as table, attname as column,
      pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), attname) as sequence
    from pg_attribute a join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = relnamespace
    where attidentity <> '' and n.nspname in ('farebox', 'console') and c.relkind in ('r', 'p')
      and not c.relispartition
    order by 1, 2
  `);
  const offenders = [];
  for (const { schema, table, column, sequence } of identities) {
    // First the rows: a sequence only rises.
    const used = await database.oneFirst(sql.type(numberRow)`
      select coalesce(max(${sql.identifier([column])}), 0)::int8 as number
      from ${sql.identifier([schema, table])}
    `);
    const given = await database.oneFirst(sql.type(numberRow)`
      select coalesce(pg_sequence_last_value(${sequence}::regclass), 0) as number
    `);
    if (given < used) {
      const detail = `a row has ${used}, and the last number given is ${given}`;
      offenders.push({ subject: `column ${schema}.${table}.${column}`, detail });
    }
  }
  return offenders;
}
