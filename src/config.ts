/**
 * The environment, read once into one frozen, checked Config. Only entry points touch process.env.
 * docs/settings.md lists every setting.
 */
import { readFileSync } from 'node:fs';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { DAY_MS, HOUR_MS } from './domain/durations.ts';
import type { MasterSecrets } from './domain/master-secrets.ts';
import type { Micros } from './domain/money.ts';
import { REVIEW_AFTER_MS, STEP_RETRY_MS } from './domain/retries.ts';
import { DEFAULT_TASK_QUEUE } from './domain/task-queues.ts';
import { CHECKOUT_MINUTES_MAX, CHECKOUT_MINUTES_MIN } from './domain/checkout.ts';
import { WEBHOOK_RETRY_MS } from './domain/webhook-delivery.ts';
import {
  ConfigError,
  databaseUrl,
  dollars,
  headerName,
  hostAndPort,
  integer,
  isTrue,
  keyPrefix,
  milliseconds,
  mailServer,
  oneOf,
  readBaseUrl,
  readMasterSecrets,
  refuseUnreadHeaders,
  required,
  sender,
  signingSecrets,
  stripeKey,
  url,
  type Environment,
} from './read-setting.ts';
import { refuseAssumedConsent, refuseUnsafe } from './refuse-unsafe.ts';

/** The ledger's settings: enough for commands that only need Postgres. */
export interface LedgerConfig {
  readonly databaseUrl: string;
  readonly keyPrefix: string;
  readonly ledgerCount: number;
  /** The monthly amount (UTC) that a new account consents to have charged to its card. None with real money. */
  readonly consentCeilingMicros: Micros | undefined;
  readonly logLevel: string;
}

type TemporalConnectionOptions = ReturnType<typeof loadClientConnectConfig>['connectionOptions'];

export interface TemporalConfig {
  readonly address: string;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Whether workers tell Temporal which build of the workflow code they run, so that runs stay on theirs. */
  readonly isVersioned: boolean;
  /** AES-256 keys of payloads, by number. The first encrypts; all decrypt. Undefined: payloads are not encrypted. */
  readonly payloadKeys: ReadonlyMap<number, Uint8Array> | undefined;
  /** Whether to use TLS, or with which certificates and server name. */
  readonly tls: NonNullable<TemporalConnectionOptions['tls']>;
  /** Headers of every call. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly apiKey: string | undefined;
  /** The API key as it is now in the file that holds it; undefined if it is in no file. */
  readonly readApiKey: (() => string | undefined) | undefined;
  /** Where operators look at workflows; undefined: links name ids alone. */
  readonly uiUrl: string | undefined;
}

export interface StripeConfig {
  readonly secretKey: string;
  /** The API's address when it is not Stripe's own, such as the simulator or a test double. */
  readonly apiBase: URL | undefined;
  /** All accepted signing secrets: more than one during a rotation. */
  readonly webhookSecrets: readonly string[];
  /** How long one call waits for an answer. */
  readonly timeoutMs: number;
  /** How many steps that call Stripe may start per second, over all workers. */
  readonly stepsPerSecond: number;
  /** Whether Stripe adds tax to top-ups; undefined: no tax. */
  readonly tax: TaxConfig | undefined;
}

export interface TaxConfig {
  /** Stripe's tax code of a balance, such as `txcd_10000000`; undefined: the one preset in Stripe's dashboard. */
  readonly code: string | undefined;
}

/** The sampler decides which traces are recorded. Where they are sent, OpenTelemetry's packages read themselves. */
export interface TracesConfig {
  readonly sampler: (typeof SAMPLERS)[number];
  /** The part of traces that a ratio sampler records, 0 to 1. */
  readonly ratio: number;
}

export interface MailConfig {
  /** If undefined, mails are kept or dropped. */
  readonly smtpUrl: string | undefined;
  readonly from: string;
  /** Whether mails are kept and shown at /dev/mail instead of being sent: in development, never in public. */
  readonly isKept: boolean;
}

const SIGN_UPS = ['open', 'invited', 'closed'] as const;
export type SignUp = (typeof SIGN_UPS)[number];

