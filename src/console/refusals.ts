/** The sign-in library's error responses as errors of ours, so that they have the one shape of errors. */
import { ApiError, type ErrorCode } from '../domain/errors.ts';

/** `reason` is the library's own code: the console tells by it what to say. */
export class SignInRefusal extends ApiError {
  /** The cookies of the response that end with the refusal. */
  readonly cookies: readonly string[];

  constructor(code: ErrorCode, answer: LibraryError, { headers }: Response) {
    const seconds = Number(headers.get('x-retry-after') ?? WAIT_SECONDS);
    super(code, sentenceOf(code, answer), {
      ...(answer.code === undefined ? {} : { facts: { reason: answer.code } }),
      ...(code === 'rate_limited' ? { retryAfterSeconds: seconds } : {}),
    });
    this.cookies = headers.getSetCookie();
  }
}

interface LibraryError {
  readonly code?: string;
  readonly message?: string;
}

/** What the library throws where the browser's answer is not one of a passkey. It takes that for its own failure. */
const NO_FAILURES = new Set(['FAILED_TO_VERIFY_REGISTRATION']);
/**
 * Used for `Retry-After` when the library does not say when a limit ends: the longest of our limits
 * (sign-in-limit.ts).
 */
const WAIT_SECONDS = 900;

const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'session_required'],
  [403, 'sign_in_refused'],
  [404, 'not_found'],
  [415, 'unsupported_media_type'],
  [429, 'rate_limited'],
]);

export async function refusalOf(response: Response): Promise<SignInRefusal> {
  const answer = await bodyOf(response);
  const isFailure = response.status >= 500 && !NO_FAILURES.has(answer.code ?? '');
  const code = isFailure ? 'internal_error' : (CODES.get(response.status) ?? 'invalid_request');
  return new SignInRefusal(code, answer, response);
}

async function bodyOf(response: Response): Promise<LibraryError> {
  const body: unknown = await response.json().catch(() => undefined);
  const { code, message } = (body ?? {}) as Readonly<Record<string, unknown>>;
  return {
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  };
}

function sentenceOf(code: ErrorCode, { code: reason, message = '' }: LibraryError): string {
  // By the library's limits of each client address, all of them for a minute.
  if (code === 'rate_limited' && reason === undefined) {
    return 'Too many attempts. Wait a minute, then try again.';
  }
  if (message === '') return 'The request was refused.';
  // The library may put the member of the body before its message: `[body.email] Invalid email address`.
  const text = message.replace(/^\[body\.\w+\] /, '');
  return text.endsWith('.') ? text : `${text}.`;
}
