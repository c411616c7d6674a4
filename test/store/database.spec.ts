/** Values as they arrive from the database, and the end of its connections. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { Client } from 'pg';
import { Type } from 'typebox';
import { createDatabase, row, sql, type Database } from '../../src/store/database.ts';
import { startFaultyLine } from '../support/faulty-line.ts';
import { asSuperuser, createTestDatabase, type TestDatabase } from '../support/stack.ts';

const numbers = row(
  Type.Object({ numbers: Type.Array(Type.Union([Type.Integer(), Type.Null()])) }),
);

const texts = row(Type.Object({ texts: Type.Array(Type.Union([Type.String(), Type.Null()])) }));

describe('values from the database', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  before(async () => {
    testDatabase = await createTestDatabase();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
  });

  after(async () => {
    await database.end();
    await testDatabase.drop();
  });

  const arrived = (text: string) =>
    database.one(sql.type(numbers)`select ${text}::int8[] as numbers`);

  it('of int8 come in lists as numbers and nulls, in any number', async () => {
    const lists = fc.array(fc.option(fc.maxSafeInteger()), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(lists, async (list) => {
        const text = `{${list.map((value) => value ?? 'null').join(',')}}`;
        assert.deepEqual(await arrived(text), { numbers: list });
      }),
    );
  });

  it('of text and uuid come in lists as they were sent', async () => {
    const characters = fc.constantFrom('a', 'NULL', '"', '\\', ',', '{', '}', ' ', '\n', 'ü', '😀');
    const words = fc.array(characters, { maxLength: 5 }).map((parts) => parts.join(''));
    const lists = fc.array(fc.option(words), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(lists, async (list) => {
        const members = sql.array(list, 'text');
        assert.deepEqual(
          await database.oneFirst(sql.type(texts)`select ${members} as texts`),
          list,
        );
      }),
    );
    const ids = Array.from({ length: 3 }, () => randomUUID());
    for (const list of [[], ids]) {
      const members = sql.array(list, 'uuid');
      assert.deepEqual(await database.oneFirst(sql.type(texts)`select ${members} as texts`), list);
    }
  });

  it('of int8 beyond exact numbers are an error, also in a list', async () => {
    await assert.rejects(arrived('{1,9007199254740993}'), /not a safe integer: 9007199254740993/);
    await assert.rejects(
      database.oneFirst(sql.typeAlias('nothing')`select 9007199254740993::int8`),
      /not a safe integer/,
    );
  });
});

describe('a connection whose end takes long', () => {
  it('does not end the process by an error that comes after the pool has ended', async () => {
    const own = await createTestDatabase();
    const { url } = own;
    const { hostname, port } = new URL(url);
    const line = await startFaultyLine({ host: hostname, port: Number(port) });
    const lined = new URL(url);
    lined.port = String(line.port);
    const superuser = new Client({ connectionString: asSuperuser(url) });
    await superuser.connect();
    const database = await createDatabase(lined.href, { maxPoolSize: 1, onError: () => {} });
    const pidRow = row(Type.Object({ pid: Type.Integer() }));
    const pid = await database.oneFirst(sql.type(pidRow)`select pg_backend_pid() as pid`);
    // Postgres does not hear that the connection ends, and ends it itself.
    line.damage({ kind: 'deaf' });
    await database.end();
    await superuser.query('select pg_terminate_backend($1, 10000)', [pid]);
    line.mend();
    // What Postgres said before arrives first.
    const later = new Client({ connectionString: lined.href });
    await later.connect();
    await later.end();
    await superuser.end();
    await line.stop();
    await own.drop();
  });
});
