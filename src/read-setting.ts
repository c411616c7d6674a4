/** Reads one setting from the environment and checks it. */
import { existsSync } from 'node:fs';
import type { MasterSecrets } from './domain/master-secrets.ts';
import { microsOfDollars, type Micros } from './domain/money.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting is missing or wrong; the message names it and says what it must be. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Entry points pass only this on, so an empty setting is an unset one everywhere. */
export function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

export function required(env: Environment, name: string): string {
  const value = env[name];
  if (!value)
    throw new ConfigError(`${name} is not set; \`npm start\` sets it, or see docs/settings.md`);
  return value;
}

/** Elsewhere, `require` may mean less: here the certificate and its name are verified, as by `verify-full`. */
const SSL_MODES = ['disable', 'no-verify', 'require', 'verify-full'];
/** Nobody names one without wanting TLS. */
const SSL_FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/** With one name for each way to use TLS, even where libraries have other names. */
export function databaseUrl(env: Environment): string {
  const text = required(env, 'DATABASE_URL');
  const address = postgresUrl(text);
  const { searchParams } = address;
  if ((searchParams.get('pooler') ?? 'transaction') !== 'transaction') {
    throw new ConfigError(
      'DATABASE_URL: pooler must be transaction, for a connection pooler in transaction mode',
    );
  }
  const mode = searchParams.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    throw new ConfigError(`sslmode in DATABASE_URL must be ${SSL_MODES.join(', ')}, not "${mode}"`);
  }
  if (searchParams.has('ssl')) {
    throw new ConfigError('DATABASE_URL must ask for TLS by sslmode, not by ssl');
  }
  const named = SSL_FILES.filter((name) => searchParams.has(name));
  for (const name of named) {
    const path = searchParams.get(name) ?? '';
    if (!existsSync(path))
      throw new ConfigError(`${name} in DATABASE_URL names no file: "${path}"`);
  }
  if (mode !== 'require' && !(mode === null && named.length > 0)) return text;
  searchParams.set('sslmode', 'verify-full');
  return address.href;
}

/** The error must not show it: it has the password. */
function postgresUrl(text: string): URL {
  const address = URL.parse(text);
  const isComplete =
    address !== null &&
    /^postgres(ql)?:$/.test(address.protocol) &&
    // An unencoded # ends the address, so that a part of the password would be taken for the host.
    address.hash === '' &&
    [address.username, address.password, address.pathname].every(isDecodable);
  if (isComplete) return address;
  throw new ConfigError(
    'DATABASE_URL must be a URL such as postgres://user:password@host:5432/farebox, with special characters of ' +
      'the password percent-encoded, such as %23 for #',
  );
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Unset is false. `1` and `yes` are refused: one setting turns safety checks on, others turn them off. */
export function isTrue(env: Environment, name: string): boolean {
  const text = env[name];
  if (text !== undefined && text !== 'true' && text !== 'false') {
    throw new ConfigError(`${name} must be true or false, not "${text}"`);
  }
  return text === 'true';
}

export function integer(
  env: Environment,
  name: string,
  fallback: number,
  min: number,
  max: number,
): number {
  const text = env[name];
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${text}"`);
  }
  return value;
}

/** Whole milliseconds with commas between them. */
export function milliseconds(
  env: Environment,
  name: string,
  fallback: readonly number[],
): readonly number[] {
  const text = env[name];
  if (text === undefined) return fallback;
  if (/^[1-9]\d{0,5}(,[1-9]\d{0,5}){0,9}$/.test(text)) return text.split(',').map(Number);
  throw new ConfigError(
    `${name} must be one to ten integers from 1 to 999999 with commas, not "${text}"`,
  );
}

const EITHER = new Intl.ListFormat('en-US', { type: 'disjunction' });

export function oneOf<Word extends string>(
  env: Environment,
  name: string,
  fallback: Word,
  words: readonly Word[],
): Word {
  const value = env[name] ?? fallback;
  const word = words.find((each) => each === value);
  if (word !== undefined) return word;
  throw new ConfigError(`${name} must be ${EITHER.format(words)}, not "${value}"`);
}

export function url(env: Environment, name: string, fallback: string): URL {
  const text = env[name] ?? fallback;
  const value = URL.parse(text);
  if (value?.protocol !== 'http:' && value?.protocol !== 'https:') {
    throw new ConfigError(`${name} must be an http(s) URL, not "${text}"`);
  }
  return value;
}

export function dollars(name: string, text: string): Micros {
  const value = microsOfDollars(text);
  if (value === undefined || value <= 0) {
    throw new ConfigError(`${name} must be a positive amount of dollars, not "${text}"`);
  }
  return value;
}

export function keyPrefix(text: string): string {
  if (/^[a-z]{2,12}$/.test(text)) return text;
  throw new ConfigError(`KEY_PREFIX must be 2 to 12 lowercase letters, not "${text}"`);
}

/** In lower case. */
export function headerName(text: string): string {
  if (/^[\w-]+$/.test(text)) return text.toLowerCase();
  throw new ConfigError(
    `CLIENT_ADDRESS_HEADER must be the name of a header, such as X-Forwarded-For, not "${text}"`,
  );
}

