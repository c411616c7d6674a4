/** Values as they arrive from the database. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { Type } from 'typebox';
import { createDatabase, row, sql, type Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

const numbers = row(
  Type.Object({ numbers: Type.Array(Type.Union([Type.Integer(), Type.Null()])) }),
);

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

  it('of int8 beyond exact numbers are an error, also in a list', async () => {
    await assert.rejects(arrived('{1,9007199254740993}'), /not a safe integer: 9007199254740993/);
    await assert.rejects(
      database.oneFirst(sql.typeAlias('nothing')`select 9007199254740993::int8`),
      /not a safe integer/,
    );
  });
});
