/** PRODUCTION=true: a process that would be unsafe with real money does not start, and says why. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readConfig, readLedgerConfig } from '../../src/config.ts';
import { farebox } from '../support/stack.ts';

const RANDOM = randomBytes(32).toString('hex');

const SAFE = {
  PRODUCTION: 'true',
  DATABASE_URL: 'postgres://postgres/farebox',
  TEMPORAL_ADDRESS: 'temporal:7233',
  BASE_URL: 'https://billing.example.com',
  MASTER_SECRET: RANDOM,
  STRIPE_SECRET_KEY: 'sk_live_1',
  STRIPE_WEBHOOK_SECRET: 'whsec_1',
} as const;

const UNSAFE: readonly (readonly [string, string | undefined, RegExp])[] = [
  ['BASE_URL', undefined, /BASE_URL must begin with https/],
  ['BASE_URL', 'http://billing.example.com', /BASE_URL must begin with https/],
  ['BASE_URL', 'http://127.0.0.1:8080', /BASE_URL must begin with https/],
  ['CONSOLE_URL', 'http://console.example.com', /CONSOLE_URL must begin with https/],
  ['STRIPE_WEBHOOK_SECRET', undefined, /STRIPE_WEBHOOK_SECRET must be set/],
  ['STRIPE_WEBHOOK_SECRET', '', /STRIPE_WEBHOOK_SECRET must be set/],
  ['STRIPE_WEBHOOK_SECRET', 'secret', /STRIPE_WEBHOOK_SECRET must be set/],
  ['STRIPE_API_BASE', 'http://127.0.0.1:12111', /STRIPE_API_BASE must not be set/],
  ['STRIPE_API_BASE', 'https://simulator.example.com', /STRIPE_API_BASE must not be set/],
  ['STRIPE_API_BASE', 'https://api.stripe.com.example.com', /STRIPE_API_BASE must not be set/],
  ['DEV_MAIL', 'true', /DEV_MAIL must not be true/],
  ['ALLOW_PRIVATE_ENDPOINTS', 'true', /ALLOW_PRIVATE_ENDPOINTS must not be true unless SIGN_UP/],
  ['SAVE_TEST_CARD', 'true', /SAVE_TEST_CARD must not be true/],
  ['DEFAULT_CONSENT_CEILING', '500', /DEFAULT_CONSENT_CEILING must not be set: nobody has agreed/],
  ['MASTER_SECRET', 'change-me-change-me-change-me-change-me', /MASTER_SECRET looks like/],
  ['MASTER_SECRET', 'your-secret-key-base-hex-64-0123456789', /MASTER_SECRET looks like/],
  ['MASTER_SECRET', '0'.repeat(64), /MASTER_SECRET looks like/],
  ['MASTER_SECRET', `2:${RANDOM},1:${'0'.repeat(64)}`, /MASTER_SECRET looks like/],
  ['MASTER_SECRET', `2:${RANDOM},1-retired:${'0'.repeat(64)}`, /MASTER_SECRET looks like/],
  ['MASTER_SECRET', undefined, /MASTER_SECRET is not set/],
  ['MASTER_SECRET', '', /MASTER_SECRET is not set/],
  ['DATABASE_URL', 'postgres://postgres:postgres@db/farebox', /password in DATABASE_URL/],
  ['DATABASE_URL', 'postgres://billing:billing@db/farebox', /password in DATABASE_URL/],
  ['DATABASE_URL', 'postgres://billing:change-me@db/farebox', /password in DATABASE_URL/],
];

describe('production mode', () => {
  it('accepts safe settings', () => {
    assert.equal(readConfig(SAFE).baseUrl, SAFE.BASE_URL);
  });

  for (const [name, value, sentence] of UNSAFE) {
    it(`refuses ${name}=${value ?? '(not set)'}`, () => {
      assert.throws(() => readConfig({ ...SAFE, [name]: value }), sentence);
    });
  }

  it('accepts private endpoints where only invited people sign up', () => {
    for (const SIGN_UP of ['invited', 'closed']) {
      const env = { ...SAFE, ALLOW_PRIVATE_ENDPOINTS: 'true', SIGN_UP };
      assert.ok(readConfig(env).allowPrivateEndpoints);
    }
    for (const SIGN_UP of ['open', '']) {
      const env = { ...SAFE, ALLOW_PRIVATE_ENDPOINTS: 'true', SIGN_UP };
      assert.throws(() => readConfig(env), /unless SIGN_UP is invited or closed/);
    }
  });

  it('accepts any random secret of the recommended length', () => {
    for (let index = 0; index < 1_000; index += 1) {
      readConfig({ ...SAFE, MASTER_SECRET: randomBytes(32).toString('hex') });
    }
  });

  it('requires nothing when it is off', () => {
    const { PRODUCTION: _, BASE_URL: __, ...settings } = SAFE;
    assert.equal(readConfig(settings).baseUrl, 'http://127.0.0.1:8080');
  });

  it('refuses assumed consent in commands that create accounts', () => {
    const { PRODUCTION, DATABASE_URL } = SAFE;
    const env = { PRODUCTION, DATABASE_URL, DEFAULT_CONSENT_CEILING: '500' };
    assert.throws(() => readLedgerConfig(env), /DEFAULT_CONSENT_CEILING must not be set/);
  });

  it('stops the start of an API and of a worker with that sentence', async () => {
    for (const command of ['api', 'worker']) {
      const env = { ...SAFE, BASE_URL: 'http://billing.example.com' };
      await assert.rejects(farebox([command], { env }), /farebox: PRODUCTION is true, so BASE_URL/);
    }
  });
});
