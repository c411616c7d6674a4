/** Commands on a database that nobody has migrated. */
import assert from 'node:assert/strict';
import {
  createEmptyDatabase,
  farebox,
  testEnvironment,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';

const COMMANDS = [
  'account list',
  'account show you@example.com',
  'account create --email you@example.com',
  'account adjust you@example.com 1 --reason Gift',
  'account sign-in-link you@example.com',
  'key list you@example.com',
  'key revoke key_01a1fd6455e57aa3b31e95f51a48130e',
  'budget list you@example.com',
  'webhook list you@example.com',
  'audit',
  'archive --month 2020-01',
  'rollup rebuild',
  'refund tu_01a1fd6455e57aa3b31e95f51a48130e',
];

const SAYS = 'This database has no Farebox schema: run `farebox migrate`, or check DATABASE_URL.\n';

describe('a database without a schema', () => {
  let database: TestDatabase;
  let env: Environment;

  before(async () => {
    database = await createEmptyDatabase();
    env = await testEnvironment(database);
  });
  after(() => database?.drop());

  for (const command of COMMANDS) {
    it(`makes farebox ${command} say how to get one`, async () => {
      await assert.rejects(farebox(command.split(' '), { env }), {
        code: 1,
        stderr: `farebox: ${SAYS}`,
      });
    });
  }

  for (const command of ['doctor', 'reconcile']) {
    it(`makes farebox ${command} say that it could not check, and why`, async () => {
      await assert.rejects(farebox([command], { env }), {
        code: 2,
        stderr: `farebox: could not check: ${SAYS}`,
      });
    });
  }
});
