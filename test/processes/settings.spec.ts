/** Intervals and secrets from the environment: their defaults, and one clear error for an invalid value. */
import assert from 'node:assert/strict';
import { readApiConfig, readConfig } from '../../src/config.ts';
import { ConfigError, withoutEmpty } from '../../src/read-setting.ts';
import { SECRET_SETTINGS } from '../../src/secret-files.ts';
import { choosePort } from '../support/ports.ts';
import { createTestDatabase, farebox, startApiProcess, testEnvironment } from '../support/stack.ts';
import { read } from '../tree/sources.ts';

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
  [
    'LOG_LEVEL',
    'verbose',
    /^LOG_LEVEL must be trace, debug, info, warn, error, fatal, or silent, not "verbose"$/,
  ],
  ['SIGN_UP', 'all', /^SIGN_UP must be open, invited, or closed, not "all"$/],
  ['WORKER_VERSIONING', 'true', /^WORKER_VERSIONING must be on or off, not "true"$/],
  ['STRIPE_TAX', 'on', /^STRIPE_TAX must be off or automatic, not "on"$/],
  ['KEY_PREFIX', 'Fare', /^KEY_PREFIX must be 2 to 12 lowercase letters, not "Fare"$/],
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
  ['TEMPORAL_ADDRESS', '127.0.0.1:99999', /must be host:port/],
  ['TEMPORAL_ADDRESS', '127.0.0.1:0', /must be host:port/],
  ['TEMPORAL_TLS', 'yes', /true or false/],
  ...[
    'TEMPORAL_CONFIG_FILE',
    'TEMPORAL_TLS_CLIENT_CERT_PATH',
    'TEMPORAL_TLS_CLIENT_KEY_PATH',
    'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  ].map(
    (name) =>
      [name, '/nowhere/file', / names a file that cannot be read: ENOENT.*nowhere/] as const,
  ),
  ['TEMPORAL_CONFIG_FILE', '/', / names a file that cannot be read: EISDIR/],
  [
    'STRIPE_SECRET_KEY',
    'pk_live_1',
    /must be a secret or restricted key of Stripe: .* rk_test_\.\.\. or rk_live_\.\.\.$/,
  ],
  ['STRIPE_WEBHOOK_SECRET', ',', /must be whsec_/],
  ['BASE_URL', 'https://billing.example.com/pay', /no path, user, query or fragment/],
  ['BASE_URL', 'https://billing.example.com/pay/', /no path, user, query or fragment/],
  ['BASE_URL', 'https://pay.example.com/?a=b', /no path, user, query or fragment/],
  ['BASE_URL', 'https://pay.example.com/#a', /no path, user, query or fragment/],
  ['BASE_URL', 'https://user:password@pay.example.com', /no path, user, query or fragment/],
  ['CLIENT_ADDRESS_HEADER', 'X-Forwarded-For ', /must be the name of a header/],
  ['CLIENT_ADDRESS_HEADER', 'X-Forwarded-For: 1', /must be the name of a header/],
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
];

