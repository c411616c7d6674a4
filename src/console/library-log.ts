/** What the sign-in library reports, as lines of our log. */
import type { Logger } from 'pino';

/** The most characters of a report of the library. Its own sentences have fewer. */
const LENGTH_MAX = 200;

/**
 * What it calls an error is a refusal whose text has what the client sent. Failures are thrown and logged
 * elsewhere. Some endpoints report the failure itself in place of a text.
 */
export function libraryLog(log: Pick<Logger, 'warn'>) {
  return (_level: string, text: unknown, cause?: unknown): void => {
    const isText = typeof text === 'string';
    const message = isText ? text.slice(0, LENGTH_MAX) : 'a sign-in endpoint failed';
    log.warn({ part: 'console', err: isText ? cause : text }, message);
  };
}
