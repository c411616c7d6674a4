/** What PRODUCTION refuses. */
import { ConfigError, isTrue, readMasterSecrets, type Environment } from './read-setting.ts';

/** Refuses settings that are fine for a trial but unsafe with real money. */
export function refuseUnsafe(env: Environment): void {
  const baseUrl = URL.parse(env['BASE_URL'] ?? '');
  if (baseUrl?.protocol !== 'https:') {
    throw new ConfigError(
      'PRODUCTION is true, so BASE_URL must begin with https://: keys travel over it',
    );
  }
  const consoleUrl = env['CONSOLE_URL'];
  if (consoleUrl && URL.parse(consoleUrl)?.protocol !== 'https:') {
    throw new ConfigError(
      'PRODUCTION is true, so CONSOLE_URL must begin with https://: sessions travel over it',
    );
  }
  if (!/^whsec_./.test(env['STRIPE_WEBHOOK_SECRET'] ?? '')) {
    throw new ConfigError(
      'PRODUCTION is true, so STRIPE_WEBHOOK_SECRET must be set to the whsec_... of your webhook endpoint: ' +
        "without it, Stripe's webhooks are refused, and top-ups are credited late",
    );
  }
  const apiBase = env['STRIPE_API_BASE'];
  if (apiBase && URL.parse(apiBase)?.origin !== 'https://api.stripe.com') {
    throw new ConfigError(
      'PRODUCTION is true, so STRIPE_API_BASE must not be set: simulated payments would credit real balances',
    );
  }
  for (const name of ['SAVE_TEST_CARD', 'DEV_MAIL']) {
    if (isTrue(env, name)) {
      throw new ConfigError(`PRODUCTION is true, so ${name} must not be true`);
    }
  }
  const isSignUpOpen = !['invited', 'closed'].includes(env['SIGN_UP'] ?? '');
  if (isSignUpOpen && isTrue(env, 'ALLOW_PRIVATE_ENDPOINTS')) {
    throw new ConfigError(
      'PRODUCTION is true, so ALLOW_PRIVATE_ENDPOINTS must not be true unless SIGN_UP is invited or closed: anybody who ' +
        'signs up could call what only this machine can reach',
    );
  }
  // Every one of them, since old secrets still verify receipts, and links unless they are retired.
  if ([...readMasterSecrets(env).all.values()].some(isPlaceholder)) {
    throw new ConfigError(
      'PRODUCTION is true, and MASTER_SECRET looks like a placeholder; make one with: openssl rand -hex 32',
    );
  }
  if (hasDefaultPassword(env['DATABASE_URL'] ?? '')) {
    throw new ConfigError(
      'PRODUCTION is true, and the password in DATABASE_URL is the user name or a common default; choose a random one',
    );
  }
}

/** Apart from the others, because commands that create accounts need no other setting of theirs. */
export function refuseAssumedConsent(env: Environment): void {
  if (env['DEFAULT_CONSENT_CEILING'] !== undefined && isTrue(env, 'PRODUCTION')) {
    throw new ConfigError(
      'PRODUCTION is true, so DEFAULT_CONSENT_CEILING must not be set: nobody has agreed to these charges',
    );
  }
}

/** No password at all is fine: certificates and sockets need none. */
function hasDefaultPassword(databaseUrl: string): boolean {
  const { username = '', password = '' } = URL.parse(databaseUrl) ?? {};
  return (
    password !== '' &&
    (password === username ||
      /^(postgres|farebox|secret|admin|root|test|(your.?)?password|change.?me|12345\d*)$/i.test(
        password,
      ))
  );
}

/** Detects text from an example, or a repeated character: 64 random hex digits contain nearly all 16. */
function isPlaceholder(secret: string): boolean {
  return (
    /change.?me|example|default|password|your.?secret/i.test(secret) || new Set(secret).size < 10
  );
}
