/**
 * A PostgreSQL whose clock jumps: functions with the names of its own are found first, and add an offset that
 * `jump` changes. Connections that are opened later use it.
 */
import { Type } from 'typebox';
import { row, sql, type Database } from '../../../src/store/database.ts';
import type { Random } from '../../support/random.ts';

const STEPS = [
  '3 minutes',
  '40 minutes',
  '3 hours',
  '1 day',
  '13 days',
  '-2 minutes',
  '-35 minutes',
  '-4 hours',
  '-1 day',
];

const nameRow = row(Type.Object({ name: Type.String() }));
const columnRow = row(Type.Object({ table: Type.String(), column: Type.String() }));

export async function installClock(database: Database): Promise<void> {
  const run = (statement: ReturnType<typeof sql.fragment>) =>
    database.query(sql.typeAlias('nothing')`${statement}`);
  await run(sql.fragment`create schema clock`);
  await run(sql.fragment`create table clock.shift as select interval '0' as shift`);
  await run(sql.fragment`
    create function clock.clock_timestamp() returns timestamptz language sql volatile
      as 'select pg_catalog.clock_timestamp() + (select shift from clock.shift)'
  `);
  await run(sql.fragment`
    create function clock.now() returns timestamptz language sql stable
      as 'select pg_catalog.now() + (select shift from clock.shift)'
  `);
  await run(sql.fragment`
    create function clock.uuidv7() returns uuid language sql volatile
      as 'select pg_catalog.uuidv7(shift) from clock.shift'
  `);
  const name = await database.oneFirst(sql.type(nameRow)`select current_database() as name`);
  await run(sql.fragment`
    alter database ${sql.identifier([name])} set search_path = clock, pg_catalog, public
  `);
  // A default keeps the function that it was made with.
  const columns = await database.any(sql.type(columnRow)`
    select c.table_name as "table", c.column_name as "column" from information_schema.columns c
    join pg_class k on k.oid = format('%I.%I', c.table_schema, c.table_name)::regclass
    where c.table_schema = 'farebox' and c.column_default = 'now()' and not k.relispartition
  `);
  for (const { table, column } of columns) {
    await run(sql.fragment`
      alter table ${sql.identifier(['farebox', table])}
      alter column ${sql.identifier([column])} set default clock.now()
    `);
  }
}

/** Forward or back. */
export async function jump(database: Database, random: Random): Promise<void> {
  await database.query(sql.typeAlias('nothing')`
    update clock.shift set shift = shift + ${random.pick(STEPS)}::interval
  `);
}
