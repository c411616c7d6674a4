/** The part of Node's response that paid routes need. */
import { validateHeaderValue } from 'node:http';
import { isReadable, Readable } from 'node:stream';

/**
 * Whether nothing is left of a stream, also of the web, that somebody has read. A lock on it may have been
 * released.
 */
export function isReadToEnd(body) {
  return Readable.isDisturbed(body) && isReadable(body) === false;
}

/** Whether the status says that the call failed, or Node refuses to send the status or its text. */
export function hasFailedStatus(response) {
  // As Node reads it.
  const status = Math.trunc(response.statusCode);
  if (!(status >= 100 && status < 400)) return true;
  // HTTP/2 has no text of a status, and warns.
  return response.req.httpVersionMajor < 2 && !isHeaderValue(response.statusMessage ?? '');
}

/** Whether Node sends it. Node has the same rule for the text of a status. */
export function isHeaderValue(value) {
  try {
    validateHeaderValue('value', value);
    return true;
  } catch {
    return false;
  }
}

/** Aborted when the caller disconnects before the response is finished. */
export function signalOf(response) {
  const caller = new AbortController();
  const abort = () => {
    if (!response.writableFinished) caller.abort();
  };
  // The caller may have left while something before the paid route was waiting, such as a body parser.
  if (response.closed) abort();
  else response.once('close', abort);
  return caller.signal;
}

/**
 * Buffers the handler's response and calls `onEnd(body)` instead of sending it. From then on, and after
 * `silence()`, the handler's calls have no effect. After `restore()` the response works as usual again;
 * `forget()` then takes back the headers that were set meanwhile.
 */
export function keepBack(response, onEnd) {
  const { end, write, writeHead, setHeader, removeHeader, flushHeaders } = response;
  const own = { end, write, writeHead, setHeader, removeHeader, flushHeaders };
  const chunks = [];
  let unseal;
  const restore = () => {
    Object.assign(response, own);
    delete response.writableEnded;
    unseal?.();
  };
  const before = response.getHeaders();
  const forget = () => {
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    setAll(response, Object.entries(before));
    // HTTP/2 has no text of a status, and warns.
    if (response.req.httpVersionMajor < 2) response.statusMessage = undefined;
  };
  const silence = () => {
    for (const name of Object.keys(own)) response[name] = () => response;
  };
  const keep = (chunk, encoding) => {
    if (chunk === undefined || chunk === null || typeof chunk === 'function') return;
    chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? encoding : undefined));
  };
  response.flushHeaders = () => {};
  response.write = (...args) => {
    keep(...args);
    const written = args.find((arg) => typeof arg === 'function');
    if (written) queueMicrotask(written);
    return true;
  };
  response.writeHead = (status, ...rest) => {
    response.statusCode = status;
    if (typeof rest[0] === 'string') response.statusMessage = rest[0];
    const headers = rest.at(-1);
    if (typeof headers === 'object') setAll(response, pairsOf(headers));
    return response;
  };
  response.end = (...args) => {
    const begun = chunks.length;
    keep(...args);
    // The answer of an error handler to a handler that failed after it had begun: its length is that of this
    // body alone.
    const length = chunks[begun]?.length;
    if (Number(response.getHeader('content-length')) === length) chunks.splice(0, begun);
    const ended = args.find((arg) => typeof arg === 'function');
    if (ended) response.once('finish', ended);
    silence();
    unseal = sealStatus(response);
    // So that a framework does not send a response of its own.
    Object.defineProperty(response, 'writableEnded', { value: true, configurable: true });
    onEnd(Buffer.concat(chunks));
    return response;
  };
  return { restore, silence, forget };
}

/**
 * The status by which the response is paid for is the one that is sent, though the error handler of a handler
 * that fails after it has answered sets another. Returns a function that ends this.
 */
function sealStatus(response) {
  const names =
    response.req.httpVersionMajor < 2 ? ['statusCode', 'statusMessage'] : ['statusCode'];
  const sealed = names.map((name) => [name, response[name]]);
  for (const [name, value] of sealed) {
    Object.defineProperty(response, name, { get: () => value, set: () => {}, configurable: true });
  }
  return () => {
    for (const [name] of sealed) delete response[name];
    Object.assign(response, Object.fromEntries(sealed));
    sealed.length = 0;
  };
}

/** Node takes headers as an object, as an array of alternating names and values, or as an array of pairs. */
function pairsOf(headers) {
  if (!Array.isArray(headers)) return Object.entries(headers);
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((name, n) => (n % 2 === 0 ? [[name, headers[n + 1]]] : []));
}

/**
 * A name that is in it twice, such as Set-Cookie, gets both values. They replace what was set before. HTTP/2
 * has no `setHeaders()`.
 */
export function setAll(response, pairs) {
  const values = new Map();
  for (const [name, value] of pairs) {
    const known = values.get(name.toLowerCase());
    values.set(name.toLowerCase(), known ? [name, [known[1], value].flat()] : [name, value]);
  }
  for (const header of values.values()) response.setHeader(...header);
}