export interface ScheduleConfig {
  /** How often earnings are moved from the tails into sums. */
  readonly rollUpEverySeconds: number;
  /** How often our records are compared with Stripe's. */
  readonly reconcileEverySeconds: number;
}

/** Enough to add a webhook endpoint. */
export interface EndpointConfig {
  readonly masterSecrets: MasterSecrets;
  /** Whether agents and webhook endpoints may be on loopback and private addresses: never where anybody may sign up. */
  readonly allowPrivateEndpoints: boolean;
}

export interface Config extends LedgerConfig, ScheduleConfig, EndpointConfig {
  readonly host: string;
  readonly port: number;
  /** The port on which Prometheus reads this process's metrics; undefined: none. */
  readonly metricsPort: number | undefined;
  /** Undefined: tracing is off. */
  readonly traces: TracesConfig | undefined;
  /** How long Stripe's events and ours are kept. */
  readonly logRetentionDays: number;
  /** Whether other API processes listen on the same port, in which case the kernel distributes connections. */
  readonly sharesPort: boolean;
  /**
   * The address that clients use to reach the API. Links are built from it and `consoleUrl`, never from a
   * Host header.
   */
  readonly baseUrl: string;
  /** Where people open the console and the pages of links. The same processes answer there and at `baseUrl`. */
  readonly consoleUrl: string;
  readonly temporal: TemporalConfig;
  readonly stripe: StripeConfig;
  readonly mail: MailConfig;
  /** Who may sign up in the console: everybody, only the owners of accounts created by an operator, or nobody. */
  readonly signUp: SignUp;
  /** The header in which a proxy names the client, in lower case; undefined: clients connect directly. */
  readonly clientAddressHeader: string | undefined;
  /** Whether a direct top-up without a saved card first saves Stripe's test card. */
  readonly savesTestCard: boolean;
  /** How long after a session opens the workflow first asks, unprompted, whether it was paid. */
  readonly firstAskMs: number;
  /** How long a checkout can be paid. */
  readonly checkoutMinutes: number;
  /** How long a request for a top-up waits for the workflow's answer before it replies `pending`. */
  readonly topUpAnswerMs: number;
  /** How long a relay has to hand over a batch of notices, before another relay takes it. */
  readonly relayLeaseMs: number;
  /** How long a workflow's failed step waits before its first retry. Longer intervals change in proportion. */
  readonly stepRetryMs: number;
  /** Reconciliation's pauses, each before another check of the top-ups that it had repaired. */
  readonly reconcileReviewMs: readonly number[];
  /** How long automatic top-ups wait after the card was declined once. */
  readonly autoTopUpRetryMs: number;
  /** The most connections of one address to an API process; 0 for no cap, for a process behind a proxy. */
  readonly connectionsPerAddress: number;
  /** Rate limits of an API process. 0 failed keys means no limit, for a process behind a proxy. */
  readonly rateLimits: {
    readonly readsPerSecond: number;
    readonly changesPerSecond: number;
    readonly refundsPerSecond: number;
    readonly failedKeysPerSecond: number;
  };
  /**
   * How long a failed delivery to a webhook endpoint waits before its first retry. Longer pauses change in
   * proportion.
   */
  readonly webhookRetryMs: number;
  /** How long one attempt to call an agent may take. */
  readonly agentTimeoutMs: number;
  /** How long a worker that stops waits for the calls of agents that it is making. */
  readonly agentGraceMs: number;
  /** How long after its creation an invocation is given up. */
  readonly invocationDeadlineMs: number;
}