describe('the settings of a process', () => {
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

describe('an empty setting', () => {
  /** In rows of docs/settings.md, a few of which list two. */
  const empty = Object.fromEntries(
    [...read('docs/settings.md').matchAll(/^\| (`[A-Z_]+`.*?) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => [name, '']),
    ),
  );

  it('is an unset one in every process, whichever setting it is', async () => {
    assert.ok(Object.keys(empty).length > 60);
    const database = await createTestDatabase();
    try {
      const { TEMPORAL_ADDRESS, MASTER_SECRET } = await testEnvironment(database);
      const required = { ...REQUIRED, DATABASE_URL: database.url, TEMPORAL_ADDRESS, MASTER_SECRET };
      const files = Object.fromEntries(SECRET_SETTINGS.map((name) => [`${name}_FILE`, '']));
      const env = { ...empty, ...files, ...required };
      const api = await startApiProcess({ env: { ...env, PORT: String(await choosePort()) } });
      try {
        assert.equal((await fetch(`${api.url}/healthz`)).status, 200);
      } finally {
        await api.stop();
      }
      assert.equal(await farebox(['account', 'list', '--json'], { env }), '');
      const half = { ...env, STRIPE_SECRET_KEY: '' };
      await assert.rejects(
        farebox(['start'], { env: half }),
        /STRIPE_SECRET_KEY is not: simulated/,
      );
    } finally {
      await database.drop();
    }
  });

  it('has the default of an unset one', () => {
    assert.deepEqual(
      readApiConfig({ ...withoutEmpty(empty), ...REQUIRED }),
      readApiConfig(REQUIRED),
    );
  });

  for (const name of Object.keys(REQUIRED)) {
    it(`is missed where the setting is required: ${name}`, async () => {
      const env = { ...empty, ...REQUIRED, [name]: '' };
      await assert.rejects(farebox(['api'], { env }), new RegExp(`${name} is not set`));
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

function headersOf(text: string) {
  return readConfig({
    ...REQUIRED,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: text,
  });
}

describe('the headers of traces', () => {
  for (const text of ['garbage', 'authorization:Bearer secret', 'a=b,secret', '=secret', 'a=50%']) {
    it(`are not "${text}", and the error shows no secret`, () => {
      assert.throws(
        () => headersOf(text),
        /^ConfigError: OTEL_EXPORTER_OTLP_HEADERS must be name=value, or several with commas, .* such as authorization=Bearer%20\.\.\.$/,
      );
    });
  }

  for (const text of ['authorization=Bearer%20a', 'a=b, c=d==,', 'x-key=']) {
    it(`can be "${text}"`, () => {
      assert.ok(headersOf(text).traces);
    });
  }
});

describe('an address at which a process cannot listen', () => {
  for (const [settings, message] of [
    [
      { HOST: 'nonsense.invalid' },
      /^farebox: cannot listen at HOST nonsense\.invalid, PORT \d+: /m,
    ],
    [{ HOST: '192.0.2.1' }, /^farebox: cannot listen at HOST 192\.0\.2\.1, PORT \d+: /m],
    [
      { HOST: '192.0.2.1', METRICS_PORT: '9464' },
      /^farebox: cannot listen at HOST 192\.0\.2\.1, METRICS_PORT 9464: .*EADDRNOTAVAIL/m,
    ],
  ] as const) {
    it(`is named by its settings: ${Object.keys(settings).join()}, ${settings.HOST}`, async () => {
      const database = await createTestDatabase();
      try {
        const env = {
          ...REQUIRED,
          ...(await testEnvironment(database)),
          PORT: String(await choosePort()),
        };
        await assert.rejects(farebox(['api'], { env: { ...env, ...settings } }), {
          stderr: message,
        });
      } finally {
        await database.drop();
      }
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

function secretsIn(text: string) {
  return readConfig({ ...REQUIRED, MASTER_SECRET: text }).masterSecrets;
}

/** The numbers of the secrets. */
function numbersIn(text: string) {
  const { active, all, trusted } = secretsIn(text);
  return { active, all: [...all.keys()], trusted: [...trusted.keys()] };
}

describe('the master secrets', () => {
  const [OLD, NEW] = ['a'.repeat(32), 'b'.repeat(32)];

  it('are one, which has the number 1, or a list whose first one signs', () => {
    assert.deepEqual(numbersIn(OLD), { active: 1, all: [1], trusted: [1] });
    assert.deepEqual(numbersIn(`7:${OLD}`), { active: 7, all: [7], trusted: [7] });
    const announced = numbersIn(`1:${OLD},2:${NEW}`);
    assert.deepEqual(announced, { active: 1, all: [1, 2], trusted: [1, 2] });
    const rotated = numbersIn(`2:${NEW},1:${OLD}`);
    assert.deepEqual(rotated, { active: 2, all: [2, 1], trusted: [2, 1] });
    const retired = numbersIn(`2:${NEW},1-retired:${OLD}`);
    assert.deepEqual(retired, { active: 2, all: [2, 1], trusted: [2] });
    assert.deepEqual([...secretsIn(`2:${NEW},1:${OLD}`).all.values()], [NEW, OLD]);
  });

  const REFUSED: readonly (readonly [what: string, text: string, message: RegExp])[] = [
    ['a retired one that signs', `2-retired:${NEW},1:${OLD}`, /the first secret signs/],
    ['only retired ones', `1-retired:${OLD}`, /the first secret signs/],
    ['a number twice', `1:${OLD},1:${NEW}`, /two secrets have the same number/],
    ['a number twice, retired', `1:${NEW},1-retired:${OLD}`, /two secrets have the same number/],
    ['a number twice, with zeros', `01:${NEW},1:${OLD}`, /two secrets have the same number/],
    ['a secret twice', `2:${OLD},1-retired:${OLD}`, /two numbers have the same secret/],
    ['a number without a secret', `2:${NEW},1:`, /secret 2 of the list must be <number>:<secret>/],
    ['a list without numbers', `${NEW},${OLD}`, /secret 1 of the list must be/],
    ['a secret without a number', `2:${NEW},${OLD}`, /secret 2 of the list must be/],
    ['a comma at the end', `2:${NEW},`, /secret 2 of the list must be/],
    ['a space in the list', `2:${NEW}, 1:${OLD}`, /secret 2 of the list must be/],
    ['retired misspelled', `2:${NEW},1-retierd:${OLD}`, /secret 2 of the list must be/],
    ['retired misspelled alone', `1-retierd:${OLD}`, /secret 1 of the list must be/],
    ['a number that is too large', `10000:${OLD}`, /secret 1 of the list must be/],
    ['a colon in a secret', `1:${OLD}:2`, /a secret must not contain a comma, colon or space/],
    ['a short one', 'short', /the secret must have at least 32 characters/],
    ['a short one in the list', `2:${NEW},1:short`, /secret number 1 must have at least 32/],
  ];
  for (const [what, text, message] of REFUSED) {
    it(`refuse ${what}, with an error that shows no secret`, () => {
      assert.throws(
        () => secretsIn(text),
        (error) => {
          assert.ok(error instanceof ConfigError);
          assert.match(error.message, /^MASTER_SECRET: /);
          assert.match(error.message, message);
          return !error.message.includes(OLD) && !error.message.includes(NEW);
        },
      );
    });
  }
});