export function hostAndPort(address: string): string {
  const port = Number(/^[^\s/]+:(\d{1,5})$/.exec(address)?.[1]);
  if (port >= 1 && port <= 65_535) return address;
  throw new ConfigError(
    `TEMPORAL_ADDRESS must be host:port, such as temporal:7233, not "${address}"`,
  );
}

/** The error must not show it. A publishable key, for example, would fail only at the first payment. */
export function stripeKey(key: string): string {
  if (/^[sr]k_(test|live)_\S+$/.test(key)) return key;
  throw new ConfigError(
    'STRIPE_SECRET_KEY must be a secret or restricted key of Stripe: sk_test_..., sk_live_..., rk_test_... or rk_live_...',
  );
}

/** A comma at the end is no secret. */
export function signingSecrets(text: string): readonly string[] {
  const secrets = text
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean);
  if (secrets.length > 0) return secrets;
  throw new ConfigError('STRIPE_WEBHOOK_SECRET must be whsec_..., or several with commas');
}

/** The console and the forms of pages are at fixed paths of the host, so the URL has none of its own. */
export function readBaseUrl(env: Environment, port: number): string {
  const { href, origin } = url(env, 'BASE_URL', `http://127.0.0.1:${port}`);
  if (href === `${origin}/`) return origin;
  throw new ConfigError(
    'BASE_URL must have no path, user, query or fragment: paths are added to it',
  );
}

/**
 * `secret`, which has the number 1, or a list such as `2:new,1:old` or `2:new,1-retired:old`. The first one signs. The
 * errors show no secret.
 */
export function readMasterSecrets(env: Environment): MasterSecrets {
  const text = required(env, 'MASTER_SECRET');
  const parts = /[,:]/.test(text) ? text.split(',').map(readListedSecret) : [readAlone(text)];
  const all = new Map(parts.map(({ number, secret }) => [number, secret]));
  if (all.size !== parts.length) {
    throw new ConfigError('MASTER_SECRET: two secrets have the same number; write 2:new,1:old');
  }
  if (new Set(all.values()).size !== all.size) {
    throw new ConfigError('MASTER_SECRET: two numbers have the same secret');
  }
  const [first] = parts;
  if (first === undefined || first.isRetired) {
    throw new ConfigError(
      'MASTER_SECRET: the first secret signs, so it must not be retired; write 2:new,1-retired:old',
    );
  }
  const trusted = parts.filter(({ isRetired }) => !isRetired);
  return {
    active: first.number,
    all,
    trusted: new Map(trusted.map(({ number, secret }) => [number, secret])),
  };
}

interface ListedSecret {
  readonly number: number;
  readonly secret: string;
  readonly isRetired: boolean;
}

function readAlone(secret: string): ListedSecret {
  return { number: 1, secret: longEnough(secret, 'the secret'), isRetired: false };
}

/**
 * Refuses everything else: otherwise a mistyped number would become part of the secret, and a mistyped `-retired` would
 * leave the secret trusted.
 */
function readListedSecret(part: string, index: number): ListedSecret {
  const { number, retired, secret } =
    /^(?<number>\d{1,4})(?<retired>-retired)?:(?<secret>[^\s:]+)$/.exec(part)?.groups ?? {};
  if (number === undefined || secret === undefined) {
    throw new ConfigError(
      `MASTER_SECRET: secret ${index + 1} of the list must be <number>:<secret> or <number>-retired:<secret>, ` +
        'as in 2:new,1:old; a secret must not contain a comma, colon or space',
    );
  }
  longEnough(secret, `secret number ${number}`);
  return { number: Number(number), secret, isRetired: retired !== undefined };
}

function longEnough(secret: string, name: string): string {
  if (secret.length >= 32) return secret;
  throw new ConfigError(`MASTER_SECRET: ${name} must have at least 32 characters`);
}

/** OpenTelemetry drops what it cannot read, and would send traces without it. The error must not show it: it is secret. */
export function refuseUnreadHeaders(text: string): void {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.every((part) => part === '' || isHeader(part))) return;
  throw new ConfigError(
    'OTEL_EXPORTER_OTLP_HEADERS must be name=value, or several with commas, with special characters ' +
      'percent-encoded, such as authorization=Bearer%20...',
  );
}

function isHeader(part: string): boolean {
  const [, value] = /^[\w!#$%&'*+.^`|~-]+ *=(.*)$/.exec(part) ?? [];
  if (value === undefined) return false;
  try {
    decodeURIComponent(value);
    return true;
  } catch {
    return false;
  }
}

/** The error must not show it: it has the password. */
export function mailServer(text: string): string {
  const address = URL.parse(text);
  const isComplete =
    address !== null &&
    /^smtps?:\/\//.test(text) &&
    address.hostname !== '' &&
    // An unencoded # ends the address, so that a part of the password would be taken for the host.
    address.hash === '';
  if (isComplete) return text;
  throw new ConfigError(
    'SMTP_URL must be a URL such as smtps://user:password@host, with special characters of the password ' +
      'percent-encoded, such as %23 for #',
  );
}

/** Mail servers refuse every mail whose sender has no address. */
export function sender(text: string): string {
  if (/^([^<>\r\n]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@,;:]+@[^\s<>@,;:]+)$/.test(text)) return text;
  throw new ConfigError(
    `MAIL_FROM must be an address, such as billing@example.com or Farebox <billing@example.com>, not "${text}"`,
  );
}