/** By pino's names. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** By OpenTelemetry's names. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

export function readLedgerConfig(env: Environment): LedgerConfig {
  refuseAssumedConsent(env);
  const ceiling = env['DEFAULT_CONSENT_CEILING'];
  return Object.freeze({
    databaseUrl: databaseUrl(env),
    keyPrefix: keyPrefix(env['KEY_PREFIX'] ?? 'fare'),
    ledgerCount: integer(env, 'LEDGERS', 16, 1, 1024),
    consentCeilingMicros:
      ceiling === undefined ? undefined : dollars('DEFAULT_CONSENT_CEILING', ceiling),
    logLevel: oneOf(env, 'LOG_LEVEL', 'info', LOG_LEVELS),
  });
}

/** The settings of Temporal's own tools, from the environment and from the profile in TEMPORAL_CONFIG_FILE. */
export function readTemporalConfig(env: Environment): TemporalConfig {
  const { namespace = 'default', connectionOptions } = temporalProfile(env);
  const { address, tls, apiKey, metadata } = connectionOptions;
  const hasFile = Boolean(env['TEMPORAL_CONFIG_FILE']);
  const taskQueue = env['TEMPORAL_TASK_QUEUE'] ?? DEFAULT_TASK_QUEUE;
  // Temporal's reader takes any other word than `true` and `1` for false, and would send an API key without TLS.
  isTrue(env, 'TEMPORAL_TLS');
  return Object.freeze({
    address: hostAndPort(address ?? required(env, 'TEMPORAL_ADDRESS')),
    namespace,
    taskQueue,
    isVersioned: readVersioning(env, taskQueue),
    payloadKeys: readPayloadKeys(env),
    tls: tls ?? false,
    metadata: { ...metadata } as Record<string, string>,
    apiKey: keyOf(apiKey),
    readApiKey: hasFile ? () => keyOf(temporalProfile(env).connectionOptions.apiKey) : undefined,
    uiUrl: env['TEMPORAL_UI_URL']
      ? url(env, 'TEMPORAL_UI_URL', '').href.replace(/\/$/, '')
      : undefined,
  });
}

function readVersioning(env: Environment, taskQueue: string): boolean {
  const isVersioned = oneOf(env, 'WORKER_VERSIONING', 'off', ['on', 'off']) === 'on';
  if (isVersioned && /^__|[.:]/.test(taskQueue)) {
    throw new ConfigError(
      'WORKER_VERSIONING is on, so TEMPORAL_TASK_QUEUE must not begin with "__" or contain "." or ":": ' +
        'it also names the deployment of workers in Temporal',
    );
  }
  return isVersioned;
}

function readPayloadKeys(env: Environment): ReadonlyMap<number, Uint8Array> | undefined {
  const text = env['TEMPORAL_PAYLOAD_KEYS'];
  if (!text) return undefined;
  const entries = text.split(',').map((part): [number, Uint8Array] => {
    const { number = '', key = '' } =
      /^(?<number>\d{1,4}):(?<key>[0-9a-f]{64})$/i.exec(part)?.groups ?? {};
    if (key === '') {
      throw new ConfigError(
        'TEMPORAL_PAYLOAD_KEYS must be 1:<key>, or several with commas between them; ' +
          'make a key with: openssl rand -hex 32',
      );
    }
    return [Number(number), Buffer.from(key, 'hex')];
  });
  const keys = new Map(entries);
  if (keys.size !== entries.length) {
    throw new ConfigError('TEMPORAL_PAYLOAD_KEYS: two keys have the same number');
  }
  return keys;
}

/** Whether there is a Temporal to connect to. */
export function namesTemporal(env: Environment): boolean {
  return Boolean(env['TEMPORAL_ADDRESS'] || env['TEMPORAL_CONFIG_FILE']);
}

const TEMPORAL_FILES = [
  'TEMPORAL_CONFIG_FILE',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
] as const;

function temporalProfile(env: Environment): ReturnType<typeof loadClientConnectConfig> {
  for (const name of TEMPORAL_FILES) refuseUnreadable(env, name);
  const file = env['TEMPORAL_CONFIG_FILE'];
  try {
    return loadClientConnectConfig({
      overrideEnvVars: env as Record<string, string>,
      // Never the profile in the home directory of the user that runs the process.
      ...(file ? { configSource: { data: readFileSync(file) } } : { disableFile: true }),
      configFileStrict: true,
    });
  } catch (error) {
    throw new ConfigError(`a TEMPORAL_... setting is wrong: ${(error as Error).message}`);
  }
}

/** Temporal's reader does not say which setting names the file. */
function refuseUnreadable(env: Environment, name: string): void {
  const file = env[name];
  if (!file) return;
  try {
    readFileSync(file);
  } catch (error) {
    throw new ConfigError(`${name} names a file that cannot be read: ${(error as Error).message}`);
  }
}

