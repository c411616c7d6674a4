/** The key of the sandbox. A key that moves real money is refused before anything is sent. */

export function readTestKey(env: Readonly<Record<string, string | undefined>>): string {
  const key = env['STRIPE_TEST_KEY'] ?? '';
  if (/^(sk|rk)_test_\w+$/.test(key)) return key;
  throw new Error(
    key === ''
      ? 'Set STRIPE_TEST_KEY to a secret key of a Stripe sandbox: sk_test_...'
      : 'STRIPE_TEST_KEY must be a key of test mode: sk_test_... Nothing was sent.',
  );
}
