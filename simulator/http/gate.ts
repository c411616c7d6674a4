/**
 * Who may speak to the simulator. It listens on loopback only, but a page in a browser on this machine can get there:
 * by a form or script of another origin, or under a name that its owner lets point here. Neither gets in. The controls
 * ask besides for the token, which other users of the machine do not have either.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Reply } from './answers.ts';

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
}

/** Why nothing is done; undefined when the request may go on. */
export function refusalOf({ headers }: Asked): Reply | undefined {
  const { host = '', origin } = headers;
  if (!LOOPBACK_NAMES.has(hostnameOf(`http://${host}`))) {
    return refusal(403, 'The simulator answers under the names of this machine only.');
  }
  if (origin !== undefined && origin !== `http://${host}`) {
    return refusal(403, 'The simulator takes nothing from pages of another origin.');
  }
  return undefined;
}

/** A header, or `token` in the URL, which is what a start prints. What changes something is JSON. */
export function controlRefusalOf(
  { method, url, headers }: Asked,
  token: string,
): Reply | undefined {
  const given = headers['x-simulator-token'] ?? url.searchParams.get('token') ?? '';
  if (!isSame(String(given), token)) {
    return refusal(401, 'A control needs the token: the header X-Simulator-Token (farebox env).');
  }
  if (method !== 'GET' && headers['content-type']?.split(';')[0]?.trim() !== 'application/json') {
    return refusal(415, 'A control takes JSON: Content-Type: application/json.');
  }
  return undefined;
}

function isSame(a: string, b: string): boolean {
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));
}

function hostnameOf(url: string): string {
  return URL.parse(url)?.hostname ?? '';
}

function refusal(status: number, message: string): Reply {
  return { status, body: { error: { type: 'invalid_request_error', message } } };
}