/** An empty one is none: the SDK throws for it. */
function keyOf(apiKey: TemporalConnectionOptions['apiKey']): string | undefined {
  return typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
}

export function readEndpointConfig(env: Environment): EndpointConfig {
  return Object.freeze({
    masterSecrets: readMasterSecrets(env),
    allowPrivateEndpoints: isTrue(env, 'ALLOW_PRIVATE_ENDPOINTS'),
  });
}

export function readScheduleConfig(env: Environment): ScheduleConfig {
  return Object.freeze({
    rollUpEverySeconds: integer(env, 'ROLL_UP_EVERY_SECONDS', 60, 1, 86_400),
    reconcileEverySeconds: integer(env, 'RECONCILE_EVERY_SECONDS', 900, 10, 86_400),
  });
}

export function readStripeConfig(env: Environment): StripeConfig {
  return Object.freeze({
    secretKey: stripeKey(required(env, 'STRIPE_SECRET_KEY')),
    apiBase: env['STRIPE_API_BASE'] === undefined ? undefined : url(env, 'STRIPE_API_BASE', ''),
    webhookSecrets: signingSecrets(required(env, 'STRIPE_WEBHOOK_SECRET')),
    // At most 12 s: a step may take 15 s, and it is Stripe's silence that should be reported.
    timeoutMs: integer(env, 'STRIPE_TIMEOUT_MS', 10_000, 100, 12_000),
    // A step makes one to four calls, at most two of the same kind, and Stripe accepts 25 of a kind per second.
    stepsPerSecond: integer(env, 'STRIPE_STEPS_PER_SECOND', 10, 1, 10_000),
    tax: readTax(env),
  });
}

function readTax(env: Environment): TaxConfig | undefined {
  const mode = oneOf(env, 'STRIPE_TAX', 'off', ['off', 'automatic']);
  const code = env['STRIPE_TAX_CODE'];
  if (code !== undefined && !/^txcd_\d+$/.test(code)) {
    throw new ConfigError(
      "STRIPE_TAX_CODE must be one of Stripe's tax codes, such as txcd_10000000",
    );
  }
  return mode === 'automatic' ? { code } : undefined;
}

/** A worker listens on its port for metrics alone. */
export function readApiConfig(env: Environment): Config {
  const config = readConfig(env);
  if (config.metricsPort === config.port) {
    throw new ConfigError(
      `METRICS_PORT must be another port than PORT, not ${config.port}: the API listens on both`,
    );
  }
  return config;
}

