/**
 * Compares the database's catalog with the files of this release: the guarantee of a
 * constraint, an index, a trigger or a function holds only while it exists as written.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { ROOT } from '../../root.ts';
import { row, sql, type Database } from '../database.ts';
import type { Offender } from './findings.ts';
import { dumpSchema } from './schema-dump.ts';

export const SCHEMA_CHECK = 'the schema matches this release';

const MIGRATIONS = join(ROOT, 'migrations');
const FUNCTION = /^create or replace function farebox\.(\w+)[^]*?\bas \$\$([^]*?)\$\$/gm;

const bodyRow = row(Type.Object({ name: Type.String(), body: Type.String() }));

export async function listSchemaDifferences(database: Database): Promise<Offender[]> {
  const released = paragraphsOf(await readFile(join(MIGRATIONS, 'schema.sql'), 'utf8'));
  const found = paragraphsOf(await dumpSchema(database));
  const names = new Set([...released.keys(), ...found.keys()]);
  const differences = [...names].flatMap((subject) =>
    differencesOf(subject, released.get(subject) ?? [], found.get(subject) ?? []),
  );
  return [...differences, ...(await listReplacedFunctions(database))];
}

function differencesOf(subject: string, released: string[], found: string[]): Offender[] {
  if (found.length === 0) return [{ subject, detail: 'missing' }];
  if (released.length === 0) {
    return isOperatorsOwn(found) ? [] : [{ subject, detail: 'not in this release' }];
  }
  return [
    ...released.filter((line) => !found.includes(line)).map((line) => `missing: ${line}`),
    ...found
      .filter((line) => !released.includes(line))
      .map((line) => `not in this release: ${line}`),
  ].map((detail) => ({ subject, detail }));
}

/** Monthly partitions of charges are created over time. Other programs and their extensions may share the database. */
function isOperatorsOwn(lines: readonly string[]): boolean {
  return lines.every((line) => /^create (extension|table [\w.]+ partition of) /.test(line));
}

/**
 * The lines of each table and function, by its name, without comments and storage parameters, which operators may tune.
 */
function paragraphsOf(dump: string): Map<string, string[]> {
  const paragraphs = dump.split('\n\n').flatMap((text): [string, string[]][] => {
    const lines = text
      .split('\n')
      .map((line) =>
        line
          .trim()
          .replace(/ with \([^()]*\);$/, ';')
          .replace(/,$/, ''),
      )
      .filter((line) => !/^(\)?;?)$/.test(line) && !line.startsWith('--'));
    const [, kind, name] = /^create (\w+) ([\w.]+)/.exec(lines[0] ?? '') ?? [];
    return kind === undefined ? [] : [[`${kind} ${name}`, lines]];
  });
  return new Map(paragraphs);
}

async function listReplacedFunctions(database: Database): Promise<Offender[]> {
  const rows = await database.any(sql.type(bodyRow)`
    select proname as name, prosrc as body from pg_proc where pronamespace = 'farebox'::regnamespace
  `);
  const found = new Map(rows.map(({ name, body }) => [name, body]));
  return [...(await readBodies())]
    .filter(([name, body]) => found.has(name) && found.get(name) !== body)
    .map(([name]) => ({
      subject: `function farebox.${name}`,
      detail: 'its body differs from that of this release',
    }));
}

async function readBodies(): Promise<ReadonlyMap<string, string>> {
  const folder = join(MIGRATIONS, 'functions');
  const texts = await Promise.all(
    (await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')),
  );
  return new Map(
    texts.flatMap((text) =>
      [...text.matchAll(FUNCTION)].map(([, name = '', body = '']) => [name, body] as const),
    ),
  );
}
