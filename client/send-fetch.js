/**
 * Sends one HTTP request with fetch. Under Node, Bun and Deno, send-node.js takes its place (package.json, `imports`).
 */
import { sendBy } from './send-by.js';

/**
 * Edge runtimes end a request together with the call that sent it, so other calls that wait for its answer never get
 * one.
 */
export const CAN_SHARE_REQUESTS = false;

/**
 * Resolves within `timeoutMs` with `{ status, header(name), text }`. Rejects with a `TimeoutError`, the signal's
 * reason, or an error that has a `code` or whose cause has one.
 */
export function send(url, options) {
  return sendBy(fetch, url, options);
}
