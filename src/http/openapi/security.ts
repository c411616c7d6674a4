/** The document's names for the three kinds of key and the console's session, and which of them each role uses. */
import type { Role } from '../authenticate.ts';

const bearer = (description: string) => ({ type: 'http', scheme: 'bearer', description });

export const SECURITY_SCHEMES = {
  consumerKey: bearer('A consumer key, `..._ck_live_...`, or `..._ck_test_...` in test mode.'),
  developerKey: bearer(
    'The secret key of a developer, `..._sk_live_...`, or `..._sk_test_...` in test mode. Keep it on your server.',
  ),
  legacyKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Service-Key',
    description: 'A legacy key, `..._sk_...`, for the agents endpoints.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'farebox.session_token',
    description: 'A console session of the account’s owner.',
  },
} as const;

export const SECURITY: Readonly<
  Record<
    Role | 'public',
    readonly Readonly<Partial<Record<keyof typeof SECURITY_SCHEMES, readonly []>>>[]
  >
> = {
  consumer: [{ consumerKey: [] }],
  developer: [{ developerKey: [] }],
  payer: [{ consumerKey: [] }],
  asker: [{ consumerKey: [] }, { developerKey: [] }],
  either: [{ consumerKey: [] }, { developerKey: [] }],
  legacy: [{ legacyKey: [] }],
  session: [{ session: [] }],
  operator: [{ session: [] }],
  public: [],
};
