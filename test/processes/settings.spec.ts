/** Intervals and secrets from the environment: their defaults, and one clear error for an invalid value. */
import assert from 'node:assert/strict';
import { readApiConfig, readConfig } from '../../src/config.ts';
import { ConfigError } from '../../src/read-setting.ts';

const REQUIRED = {
  DATABASE_URL: 'postgres://postgres/farebox',
  TEMPORAL_ADDRESS: 'temporal:7233',
  MASTER_SECRET: '0123456789abcdef0123456789abcdef',
  STRIPE_SECRET_KEY: 'sk_test_1',
  STRIPE_WEBHOOK_SECRET: 'whsec_1',
};

const INVALID: readonly (readonly [string, string, RegExp])[] = [
  ['DATABASE_URL', 'postgres://host/farebox?pooler=session', /pooler must be transaction/],
  [
    'DATABASE_URL',
    'postgres://farebox:p@ss#word@host/farebox',
    /^DATABASE_URL must be a URL such as/,
  ],
  ['DATABASE_URL', 'postgres://farebox:50%off@host/farebox', /^DATABASE_URL must be a URL such as/],
  ['DATABASE_URL', 'host=db password=secret', /^DATABASE_URL must be a URL such as/],
  ['DATABASE_URL', 'mysql://host/farebox', /^DATABASE_URL must be a URL such as/],
  ['PRODUCTION', '1', /^PRODUCTION must be true or false, not "1"/],
  ['PRODUCTION', 'TRUE', /^PRODUCTION must be true or false/],
  ['ALLOW_PRIVATE_ENDPOINTS', 'yes', /true or false/],
  ['SHARE_PORT', 'on', /true or false/],
  ['SAVE_TEST_CARD', '1', /true or false/],
  ['DEV_MAIL', '1', /true or false/],
  ['STEP_RETRY_MS', '9', /integer from 10 to 60000/],
  ['TOP_UP_ANSWER_MS', '1e3', /integer from 100 to 60000/],
  ['STRIPE_TIMEOUT_MS', '15000', /integer from 100 to 12000/],
  ['RELAY_LEASE_MS', '-1', /integer from 1000 to 600000/],
  ['TEMPORAL_ADDRESS', 'temporal', /must be host:port/],
  ['TEMPORAL_ADDRESS', 'http://temporal:7233', /must be host:port/],
  ['TEMPORAL_TLS', 'yes', /true or false/],
  [
    'STRIPE_SECRET_KEY',
    'pk_live_1',
    /must be a secret or restricted key of Stripe: .* rk_test_\.\.\. or rk_live_\.\.\.$/,
  ],
  ['STRIPE_WEBHOOK_SECRET', ',', /must be whsec_/],
  ['BASE_URL', 'https://pay.example.com/?a=b', /no user, query or fragment/],
  ['BASE_URL', 'https://pay.example.com/#a', /no user, query or fragment/],
  ['BASE_URL', 'https://user:password@pay.example.com', /no user, query or fragment/],
  ['CLIENT_ADDRESS_HEADER', 'X-Forwarded-For ', /must match/],
  ['CLIENT_ADDRESS_HEADER', 'X-Forwarded-For: 1', /must match/],
  ['SMTP_URL', 'smtps://', /^SMTP_URL must be a URL such as/],
  ['SMTP_URL', 'smtps:///mail', /^SMTP_URL must be a URL such as/],
  ['SMTP_URL', 'smtp://farebox:1#2@mail.example.com', /percent-encoded, such as %23 for #$/],
  ['SMTP_URL', 'smtp://mail.example.com:99999', /^SMTP_URL must be a URL such as/],
  ['MAIL_FROM', 'nobody', /^MAIL_FROM must be an address/],
  ['MAIL_FROM', 'Farebox <nobody>', /^MAIL_FROM must be an address/],
  ['MAIL_FROM', 'Farebox <a@example.com', /^MAIL_FROM must be an address/],
  ['MAIL_FROM', 'a@example.com, b@example.com', /^MAIL_FROM must be an address/],
  ['RECONCILE_REVIEW_MS', '2000, 5000', /integers from 1 to 999999 with commas/],
  ['RECONCILE_REVIEW_MS', '0', /integers from 1 to 999999 with commas/],
  ['RECONCILE_REVIEW_MS', '', /integers from 1 to 999999 with commas/],
];

describe('the settings of a process', () => {
  it('take an empty HOST for none, not for every address', () => {
    assert.equal(readConfig({ ...REQUIRED, HOST: '' }).host, '127.0.0.1');
  });

  it('take an empty task queue for none', () => {
    const { temporal } = readConfig({ ...REQUIRED, TEMPORAL_TASK_QUEUE: '' });
    assert.equal(temporal.taskQueue, 'farebox');
  });

  it('have defaults', () => {
    const { stepRetryMs, topUpAnswerMs, relayLeaseMs, reconcileReviewMs, stripe } =
      readConfig(REQUIRED);
    assert.deepEqual(
      [stepRetryMs, topUpAnswerMs, relayLeaseMs, stripe.timeoutMs, reconcileReviewMs],
      [1_000, 10_000, 15_000, 10_000, [2_000, 5_000, 15_000]],
    );
  });

  it('can be a list of pauses', () => {
    const { reconcileReviewMs } = readConfig({ ...REQUIRED, RECONCILE_REVIEW_MS: '300,1000' });
    assert.deepEqual(reconcileReviewMs, [300, 1_000]);
  });

  for (const [name, value, range] of INVALID) {
    it(`are refused as ${name}=${value}`, () => {
      assert.throws(
        () => readConfig({ ...REQUIRED, [name]: value }),
        (error: Error) =>
          error instanceof ConfigError && error.message.includes(name) && range.test(error.message),
      );
    });
  }
});

describe('the sender of mails', () => {
  for (const from of [
    'Farebox <no-reply@localhost>',
    '"Pay, Inc." <billing@example.com>',
    'Größe & Co. <billing+a@example.com>',
    'billing@example.com',
  ]) {
    it(`can be ${from}`, () => {
      assert.equal(readConfig({ ...REQUIRED, MAIL_FROM: from }).mail.from, from);
    });
  }

  it('goes to a server whose password has a percent sign, and over options of TLS', () => {
    const url = 'smtp://a@b.com:50%off@mail.example.com:587?tls.rejectUnauthorized=false';
    assert.equal(readConfig({ ...REQUIRED, SMTP_URL: url }).mail.smtpUrl, url);
  });
});

describe('the part of traces that is recorded', () => {
  const env = {
    ...REQUIRED,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_TRACES_SAMPLER: 'traceidratio',
  };

  for (const text of [' ', '1.1', '-0.1', 'half']) {
    it(`is not "${text}"`, () => {
      assert.throws(
        () => readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: text }),
        /^ConfigError: OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1$/,
      );
    });
  }
});

describe('the port for metrics', () => {
  it('is another one than that of the API, even the default', () => {
    for (const env of [{ METRICS_PORT: '8080' }, { PORT: '9464', METRICS_PORT: '9464' }]) {
      assert.throws(
        () => readApiConfig({ ...REQUIRED, ...env }),
        /^ConfigError: METRICS_PORT must/,
      );
    }
  });

  it('may be that of the API in a worker, which has no other', () => {
    assert.equal(readConfig({ ...REQUIRED, METRICS_PORT: '8080' }).metricsPort, 8080);
  });
});

describe('the signing secrets of the webhook', () => {
  it('are a list, in which a comma at the end is no secret', () => {
    const env = { ...REQUIRED, STRIPE_WEBHOOK_SECRET: 'whsec_1, whsec_2,' };
    assert.deepEqual(readConfig(env).stripe.webhookSecrets, ['whsec_1', 'whsec_2']);
  });
});
