/** What `/readyz` says of Temporal, which charges do not need. */
import assert from 'node:assert/strict';
import { call } from '../support/http.ts';
import {
  createTestDatabase,
  startApi,
  testEnvironment,
  until,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';

describe('readiness', () => {
  let database: TestDatabase;
  let env: Environment;

  before(async () => {
    database = await createTestDatabase();
    const stripe = {
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
    };
    env = { ...(await testEnvironment(database)), ...stripe };
  });
  after(() => database?.drop());

  for (const [state, changes] of [
    ['up', {}],
    ['no_namespace', { TEMPORAL_NAMESPACE: 'absent' }],
    ['down', { TEMPORAL_ADDRESS: '127.0.0.1:9' }],
  ] as const) {
    it(`is ready for charges while Temporal is ${state}, and says so`, async () => {
      const api = await startApi({ env: { ...env, ...changes } });
      try {
        // On a busy machine, either may answer a probe too late.
        const { status, body } = await until(async () => {
          const answer = await call(api, 'GET', '/readyz');
          const { dependencies } = answer.body as { dependencies: Record<string, string> };
          const { postgres, temporal } = dependencies;
          return postgres === 'up' && temporal === state && answer;
        });
        const expected = { postgres: 'up', clock: 'right', temporal: state };
        assert.deepEqual([status, body], [200, { status: 'ready', dependencies: expected }]);
      } finally {
        await api.stop();
      }
    });
  }
});
