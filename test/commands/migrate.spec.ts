/** `farebox migrate` on empty servers: the schema, and the search attributes of a namespace. */
import assert from 'node:assert/strict';
import { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes.ts';
import { createTestDatabase, farebox, until, type TestDatabase } from '../support/stack.ts';

/** Numbers of `temporal.api.enums.v1.IndexedValueType`. */
const TYPES: Readonly<Record<number, string>> = { 2: 'Keyword', 4: 'Double', 5: 'Bool' };
const DAY_SECONDS = 86_400;

describe('farebox migrate', () => {
  const namespace = `test-migrate-${process.pid}`;
  let database: TestDatabase;
  let connection: Connection;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    database = await createTestDatabase();
    const address = process.env['TEST_TEMPORAL_ADDRESS'] ?? '';
    connection = await Connection.connect({ address });
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: DAY_SECONDS as never },
    });
    await until(() =>
      connection.workflowService.describeNamespace({ namespace }).then(
        () => true,
        () => false,
      ),
    );
    env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    };
  });
  after(async () => {
    await connection?.close();
    await database?.drop();
  });

  async function registered(): Promise<Record<string, string | undefined>> {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace,
    });
    const found = Object.entries(customAttributes ?? {});
    return Object.fromEntries(found.map(([name, type]) => [name, TYPES[type]]));
  }

  it('registers every search attribute with its type, and can run again', async () => {
    const before = await registered();
    for (const name of Object.keys(SEARCH_ATTRIBUTES)) assert.equal(before[name], undefined);
    for (let n = 0; n < 2; n += 1) {
      assert.match(await farebox(['migrate'], { env }), /The database is up to date/);
      const after = await registered();
      for (const [name, type] of Object.entries(SEARCH_ATTRIBUTES)) assert.equal(after[name], type);
    }
  });

  it('skips Temporal when no address is set', async () => {
    const { DATABASE_URL = '' } = env;
    assert.match(await farebox(['migrate'], { env: { DATABASE_URL } }), /up to date/);
  });
});