export function readConfig(env: Environment): Config {
  if (isTrue(env, 'PRODUCTION')) refuseUnsafe(env);
  const agentTimeoutMs = integer(env, 'AGENT_TIMEOUT_MS', 30_000, 100, 600_000);
  const port = readPort(env);
  return Object.freeze({
    ...readLedgerConfig(env),
    host: env['HOST'] ?? '127.0.0.1',
    port,
    metricsPort: env['METRICS_PORT'] ? integer(env, 'METRICS_PORT', 0, 1, 65_535) : undefined,
    traces: readTraces(env),
    sharesPort: isTrue(env, 'SHARE_PORT'),
    baseUrl: readBaseUrl(env, port),
    consoleUrl: readConsoleUrl(env),
    ...readEndpointConfig(env),
    temporal: readTemporalConfig(env),
    stripe: readStripeConfig(env),
    mail: readMailConfig(env),
    signUp: oneOf(env, 'SIGN_UP', 'open', SIGN_UPS),
    clientAddressHeader: env['CLIENT_ADDRESS_HEADER']
      ? headerName(env['CLIENT_ADDRESS_HEADER'])
      : undefined,
    savesTestCard: isTrue(env, 'SAVE_TEST_CARD'),
    firstAskMs: integer(env, 'FIRST_ASK_MS', 15_000, 100, 3_600_000),
    checkoutMinutes: integer(
      env,
      'CHECKOUT_MINUTES',
      CHECKOUT_MINUTES_MAX,
      CHECKOUT_MINUTES_MIN,
      CHECKOUT_MINUTES_MAX,
    ),
    topUpAnswerMs: integer(env, 'TOP_UP_ANSWER_MS', 10_000, 100, 60_000),
    relayLeaseMs: integer(env, 'RELAY_LEASE_MS', 15_000, 1_000, 600_000),
    reconcileReviewMs: milliseconds(env, 'RECONCILE_REVIEW_MS', REVIEW_AFTER_MS),
    stepRetryMs: integer(env, 'STEP_RETRY_MS', STEP_RETRY_MS, 10, 60_000),
    autoTopUpRetryMs: integer(env, 'AUTO_TOP_UP_RETRY_MS', HOUR_MS, 100, 7 * DAY_MS),
    rateLimits: {
      readsPerSecond: integer(env, 'READS_PER_SECOND', 100, 1, 1_000_000),
      changesPerSecond: integer(env, 'CHANGES_PER_SECOND', 500, 1, 1_000_000),
      refundsPerSecond: integer(env, 'REFUNDS_PER_SECOND', 50, 1, 1_000_000),
      failedKeysPerSecond: integer(env, 'FAILED_KEYS_PER_SECOND', 100, 0, 1_000_000),
    },
    connectionsPerAddress: integer(env, 'CONNECTIONS_PER_ADDRESS', 1_000, 0, 10_000),
    webhookRetryMs: integer(env, 'WEBHOOK_RETRY_MS', WEBHOOK_RETRY_MS, 10, 600_000),
    ...readScheduleConfig(env),
    // Stripe lists its events for 30 days.
    logRetentionDays: integer(env, 'LOG_RETENTION_DAYS', 90, 31, 3_650),
    agentTimeoutMs,
    agentGraceMs: integer(env, 'AGENT_GRACE_MS', agentTimeoutMs, 0, 600_000),
    invocationDeadlineMs: integer(env, 'INVOCATION_DEADLINE_MS', DAY_MS, 1_000, 30 * DAY_MS),
  });
}

/** OpenTelemetry's own settings. Without an endpoint, nothing is sent anywhere. */
function readTraces(env: Environment): TracesConfig | undefined {
  const names = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
  const given = names.filter((name) => env[name]);
  if (given.length === 0 || env['OTEL_SDK_DISABLED'] === 'true') return undefined;
  for (const name of given) url(env, name, '');
  if (oneOf(env, 'OTEL_TRACES_EXPORTER', 'otlp', ['otlp', 'none']) === 'none') return undefined;
  refuseUnreadHeaders(env['OTEL_EXPORTER_OTLP_HEADERS'] ?? '');
  oneOf(env, 'OTEL_EXPORTER_OTLP_PROTOCOL', 'http/json', ['http/json', 'http/protobuf']);
  const sampler = oneOf(env, 'OTEL_TRACES_SAMPLER', 'parentbased_always_on', SAMPLERS);
  const text = env['OTEL_TRACES_SAMPLER_ARG'] ?? '1';
  const ratio = Number(text);
  // A space is a zero for Number: no trace would be recorded.
  if (text.trim() === '' || !(ratio >= 0 && ratio <= 1)) {
    throw new ConfigError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1');
  }
  return Object.freeze({ sampler, ratio });
}

function readPort(env: Environment): number {
  return integer(env, 'PORT', 8080, 1, 65_535);
}

export function readConsoleUrl(env: Environment): string {
  if (!env['CONSOLE_URL']) return readBaseUrl(env, readPort(env));
  const { href, origin } = url(env, 'CONSOLE_URL', '');
  if (href === `${origin}/`) return origin;
  throw new ConfigError('CONSOLE_URL must have no path: the console is at /console below it');
}

function readMailConfig(env: Environment): MailConfig {
  const smtpUrl = env['SMTP_URL'] ? mailServer(env['SMTP_URL']) : undefined;
  return Object.freeze({
    smtpUrl,
    from: sender(env['MAIL_FROM'] ?? 'Farebox <no-reply@localhost>'),
    isKept: isTrue(env, 'DEV_MAIL') && smtpUrl === undefined,
  });
}
