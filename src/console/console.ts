/**
 * The console's sessions for the HTTP layer. better-auth is loaded by the first request that needs it, so an API
 * process that only takes charges never has it in memory.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../domain/errors.ts';
import { remembered } from '../remembered.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { prolongSession } from '../store/console/sessions.ts';
import { findAccountOfUser, type AccountOwner } from '../store/console/users.ts';
import type { Auth, ConsoleDeps } from './auth.ts';
import { ADDRESS_HEADER, addressIn } from './client-address.ts';
import { ownOrigins } from './origins.ts';
import { SignInRefusal } from './refusals.ts';
import { CookieSignatures } from './secrets.ts';

export type { ConsoleDeps } from './auth.ts';

/** The cookie's name with and without TLS. */
const SESSION_COOKIE = /(?:^|;\s*)(?:__Host-)?farebox\.session_token=/;

/** HTTP allows a request for `http://host/path` too. */
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;

/** An account's owner, signed in. */
export type SignedInOwner = KeyOwner &
  Pick<AccountOwner, 'isOperator' | 'hasSecondFactor'> & { readonly sessionId: string };

/** The state of a pool that is not open yet. */
const NO_CONNECTIONS = { acquiredConnections: 0, idleConnections: 0, waitingClients: 0 };

interface Loaded {
  readonly auth: Auth;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly headersOf: (headers: IncomingMessage['headers']) => Headers;
}

export class Console {
  readonly #deps: ConsoleDeps;
  readonly #origins: ReadonlySet<string>;
  readonly #signatures: CookieSignatures;
  readonly #load = remembered(() => this.#import());
  /** Undefined until it is loaded. */
  #auth: Auth | undefined;

  constructor(deps: ConsoleDeps) {
    this.#deps = deps;
    this.#origins = ownOrigins(deps.config.consoleUrl);
    this.#signatures = new CookieSignatures(deps.config.masterSecrets);
  }

  /** Answers a request to an endpoint of paths.ts, whose body, if it has one, was read already. */
  async handle(
    request: IncomingMessage & { body?: string },
    response: ServerResponse,
    body: string | undefined,
  ): Promise<void> {
    // Where the library looks when the request has already been read.
    if (body !== undefined) request.body = body;
    const { clientAddressHeader, consoleUrl } = this.#deps.config;
    // The library makes a URL of the host, the protocol and the path that the client, or a proxy, names. They
    // need not be any.
    request.url = request.url?.replace(AUTHORITY, '');
    const { host, protocol } = new URL(consoleUrl);
    request.headers.host = host;
    request.headers['x-forwarded-proto'] = protocol.slice(0, -1);
    const named = clientAddressHeader && addressIn(request.headers[clientAddressHeader]);
    request.headers[ADDRESS_HEADER] = named || addressIn(request.socket.remoteAddress);
    this.#renewCookies(request);
    const { handle } = await this.#load();
    try {
      await handle(request, response);
    } catch (error) {
      if (error instanceof SignInRefusal) response.setHeader('Set-Cookie', error.cookies);
      throw error;
    }
  }

  /** Whether a request carries a session cookie. Only the header is checked. */
  hasSession(request: IncomingMessage): boolean {
    const { cookie } = request.headers;
    return cookie !== undefined && SESSION_COOKIE.test(cookie);
  }

  /** Whether one of our pages sent it: browsers state the origin of a write. */
  isFromOwnPage(request: IncomingMessage): boolean {
    return this.#origins.has(request.headers.origin ?? '');
  }

  /**
   * The session's owner, acting in the given role; undefined when the session has ended. 503 when it cannot
   * be read. Prolongs the session.
   */
  async findCaller(
    request: IncomingMessage,
    kind: 'consumer' | 'developer',
  ): Promise<SignedInOwner | undefined> {
    const { auth, headersOf } = await this.#load();
    this.#renewCookies(request);
    const found = await auth.api
      .getSession({ headers: headersOf(request.headers) })
      .catch((error: unknown) => {
        // The library logs the error of the database, and throws one of its own.
        throw new ApiError(
          'service_unavailable',
          'The session cannot be read; try again shortly.',
          { retryAfterSeconds: 1 },
          error,
        );
      });
    const owner = found && (await findAccountOfUser(this.#deps.database, found.user.id));
    if (!owner) return undefined;
    const { id: sessionId } = found.session;
    await prolongSession(this.#deps.database, found.session).catch((err: unknown) =>
      this.#deps.log.warn({ err }, 'a session could not be prolonged; will retry'),
    );
    const noKey = { keyId: '', hash: '', expiresAt: null, spend: null, guard: null };
    return { ...owner, ...noKey, kind, sessionId };
  }

  #renewCookies({ headers }: IncomingMessage): void {
    if (headers.cookie !== undefined) headers.cookie = this.#signatures.renewed(headers.cookie);
  }

  /** For the metrics. They are opened when better-auth is loaded. */
  get pools() {
    const stateOf = (name: keyof Auth['pools']) => ({
      state: () => this.#auth?.pools[name].state() ?? NO_CONNECTIONS,
    });
    return { console: stateOf('console'), consoleCounts: stateOf('consoleCounts') };
  }

  async end(): Promise<void> {
    await this.#auth?.end();
  }

  async #import(): Promise<Loaded> {
    const [{ createAuth }, { toNodeHandler, fromNodeHeaders }] = await Promise.all([
      import('./auth.ts'),
      import('better-auth/node'),
    ]);
    const auth = createAuth(this.#deps);
    this.#auth = auth;
    return { auth, handle: toNodeHandler(auth.handler), headersOf: fromNodeHeaders };
  }
}
