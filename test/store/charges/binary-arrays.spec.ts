/** Arrays in Postgres' binary format: all values are read back unchanged. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { Client } from 'pg';
import {
  int2Array,
  int4Array,
  int8Array,
  int8ArrayOfHex,
  textArray,
  uuidArray,
} from '../../../src/store/charges/binary-arrays.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';

const lists = <T>(member: fc.Arbitrary<T>) => fc.array(member, { maxLength: 50 });
const anyHex = fc
  .bigInt({ min: 0n, max: 2n ** 64n - 1n })
  .map((bits) => bits.toString(16).padStart(16, '0'));
const anyText = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'));

describe('arrays in binary', () => {
  let testDatabase: TestDatabase;
  let client: Client;

  before(async () => {
    testDatabase = await createTestDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
  });

  after(async () => {
    await client.end();
    await testDatabase.drop();
  });

  function comeOut<T extends string | number | null>(
    type: string,
    encode: (values: readonly T[]) => Buffer,
    values: fc.Arbitrary<T[]>,
    textOf: (value: NonNullable<T>) => string = String,
  ): void {
    it(`of ${type} by ${encode.name} are read back unchanged`, async () => {
      await fc.assert(
        fc.asyncProperty(values, async (list) => {
          const { rows } = await client.query<{ list: (string | null)[] }>(
            `select $1::${type}[]::text[] as list`,
            [encode(list)],
          );
          const expected = list.map((value) => (value === null ? null : textOf(value)));
          assert.deepEqual(rows, [{ list: expected }]);
        }),
      );
    });
  }

  comeOut('int2', int2Array, lists(fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })));
  comeOut('int4', int4Array, lists(fc.integer()));
  comeOut('int8', int8Array, lists(fc.maxSafeInteger()));
  comeOut('int8', int8ArrayOfHex, lists(fc.option(anyHex)), (hex) =>
    BigInt.asIntN(64, BigInt(`0x${hex}`)).toString(),
  );
  comeOut('uuid', uuidArray, lists(fc.uuid()));
  comeOut('text', textArray, lists(fc.option(anyText)));

  it('refuse values outside their type', () => {
    assert.throws(() => int2Array([2 ** 15]), RangeError);
    assert.throws(() => int4Array([2 ** 31]), RangeError);
    assert.throws(() => int8Array([2 ** 64]), RangeError);
  });
});
