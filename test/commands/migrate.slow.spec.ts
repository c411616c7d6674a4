/** `farebox migrate` on empty servers: the schema, and the search attributes of a namespace. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Connection } from '@temporalio/client';
import { Client } from 'pg';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes.ts';
import { countWaiting } from '../support/row-locks.ts';
import {
  asSuperuser,
  connectTemporal,
  createTestDatabase,
  farebox,
  ourProgram,
  type TestDatabase,
  until,
} from '../support/stack.ts';

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
    connection = await connectTemporal();
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

  for (const [what, hold] of Object.entries({
    'waits for another migration': `select pg_advisory_xact_lock(hashtext('farebox.migrate'))`,
    'is at work': 'lock table farebox.functions',
  })) {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      it(`ends on ${signal} while it ${what}, leaves no statement behind, and can run again`, async () => {
        const { DATABASE_URL = '' } = env;
        const other = new Client({ connectionString: asSuperuser(DATABASE_URL) });
        await other.connect();
        try {
          await other.query('begin');
          await other.query(hold);
          const waiting = () => countWaiting(other, 'farebox migrate');
          const stopIt = async () => {
            const run = spawn(process.execPath, [ourProgram(), 'migrate'], {
              env: { PATH: process.env['PATH'], DATABASE_URL },
              stdio: ['ignore', 'ignore', 'pipe'],
            });
            const ended = once(run, 'exit');
            const said = text(run.stderr);
            await until(async () => run.exitCode !== null || (await waiting()));
            run.kill(signal);
            assert.deepEqual(await ended, [1, null]);
            return said;
          };
          // On a busy machine, it may give up the lock of a table, after ten seconds, before it gets the signal.
          const said = await until(async () => {
            const now = await stopIt();
            return !now.includes('lock timeout') && now;
          });
          assert.match(said, new RegExp(`stopped by ${signal}; run it again\\n$`));
          await until(async () => (await waiting()) === 0);
        } finally {
          await other.end();
        }
        assert.match(await farebox(['migrate'], { env: { DATABASE_URL } }), /up to date/);
      });
    }
  }

  it('says that Temporal is down and the database migrated, and builds that Temporal is down', async () => {
    const away = { env: { ...env, TEMPORAL_ADDRESS: '127.0.0.1:9' } };
    await assert.rejects(
      farebox(['migrate'], away),
      /Temporal did not respond at 127\.0\.0\.1:9, .*The database is migrated; run farebox migrate again/,
    );
    await assert.rejects(farebox(['builds'], away), /Temporal did not respond at 127\.0\.0\.1:9\./);
  });

  it('says that PostgreSQL is down, as other commands do', async () => {
    for (const command of [['migrate'], ['account', 'list']]) {
      await assert.rejects(
        farebox(command, { env: { DATABASE_URL: 'postgres://farebox:x@127.0.0.1:9/farebox' } }),
        /PostgreSQL cannot be reached at the address in DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:9\n/,
      );
    }
  });

  it('skips Temporal when no address is set', async () => {
    const { DATABASE_URL = '' } = env;
    assert.match(await farebox(['migrate'], { env: { DATABASE_URL } }), /up to date/);
  });
});
